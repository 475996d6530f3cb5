/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which files a run has changed, as it tells it.
 * Threads: plain values.
 */
#pragma once
#include "core/snapshot/difference.h"
#include "web/answer_table.h"

#define CHANGES_MAX 1000 // entries; more are counted

struct changes_answer {
    uint64_t added, changed, removed;
    struct answer_list entries; // of struct difference_entry
    bool is_truncated;
};
extern const struct answer_field changes_answer_fields[];

/* `difference` is borrowed. */
void changes_answer_init(struct changes_answer *answer, const struct difference *difference);
