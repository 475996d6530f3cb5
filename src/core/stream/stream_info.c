/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a stream, made from its record; see stream_info.h. */
#include "core/stream/stream_info_impl.h"

#include "base/mem.h"

void stream_info_take(struct stream_info *out, struct stream_record *record)
{
    *out = (struct stream_info){
        .owner = owner_take(&record->owner),
        .id = take(record->id),
        .sandbox_id = take(record->sandbox_id),
        .execution_id = take(record->execution_id),
        .name = take(record->name),
        .metadata = take(record->metadata),
        .headers = take(record->headers),
        .kind = record->kind,
        .state = record->state,
        .size_bytes = record->size_bytes,
        .is_truncated = record->is_truncated,
        .created_at = record->created_at,
        .updated_at = record->updated_at,
        .completed_at = record->completed_at,
        .expires_at = record->expires_at,
    };
}

void stream_info_clear(struct stream_info *info)
{
    const char *const strings[] = {info->id,   info->sandbox_id, info->execution_id,
                                   info->name, info->metadata,   info->headers};

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    owner_clear(&info->owner);
    *info = (struct stream_info){0};
}

void stream_infos_take(struct stream_infos *out, struct stream_list *list)
{
    *out = (struct stream_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                 .count = list->count,
                                 .total = list->total,
                                 .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        stream_info_take(&out->items[i], &list->rows[i]);
}

void stream_infos_clear(struct stream_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        stream_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct stream_infos){0};
}
