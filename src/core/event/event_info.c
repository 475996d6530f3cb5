/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of an event, made from its record; see event_info.h. */
#include "core/event/event_info_impl.h"

#include "base/mem.h"
#include "base/strings.h"

/* Moves what the record has; it can only be cleared afterwards. */
static void event_info_take(struct event_info *out, struct event_record *record)
{
    *out = (struct event_info){
        .serial = record->serial,
        .id = take(record->id),
        .sandbox_id = take(record->sandbox_id),
        .type = take(record->type),
        .reason = take(record->reason),
        .facts = strings_list(record->detail),
        .number = record->number,
        .owner = owner_take(&record->owner),
        .created_at = record->created_at,
    };
}

void event_info_clear(struct event_info *info)
{
    const char *const strings[] = {info->id, info->sandbox_id, info->type, info->reason};

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    free((void *)info->facts);
    owner_clear(&info->owner);
    *info = (struct event_info){0};
}

void event_infos_take(struct event_infos *out, struct event_list *list)
{
    *out = (struct event_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                .count = list->count,
                                .total = list->total,
                                .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        event_info_take(&out->items[i], &list->rows[i]);
}

void event_infos_clear(struct event_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        event_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct event_infos){0};
}
