/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a sandbox; see sandbox_event.h. */
#include "core/sandbox/sandbox_event.h"

#include "core/event/event_info_impl.h"
#include "core/sandbox/lookup.h"

int event_list(struct sandboxes *sandboxes, const struct actor *actor,
               const struct event_filter *filter, struct event_infos *out, struct error *err)
{
    autosandbox row = {0};
    autoevents found = {0};

    lookup_settle(sandboxes, filter->sandbox_id);
    if (store_sandbox_get(sandboxes->store, filter->sandbox_id, &row, err) < 0)
        return -1;
    if (!actor_sees_in(actor, &row.owner, row.id))
        return error_missing(err, "sandbox", filter->sandbox_id);
    if (store_event_list(sandboxes->store, filter, &found, err) < 0)
        return -1;
    event_infos_take(out, &found);
    return 0;
}

void event_settle(struct sandboxes *sandboxes, const char *sandbox_id)
{
    lookup_settle(sandboxes, sandbox_id);
}

int event_put(struct sandbox *sandbox, const struct event *event, struct error *err)
{
    return event_write(sandbox->sandboxes->store, sandbox->id, &sandbox->record.owner, event, err);
}
