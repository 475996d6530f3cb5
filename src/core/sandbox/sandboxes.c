/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the room of sandboxes; see sandboxes.h. */
#include "core/sandbox/sandboxes.h"

#include "base/mem.h"
#include "core/sandbox/gauge_history.h"
#include "core/sandbox/monitor.h"
#include "core/sandbox/network_refusal.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/registry.h"

int sandboxes_open(const struct sandboxes *parts, struct sandboxes **out, struct error *err)
{
    autoptr(sandboxes) sandboxes = xnew(struct sandboxes);

    *sandboxes = *parts;
    lock_init(&sandboxes->endings.lock, LOCK_ENDINGS);
    lock_condition_init(&sandboxes->endings.removed);
    sandboxes->registry = registry_new();
    sandboxes->refusals = refusals_new(sandboxes);
    sandboxes->histories = gauge_histories_new();
    if (pool_new(sandboxes, &sandboxes->pool, err) < 0 ||
        monitor_new(sandboxes, &sandboxes->monitor, err) < 0)
        return -1;
    *out = take(sandboxes);
    return 0;
}

void sandboxes_free(struct sandboxes *sandboxes)
{
    if (!sandboxes)
        return;
    pool_free(sandboxes->pool);
    registry_free(sandboxes->registry);
    refusals_free(sandboxes->refusals);
    monitor_free(sandboxes->monitor); // what was posted to its loop is run here
    gauge_histories_free(sandboxes->histories);
    lock_condition_clear(&sandboxes->endings.removed);
    lock_clear(&sandboxes->endings.lock);
    free(sandboxes);
}
