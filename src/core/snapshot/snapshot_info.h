/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a snapshot.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "model/snapshot.h"

#include <stddef.h>

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct snapshot_info {
    const char *id;
    struct owner owner;
    const char *key_id;     // by which it was made
    const char *parent_id;  // the snapshot its sandbox was made from
    const char *sandbox_id; // what it was taken of; NULL: built
    const char *runtime;    // at the bottom
    const char *name;
    const char *tag;
    const char *description;
    const char *message;
    const char *metadata; // JSON, as it was given; likewise git
    const char *git;
    const char *const
        *env; // NAME=VALUE, NULL-terminated: of all commands in sandboxes made from it
    const char *upload_secret; // of one being built
    bool is_public;
    enum snapshot_state state;
    const char *error;
    int64_t size_bytes;
    int64_t file_count; // SNAPSHOT_NOT_COUNTED until somebody has
    int64_t created_at, updated_at, deleted_at;
};
void snapshot_info_clear(struct snapshot_info *info);

struct snapshot_infos {
    struct snapshot_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void snapshot_infos_clear(struct snapshot_infos *infos);
