/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a sandbox, for those who see it; see event.h. */
#include "core/event/event.h"

#include "core/core_impl.h"
#include "core/event/event_info_impl.h"
#include "core/sandbox/lookup.h"
#include "store/sandboxes.h"

int event_list(struct core *core, const struct actor *actor, const struct event_filter *filter,
               struct event_infos *out, struct error *err)
{
    autosandbox row = {0};
    autoevents found = {0};

    lookup_settle(core, filter->sandbox_id);
    if (store_sandbox_get(core->store, filter->sandbox_id, &row, err) < 0)
        return -1;
    if (!actor_sees(actor, &row.owner)) {
        error_set(err, ERROR_NOT_FOUND, "there is no sandbox '%s'", filter->sandbox_id);
        return error_about(err, "sandbox", NULL);
    }
    if (store_event_list(core->store, filter, &found, err) < 0)
        return -1;
    event_infos_take(out, &found);
    return 0;
}
