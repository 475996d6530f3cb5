/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of an event.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "model/event.h"

#include <stddef.h>

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct event_info {
    int64_t serial; // among all events of the server, in the order of their commits
    const char *id;
    const char *sandbox_id;   // NULL: of none
    int64_t number;           // 1, 2, 3 … in its sandbox
    struct owner owner;       // whose it is, also when the sandbox is forgotten
    const char *type;         // one of event.h
    const char *reason;       // a word
    const char *const *facts; // NAME=VALUE, NULL-terminated
    int64_t created_at;
};

void event_info_clear(struct event_info *info);

struct event_infos {
    struct event_info *items;
    size_t count;
    int64_t total;         // of all pages
    struct page_mark next; // where the next page begins; see model/page.h
};
void event_infos_clear(struct event_infos *infos);
