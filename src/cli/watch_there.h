/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandbox's side of two directories in step: what is at a path there, and what goes there. Paths are relative to the directory.
 * Threads: one thread.
 */
#pragma once
#include "cli/watch_sync.h"

#include <limits.h>

/* As the other side has it: what it is, and for a file or link what it holds. */
struct other {
    struct tree_entry entry;
    int fd;                // of a file's content; -1
    char target[PATH_MAX]; // of a link
    int staged;            // or all of it is below this directory
};
void other_clear(struct other *other);

/* What is there now; a file's content comes along, unless it is known. `other` is empty before, and nothing is there where it stays so. */
int there_look(struct sync *sync, const char *path, struct other *other, struct burrow_error *err);
/* Whether it is still as it was seen there; -1. */
int there_is_still(struct sync *sync, const char *path, const struct tree_entry *seen,
                   struct burrow_error *err);
/*
 * Makes it there as it is here, in place of what `was` there, which may be NULL; a directory goes only when it is empty. 1, and `err` says so, where
 * something else is in the way. *version: the sandbox's of a file, left alone where that was not sent as it was seen.
 */
int there_send(struct sync *sync, const char *path, const struct tree_entry *here,
               const struct tree_entry *was, uint64_t *version, struct burrow_error *err);
/* Gives it another name there; 1 where something has that. */
int there_move(struct sync *sync, const char *path, const char *to, struct burrow_error *err);
/* Whether something is there; -1. */
int there_has(struct sync *sync, const char *path, struct burrow_error *err);
