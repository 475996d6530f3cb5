/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole directories between this machine and a sandbox, of any size: as archives, and file by file what is too large for those.
 * Threads: one thread.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>
#include <stdint.h>

struct remote_tree {
    struct burrow_client *client;
    const char *sandbox, *path;        // of the directory there
    uint64_t most_bytes, most_entries; // that may come
    const char *too_much;              // what to say where there is more
    /* With the bytes that have travelled; total is 0 where it is not known. May be NULL. */
    void (*on_progress)(void *context, uint64_t done, uint64_t total);
    /* Of a file that the sandbox changes while it is read in parts: it is left out. NULL: that is a failure. */
    void (*on_changing)(void *context, const char *path);
    /* What may not be read, or is no longer what it was listed as, is left out and counted; else that is a failure. */
    bool leaves_unreadable;
    void *context;
    uint64_t done, files, bytes; // so far
    // devices, what would lead outside, names that are too long, what could not be read
    uint64_t left_out;
};

/* What is in it comes into `directory`, an open one: what was there stays, but for files of the same name. */
int remote_tree_take(struct remote_tree *tree, int directory, struct burrow_error *err);
/* What is in a local directory goes there; links stay links. */
int remote_tree_send(struct remote_tree *tree, const char *directory, struct burrow_error *err);
