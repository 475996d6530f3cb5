/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots in a word: their states, and how to choose among them.
 * Threads: plain values.
 */
#pragma once
#include "model/owner.h"
#include "model/page.h"

#include <stdbool.h>
#include <stdint.h>

enum snapshot_state {
    SNAPSHOT_BUILDING, // announced, not filled yet
    SNAPSHOT_READY,
    SNAPSHOT_FAILED,
    SNAPSHOT_DELETED, // deleted_at is set; stays for the lineage of others
};

static inline unsigned snapshot_in(enum snapshot_state state)
{
    return 1u << state;
}

#define SNAPSHOT_NOT_COUNTED (-1)

enum snapshot_sort { SNAPSHOT_BY_CREATED, SNAPSHOT_BY_NAME, SNAPSHOT_BY_SIZE, SNAPSHOT_BY_FILES };

struct snapshot_filter {
    struct owner owner; // organisation NULL: of all
    bool is_own;        // without a member: those that are no member's, instead of everybody's
    const char *sandbox_id;
    const char *name;
    /* Those that builds from steps keep for themselves. */
    enum { SNAPSHOT_STEPS_NOT, SNAPSHOT_STEPS_ALONE, SNAPSHOT_STEPS_TOO } with_steps;
    bool is_public_only;
    bool is_here;    // only those of this node
    unsigned states; // 0: ready ones
    enum snapshot_sort sort;
    bool is_descending;
    struct page page;
};
