/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and sums over an organisation's sandboxes; see statistics.h. */
#include "core/sandbox/statistics.h"

#include "core/sandbox/sandboxes.h"
#include "store/sandboxes.h"
#include "store/usage.h"

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
    found.running = counts[SANDBOX_RUNNING];
    found.idle = counts[SANDBOX_IDLE];
    found.creating = counts[SANDBOX_CREATING];
    *out = found;
    return 0;
}
