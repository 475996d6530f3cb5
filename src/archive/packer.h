/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes an archive of records: first they are gathered, contents in an unnamed file, then given to burrow-archive in the
 * order of their names. So the same files always make the same archive, and the box is not kept waiting by the compression.
 * Calls block.
 * Threads: one per object.
 */
#pragma once
#include "archive/archive.h"
#include "base/auto.h"
#include "base/error.h"
#include "engine/files_wire.h"

#include <stddef.h>
#include <sys/types.h>

struct packer;

/* `spool_fd` (taken) is an empty file for the contents; the task is borrowed until packer_free. */
struct packer *packer_new(const struct archive_task *task, int spool_fd);

/* A files_on_item and a files_on_data, whose data is the packer. ERROR_LIMIT, noun "archive", for too many. */
int packer_item(void *packer, const struct files_item *item, struct error *err);
int packer_data(void *packer, const void *bytes, size_t length, struct error *err);
/* Writes small contents that wait for each other into the spool. */
int packer_flush(struct packer *packer, struct error *err);

/* How much of the spool is taken (holes are not), and how large the archive may become. */
uint64_t packer_kept(const struct packer *packer);
uint64_t packer_estimate(const struct packer *packer);

/*
 * Writes the archive to `archive_fd` (borrowed; an empty file) and tells its size. ERROR_LIMIT, noun "archive", when it gets
 * larger than task->max_bytes; ERROR_UNAVAILABLE when burrow-archive cannot run.
 */
int packer_finish(struct packer *packer, int archive_fd, uint64_t *size, struct error *err);

void packer_free(struct packer *packer);
DEFINE_AUTOPTR(packer)
