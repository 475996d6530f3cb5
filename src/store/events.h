/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events: what happened, in order: numbered in their sandbox, and all together (serial).
 * Threads: any but loops.
 */
#pragma once
#include "model/event.h"
#include "store/store.h"

struct event_record {
    int64_t serial; // among all, in the order of commits, with gaps; from store_event_add
    const char *id;
    const char *sandbox_id; // NULL: of none
    int64_t number;         // 1, 2, 3 … in its sandbox, 0 without one; from store_event_add
    struct owner owner;
    const char *type;
    const char *reason; // a word, or NULL
    const char *detail; // packed strings NAME=VALUE, or NULL
    int64_t created_at;
};

/* Gives the record its numbers. ERROR_NOT_FOUND, noun "sandbox", where there is none of its sandbox's id. */
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

/* Which numbers there are. */
struct event_bounds {
    int64_t forgotten; // above this one, no event is missing
    int64_t last;      // that was given
};
int store_event_bounds(struct store *store, struct event_bounds *out, struct error *err);

/*
 * Those that `scan` wants of the next so many, in order of their serials. *reached is up to which serial it has looked: where to go on.
 */
int store_event_scan(struct store *store, const struct event_scan *scan, struct event_list *out,
                     int64_t *reached, struct error *err);

/*
 * Forgets those from before `before`, and those that are more than `most` (0: any number), at most `limit` of them at once. Of a sandbox that is
 * still known they stay in its own list, until it goes. Returns how far *forgotten has moved.
 */
int store_event_purge(struct store *store, int64_t before, int64_t most, int64_t limit,
                      int64_t *moved, struct error *err);

/*
 * Says that numbers may be missing that somebody was told: leaves a gap, once for each `boot` (any word for a start of the machine). What was
 * committed last may be lost with its power, and none of its numbers must mean another event.
 */
int store_event_resume(struct store *store, const char *boot, struct error *err);
