/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whole trees of files: measured, written from tables, copied, emptied. Links are never followed
 * below the given directory.
 * Threads: one per object; the tree.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tree_totals {
    uint64_t files;  // entries of every kind
    uint64_t bytes;  // in regular files
    uint64_t digest; // of names, modes, owners and contents, in any order
};

/* Walks all below `dir_fd`. Device nodes, sockets and pipes are refused: no runtime has any but the marks with which
 * a layer says that something below it is gone. */
int tree_measure(int dir_fd, struct tree_totals *out, struct error *err);

/* One thing to put into a tree. Missing directories above it are made (0755, root). */
struct tree_entry {
    const char *path; // relative; NULL ends a table
    mode_t mode;      // with S_IFDIR, S_IFREG or S_IFLNK
    const char *text; // content of a file, target of a link
    uid_t owner;      // and group
};

/* Writes them in order, replacing files and links that are there; existing directories get the
 * mode. */
int tree_write(int dir_fd, const struct tree_entry *entries, struct error *err);

/* Removes everything in the directory `path`, which stays (and is made when missing). */
int tree_empty(int dir_fd, const char *path, struct error *err);

/*
 * Copies `path` (file, link or directory with all in it) from below one directory to the same place
 * below another. Only what everybody may read is taken, no file over 8 MiB, none that holds a
 * private key, no devices. Missing is fine.
 */
int tree_copy_public(int from_fd, int to_fd, const char *path, struct error *err);
