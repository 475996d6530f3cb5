/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Goes through a directory and, where the caller enters them, those below; any depth, with bounded
 * memory, file descriptors and stack. Never follows a link. A directory moved away meanwhile ends
 * the walk with ESTALE when its way back is no longer known, so that it never leaves the tree.
 * Threads: one per object.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALK_MAX_DEPTH 65536u
#define WALK_MAX_PATH (4u << 20)

struct walk_level;

struct walk {
    struct walk_level *levels;
    size_t depth; // levels in use
    size_t capacity;
    char *path; // of what walk_next gave last, relative to the start
    size_t path_capacity;
    size_t name_at; // where its last part begins
    // of an entry, as its directory had it (DT_REG …); DT_UNKNOWN where that does not tell
    uint8_t type;
    bool is_removing; // what was seen is gone: a directory opened again is read from its start
};

enum walk_step {
    WALK_FAILED = -1, // errno is set
    WALK_END,
    WALK_ENTRY, // an entry of the directory walk_dir
    WALK_LEAVE, // a directory that was entered is through; it is an entry of walk_dir
};

/* Starts in an open directory (taken also on failure; not O_PATH). -1 with errno. */
int walk_init(struct walk *walk, int fd, bool is_removing);
void walk_clear(struct walk *walk);

enum walk_step walk_next(struct walk *walk);

/* Goes into the entry walk_next gave last. -1 with errno (ENOTDIR, EACCES, …), and the walk goes on
 * without. */
int walk_enter(struct walk *walk);

/* The directory in which walk->path's last part is an entry. */
int walk_dir(const struct walk *walk);

static inline const char *walk_name(const struct walk *walk)
{
    return walk->path + walk->name_at;
}
