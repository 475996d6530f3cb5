/* SPDX-License-Identifier: Apache-2.0 */
/* What was used; see usage_report.h. */
#include "core/sandbox/usage_report.h"

#include "core/sandbox/sandboxes.h"
#include "store/usage_days.h"

#include <stdlib.h>

void usage_infos_clear(struct usage_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        free(infos->items[i].id);
    free(infos->items);
    *infos = (struct usage_infos){0};
}

int usage_report(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct usage_query *query, struct usage_infos *out, struct error *err)
{
    const struct usage_filter filter = {
        .owner = actor_filter(actor),
        .from = query->from,
        .to = query->to,
        .by = query->by,
        .sandbox_id = query->sandbox_id,
        .key_id = query->key_id,
        .limit = query->limit,
    };
    autousages found = {0};

    if (store_usage_list(sandboxes->store, &filter, &found, err) < 0)
        return -1;
    *out = (struct usage_infos){found.rows, found.count};
    found = (struct usage_list){0};
    return 0;
}
