/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a snapshot, made from its record; see snapshot_info.h. */
#include "core/snapshot/snapshot_info_impl.h"

#include "base/mem.h"
#include "base/strings.h"

void snapshot_info_take(struct snapshot_info *out, struct snapshot_record *record)
{
    *out = (struct snapshot_info){
        .owner = owner_take(&record->owner),
        .id = take(record->id),
        .key_id = take(record->key_id),
        .parent_id = take(record->parent_id),
        .sandbox_id = take(record->sandbox_id),
        .runtime = take(record->runtime),
        .name = take(record->name),
        .tag = take(record->tag),
        .description = take(record->description),
        .message = take(record->message),
        .metadata = take(record->metadata),
        .git = take(record->git),
        .upload_secret = take(record->upload_secret),
        .error = take(record->error),
        .env = strings_list(record->env),
        .is_public = record->is_public,
        .state = record->state,
        .size_bytes = record->size_bytes,
        .file_count = record->file_count,
        .created_at = record->created_at,
        .updated_at = record->updated_at,
        .deleted_at = record->deleted_at,
    };
}

void snapshot_info_clear(struct snapshot_info *info)
{
    const char *const strings[] = {
        info->id,   info->key_id,        info->parent_id,   info->sandbox_id, info->runtime,
        info->name, info->tag,           info->description, info->message,    info->metadata,
        info->git,  info->upload_secret, info->error};

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    owner_clear(&info->owner);
    free((void *)info->env);
    *info = (struct snapshot_info){0};
}

void snapshot_infos_take(struct snapshot_infos *out, struct snapshot_list *list)
{
    *out = (struct snapshot_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                   .count = list->count,
                                   .total = list->total,
                                   .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        snapshot_info_take(&out->items[i], &list->rows[i]);
}

void snapshot_infos_clear(struct snapshot_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        snapshot_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct snapshot_infos){0};
}
