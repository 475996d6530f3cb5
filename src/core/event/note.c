/* SPDX-License-Identifier: Apache-2.0 */
/* Writes events; see note.h. */
#include "core/event/note.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void note_fact(struct note *note, const char *name, const char *value)
{
    if (note->n_facts < NOTE_FACTS && value)
        (void)snprintf(note->facts[note->n_facts++], NOTE_FACT, "%s=%s", name, value);
}

void note_number(struct note *note, const char *name, int64_t value)
{
    if (note->n_facts < NOTE_FACTS)
        (void)snprintf(note->facts[note->n_facts++], NOTE_FACT, "%s=%" PRId64, name, value);
}

int note_put_record(struct core *core, const struct sandbox_record *sandbox,
                    const struct note *note, struct error *err)
{
    const char *facts[NOTE_FACTS + 1] = {0};
    char id[ID_TEXT];

    for (unsigned i = 0; i < note->n_facts; i++)
        facts[i] = note->facts[i];
    autofree char *detail = note->n_facts ? texts_pack(facts) : NULL;
    struct event_record event = {
        .id = id_make(id),
        .sandbox_id = sandbox->id,
        .owner = sandbox->owner,
        .type = note->type,
        .reason = note->reason,
        .detail = detail,
        .created_at = note->now,
    };
    return store_event_add(core->store, &event, err);
}

int note_put(struct live *live, const struct note *note, struct error *err)
{
    return note_put_record(live->core, &live->record, note, err);
}
