/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was used, by day, sandbox, key or label. Days are whole ones (UTC). What living sandboxes have used since they were measured last is told with the next measure.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "model/usage.h"

struct sandboxes;

struct usage_infos {
    struct usage_group_total *items;
    size_t count;
};
void usage_infos_clear(struct usage_infos *infos);

struct usage_query {
    enum usage_group by;
    int64_t from, to;                // whole days from that of `from`, before `to`
    const char *sandbox_id, *key_id; // NULL: of all
    int64_t limit;                   // of entries; the largest by CPU time are told
};
/* Of the actor's member, or with SCOPE_ORGANISATION of all. */
int usage_report(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct usage_query *query, struct usage_infos *out, struct error *err);
