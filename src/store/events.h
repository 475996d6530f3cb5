/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: what happened to a sandbox, in order.
 * Threads: any but loops.
 */
#pragma once
#include "model/event.h"
#include "store/store.h"

struct event_record {
    const char *id;
    const char *sandbox_id;
    int64_t number; // 1, 2, 3 … in its sandbox; from store_event_add
    struct owner owner;
    const char *type;
    const char *reason; // a word, or NULL
    const char *detail; // packed strings NAME=VALUE, or NULL
    int64_t created_at;
};

/* Gives the record its number. ERROR_NOT_FOUND, noun "sandbox", without one. */
int store_event_add(struct store *store, struct event_record *record, struct error *err);

struct event_list {
    struct event_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void event_list_clear(struct event_list *list);
#define autoevents __attribute__((cleanup(event_list_clear))) struct event_list

int store_event_list(struct store *store, const struct event_filter *filter, struct event_list *out,
                     struct error *err);
