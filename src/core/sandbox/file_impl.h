/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What file.c and file_archive.c share, and whoever else talks with a box about files uses.
 * Threads: any but loops.
 */
#pragma once
#include "archive/archive.h"
#include "base/error.h"
#include "core/account/actor.h"
#include "core/sandbox/file.h"
#include "core/sandbox/sandboxes.h"

#include <limits.h>

#define FILE_TIMEOUT_MS 60000 // that PID 1 may take for one answer

struct file_work; // file_work.h

/* Gives an error of such a conversation the kind and noun that file.h promises; -1. One that has a noun keeps it. `sandbox_id` may be NULL. */
int file_failed(struct sandboxes *sandboxes, const char *sandbox_id, struct error *err);

/* Says whose disk it is that is full: ERROR_DISK_FULL with the sandbox's limit, or ERROR_NO_SPACE. Returns -1. */
int file_disk_full(struct sandboxes *sandboxes, int64_t disk_bytes, struct error *err);

/* A task for burrow-archive as the settings have it, or in the directory of this program; `program` keeps its path. */
int file_archive_task(const struct sandboxes *sandboxes, enum archive_format format,
                      uint64_t max_bytes, char program[PATH_MAX], struct archive_task *out,
                      struct error *err);

/* file_unpack over a conversation, with a sandbox or (NULL) a box that is none. */
int file_unpack_here(struct sandboxes *sandboxes, const char *sandbox_id,
                     const struct file_work *work, const char *path, enum archive_format format,
                     int archive_fd, struct error *err);

/* Writes all of them over a conversation, making parents; existing ones are replaced. */
int file_write_all(const struct file_work *work, const struct sandbox_file *files, size_t count,
                   struct error *err);
