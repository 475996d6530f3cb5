/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and sums over an organisation's sandboxes; see statistics.h. */
#include "core/sandbox/statistics.h"

#include "core/sandbox/measure.h"
#include "core/sandbox/registry.h"
#include "store/sandboxes.h"
#include "store/usage.h"

#include <stdlib.h>
#include <string.h>

/* What living sandboxes have used since they were measured last. */
static int64_t pending(struct sandboxes *sandboxes, const struct owner *owner, int64_t from,
                       int64_t to)
{
    struct sandbox **all = NULL;
    size_t count = sandboxes->registry ? registry_all(sandboxes->registry, &all) : 0;
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++) {
        const char *organisation = all[i]->record.owner.organisation;
        if (all[i]->is_registered &&
            (!owner->organisation ||
             (organisation && strcmp(organisation, owner->organisation) == 0)))
            sum += measure_pending(all[i], from, to);
        sandbox_free(all[i]);
    }
    free(all);
    return sum;
}

int statistics_get(struct sandboxes *sandboxes, const struct actor *actor, int64_t from, int64_t to,
                   struct statistics *out, struct error *err)
{
    struct owner owner = actor_filter(actor);
    int64_t counts[SANDBOX_STATES] = {0};
    struct statistics found = {0};

    if (store_sandbox_count(sandboxes->store, &owner, counts, err) < 0 ||
        store_usage_sum(sandboxes->store, &owner, from, to, &found.used, err) < 0)
        return -1;
    for (int state = 0; state < SANDBOX_STATES; state++)
        if (SANDBOX_ALIVE & 1u << state)
            found.active += counts[state];
    found.used.memory_mib_ms += pending(sandboxes, &owner, from, to);
    found.running = counts[SANDBOX_RUNNING];
    found.idle = counts[SANDBOX_IDLE];
    found.creating = counts[SANDBOX_CREATING];
    *out = found;
    return 0;
}
