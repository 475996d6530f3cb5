/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What file_access.c and file_find.c share: a conversation on its way, and what its failures mean.
 * Threads: one per object.
 */
#pragma once
#include "core/sandbox/file_access.h"
#include "core/sandbox/file_work.h"
#include "engine/files.h"

struct file_access {
    struct file_work work;
    struct sandboxes *sandboxes;
    const struct file_place *place;
};

int file_access_begin(struct file_access *access, struct sandboxes *sandboxes,
                      const struct actor *actor, const struct file_place *place, struct error *err);
void file_access_clear(struct file_access *access);
#define autoaccess __attribute__((cleanup(file_access_clear))) struct file_access

/* Gives a failure of the conversation the reason and noun that file_access.h promises; -1. */
int file_access_failed(const struct file_access *access, struct error *err);
/* The same where the path has to be a directory's. */
int file_access_failed_tree(const struct file_access *access, struct error *err);

/* Ends it in time, and when the client goes. */
struct files_patience file_access_patience(struct file_access *access);

int file_access_stat(const struct file_access *access, const char *path, bool is_followed,
                     struct file_info *out, struct error *err);

/* Without its strings. */
void file_access_fill_info(struct file_info *info, const struct files_item *item);
