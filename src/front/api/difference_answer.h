/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has changed between two moments, as it is told.
 * Threads: plain values.
 */
#pragma once
#include "base/arena.h"
#include "core/snapshot/difference.h"
#include "web/answer_table.h"

struct difference_answer {
    const char *from, *to;
    uint64_t totals[DIFFERENCE_KINDS];
    struct answer_list entries;
    bool is_truncated;
    const char *const *left_out; // NULL: nothing
};
extern const char *const difference_words[DIFFERENCE_KINDS]; // "added" …
extern const struct answer_field difference_answer_fields[];

/* All but `from`, `to` and `left_out`. Borrows from what was found; its own memory is the arena's. */
void difference_answer_init(struct difference_answer *answer, struct arena *arena,
                            const struct difference *found);
