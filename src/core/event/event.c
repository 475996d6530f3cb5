/* SPDX-License-Identifier: Apache-2.0 */
/* Writes events; see event.h. */
#include "core/event/event.h"

#include "base/auto.h"
#include "base/id.h"
#include "base/strings.h"
#include "store/events.h"

#include <inttypes.h>
#include <stdio.h>

void event_fact(struct event *event, const char *name, const char *value)
{
    if (event->n_facts < EVENT_FACTS && value)
        (void)snprintf(event->facts[event->n_facts++], EVENT_FACT, "%s=%s", name, value);
}

void event_number(struct event *event, const char *name, int64_t value)
{
    if (event->n_facts < EVENT_FACTS)
        (void)snprintf(event->facts[event->n_facts++], EVENT_FACT, "%s=%" PRId64, name, value);
}

int event_write_numbered(struct store *store, const char *sandbox_id, const struct owner *owner,
                         const struct event *event, int64_t *serial, struct error *err)
{
    const char *facts[EVENT_FACTS + 1] = {0};
    char id[ID_TEXT];

    for (unsigned i = 0; i < event->n_facts; i++)
        facts[i] = event->facts[i];
    autofree char *detail = event->n_facts ? strings_pack(facts) : NULL;
    struct event_record record = {
        .id = id_make(id),
        .sandbox_id = sandbox_id,
        .owner = *owner,
        .type = event->type,
        .reason = event->reason,
        .detail = detail,
        .created_at = event->now,
    };
    if (store_event_add(store, &record, err) < 0)
        return -1;
    *serial = record.serial;
    return 0;
}

int event_write(struct store *store, const char *sandbox_id, const struct owner *owner,
                const struct event *event, struct error *err)
{
    int64_t serial;

    return event_write_numbered(store, sandbox_id, owner, event, &serial, err);
}
