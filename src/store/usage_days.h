/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was used, by day, sandbox, key and label: kept when the sandboxes are forgotten, merged when it is old.
 * Threads: any but loops.
 */
#pragma once
#include "model/usage.h"
#include "store/store.h"

/* Commands that this key (NULL: anybody of the organisation) has run since `day`, also those that run now; no stranger's. */
int store_usage_runs(struct store *store, const char *organisation, const char *key_id, int64_t day,
                     int64_t *out, struct error *err);

/* One more of this key ("": no key's) in a sandbox, which no execution's record tells of. */
int store_usage_add_run(struct store *store, const char *sandbox_id, const char *key_id,
                        int64_t now, struct error *err);

/* One entry for each sandbox, key, label or day that used something in whole days from `from`, before `to`; largest first but days, which are in order. */
struct usage_filter {
    struct owner owner; // its organisation and member; NULL matches all
    int64_t from, to;
    enum usage_group by;
    const char *sandbox_id, *key_id; // NULL: of all
    int64_t limit;
};
struct usage_list {
    struct usage_group_total *rows;
    size_t count;
};
void usage_list_clear(struct usage_list *list);
#define autousages __attribute__((cleanup(usage_list_clear))) struct usage_list
int store_usage_list(struct store *store, const struct usage_filter *filter, struct usage_list *out,
                     struct error *err);

/* Adds up the sandboxes of up to `limit` days before `before`, and forgets days before `forget`. *changed: rows that are gone. */
int store_usage_merge(struct store *store, int64_t before, int64_t forget, int64_t *changed,
                      struct error *err);
