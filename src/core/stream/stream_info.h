/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of a stream.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "model/stream.h"

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct stream_info {
    const char *id;
    const char *sandbox_id;   // NULL: a stream of its own
    const char *execution_id; // likewise
    struct owner owner;
    enum stream_kind kind;
    const char *name;
    const char *metadata; // JSON, as it was given; likewise headers
    const char *headers;
    enum stream_state state;
    int64_t size_bytes;
    bool is_truncated; // bytes were dropped
    int64_t created_at, updated_at, completed_at, expires_at;
};
void stream_info_clear(struct stream_info *info);

struct stream_infos {
    struct stream_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void stream_infos_clear(struct stream_infos *infos);
