/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a checkpoint, made from its record; see checkpoint_info.h. */
#include "core/snapshot/checkpoint_info_impl.h"

#include "base/mem.h"

void checkpoint_info_take(struct checkpoint_info *out, struct checkpoint_record *record)
{
    *out = (struct checkpoint_info){
        .id = take(record->id),
        .sandbox_id = take(record->sandbox_id),
        .name = take(record->name),
        .parent = take(record->parent),
        .size_bytes = record->size_bytes,
        .created_at = record->created_at,
    };
}

void checkpoint_info_clear(struct checkpoint_info *info)
{
    const char *const strings[] = {info->id, info->sandbox_id, info->name, info->parent};

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    *info = (struct checkpoint_info){0};
}

void checkpoint_infos_take(struct checkpoint_infos *out, struct checkpoint_list *list)
{
    *out = (struct checkpoint_infos){
        .items = xcalloc(list->count + 1, sizeof *out->items),
        .count = list->count,
    };
    for (size_t i = 0; i < list->count; i++)
        checkpoint_info_take(&out->items[i], &list->rows[i]);
}

void checkpoint_infos_clear(struct checkpoint_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        checkpoint_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct checkpoint_infos){0};
}
