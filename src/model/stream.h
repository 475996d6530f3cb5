/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams in a word: their kinds and states, and how to choose among them.
 * Threads: plain values.
 */
#pragma once
#include "model/owner.h"
#include "model/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum stream_kind {
    STREAM_STDIN,
    STREAM_STDOUT,
    STREAM_STDERR,
    STREAM_COMBINED,
    STREAM_USER,
};

enum stream_state {
    STREAM_OPEN,
    STREAM_COMPLETE, // completed_at is set
};

static inline unsigned stream_in(enum stream_state state)
{
    return 1u << state;
}

/* What lists can be narrowed by. */
struct stream_label {
    const char *name;
    const char *value;
};
#define STREAM_LABELS_MAX 64

enum stream_sort {
    STREAM_BY_CREATED,
    STREAM_BY_UPDATED,
    STREAM_BY_NAME,
    STREAM_BY_SIZE,
};

struct stream_filter {
    struct owner owner;
    const char *sandbox_id;
    const char *name;
    const enum stream_kind *kind;      // NULL: all
    const struct stream_label *labels; // all must match; at most STREAM_FILTER_LABELS
    size_t n_labels;
    enum stream_sort sort;
    bool is_descending;
    struct page page;
};
#define STREAM_FILTER_LABELS 16
#define STREAM_PAGE_MAX 1000
