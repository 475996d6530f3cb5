/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of webhooks, made from their records; see webhook_info.h. */
#include "core/webhook/webhook_info.h"

#include "base/mem.h"
#include "core/webhook/webhook_impl.h"

/* Moves what the record has; it can only be cleared afterwards. */
void webhook_info_take(struct webhook_info *out, struct webhook_record *record)
{
    *out = (struct webhook_info){
        .id = take(record->id),
        .owner = owner_take(&record->owner),
        .key_id = take(record->key_id),
        .name = take(record->name),
        .url = take(record->url),
        .secret = take(record->secret),
        .kinds = take(record->kinds),
        .sandbox_id = take(record->sandbox_id),
        .is_enabled = record->is_enabled,
        .disabled_reason = take(record->disabled_reason),
        .event_cursor = record->event_cursor,
        .attempts = record->attempts,
        .failing_since = record->failing_since,
        .next_at = record->next_at,
        .delivery_count = record->delivery_count,
        .created_at = record->created_at,
        .updated_at = record->updated_at,
    };
}

void webhook_info_clear(struct webhook_info *info)
{
    const char *const strings[] = {info->id,     info->key_id,     info->name,           info->url,
                                   info->secret, info->sandbox_id, info->disabled_reason};

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    free((void *)info->kinds);
    owner_clear(&info->owner);
    *info = (struct webhook_info){0};
}

void webhook_infos_clear(struct webhook_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        webhook_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct webhook_infos){0};
}

void delivery_infos_take(struct delivery_infos *out, struct delivery_list *list)
{
    *out = (struct delivery_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                   .count = list->count,
                                   .next = list->next};
    for (size_t i = 0; i < list->count; i++) {
        struct delivery_record *record = &list->rows[i];
        out->items[i] = (struct delivery_info){
            .id = take(record->id),
            .event_number = record->event_serial,
            .event_kind = take(record->event_kind),
            .state = record->state,
            .status = record->status,
            .attempts = record->attempts,
            .error = take(record->error),
            .duration_ms = record->duration_ms,
            .created_at = record->created_at,
            .updated_at = record->updated_at,
        };
    }
}

void delivery_infos_clear(struct delivery_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++) {
        free((char *)infos->items[i].id);
        free((char *)infos->items[i].event_kind);
        free((char *)infos->items[i].error);
    }
    free(infos->items);
    *infos = (struct delivery_infos){0};
}
