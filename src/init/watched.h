/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The directories that one watcher has the kernel look at, and where each is below the first. Names are kept in a tree, so that a
 * directory that moves takes all below it along.
 * Threads: one per object.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WATCHED_CHAINS 256

struct watched_dir {
    int number;                 // the kernel's
    struct watched_dir *parent; // NULL: the first
    struct watched_dir *children, *sibling;
    struct watched_dir *next;    // in its chain
    struct watched_dir *to_scan; // behind it, while its entries are to be looked at
    bool is_new;                 // what was in it when it was first looked at has not been told
    char *name;                  // in its parent
};

struct watched {
    int inotify; // borrowed
    struct watched_dir *top;
    struct watched_dir *chains[WATCHED_CHAINS]; // by number
    unsigned count;
};

/* The kernel already looks at it. Takes a place in the tree; a number that is known moves there. NULL: no memory. */
struct watched_dir *watched_add(struct watched *watched, int number, struct watched_dir *parent,
                                const char *name);
struct watched_dir *watched_find(struct watched *watched, int number);
struct watched_dir *watched_child(struct watched_dir *parent, const char *name);
/* False: no memory; it is where it was. */
bool watched_move(struct watched_dir *dir, struct watched_dir *parent, const char *name);

/* With all below; the kernel stops looking at them. */
void watched_remove(struct watched *watched, struct watched_dir *dir);

/* The way from the first to an entry (name "" or NULL: to the directory itself) without a slash in front; false: longer than `size`. */
bool watched_path(const struct watched_dir *dir, const char *name, char *out, size_t size);
