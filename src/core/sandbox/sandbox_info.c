/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a sandbox, made from its record; see sandbox_info.h. */
#include "core/sandbox/sandbox_info_impl.h"

#include "base/mem.h"

void sandbox_info_take(struct sandbox_info *out, struct sandbox_record *record)
{
    *out = (struct sandbox_info){
        .id = take(record->id),
        .owner = owner_take(&record->owner),
        .key_id = take(record->key_id),
        .name = take(record->name),
        .description = take(record->description),
        .metadata = take(record->metadata),
        .scopes = take(record->scopes),
        .dependencies = take(record->dependencies),
        .packages = take(record->packages),
        .mounts = take(record->mounts),
        .labels = take(record->labels),
        .asked = take(record->asked),
        .front_data = take(record->front_data),
        .mode = record->mode,
        .runtime = take(record->runtime),
        .snapshot = take(record->snapshot),
        .command = command_take(&record->command),
        .home = take(record->home),
        .execution_id = take(record->execution_id),
        .max_executions = record->max_executions,
        .limits = record->limits,
        .network = {.is_enabled = record->network.is_enabled,
                    .allow = take(record->network.allow),
                    .deny = take(record->network.deny),
                    .otherwise = record->network.otherwise,
                    .is_observed = record->network.is_observed,
                    .rate_bytes = record->network.rate_bytes},
        .network_generation = record->network_generation,
        .network_refused = record->network_refused,
        .idle_timeout_ms = record->idle_timeout_ms,
        .paused_timeout_ms = record->paused_timeout_ms,
        .on_idle = record->on_idle,
        .expires_at = record->expires_at,
        .on_expiry = record->on_expiry,
        .keep_ms = record->keep_ms,
        .state = record->state,
        .reason = take(record->reason),
        .error = take(record->error),
        .exit_code = record->exit_code,
        .created_at = record->created_at,
        .updated_at = record->updated_at,
        .started_at = record->started_at,
        .paused_at = record->paused_at,
        .ended_at = record->ended_at,
        .deleted_at = record->deleted_at,
        .used = {record->execution_count, record->cpu_ms, record->memory_mib_ms,
                 record->egress_bytes},
    };
}

void sandbox_info_clear(struct sandbox_info *info)
{
    const char *const strings[] = {
        info->id,           info->key_id,   info->name,   info->description, info->metadata,
        info->dependencies, info->packages, info->scopes, info->asked,       info->runtime,
        info->snapshot,     info->home,     info->reason, info->error,       info->execution_id,
        info->front_data,   info->mounts,
    };

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    free((void *)info->labels);
    free((void *)info->network.allow);
    free((void *)info->network.deny);
    owner_clear(&info->owner);
    command_clear(&info->command);
    *info = (struct sandbox_info){0};
}

void sandbox_infos_take(struct sandbox_infos *out, struct sandbox_list *list)
{
    *out = (struct sandbox_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                  .count = list->count,
                                  .total = list->total,
                                  .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        sandbox_info_take(&out->items[i], &list->rows[i]);
}

void sandbox_infos_clear(struct sandbox_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        sandbox_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct sandbox_infos){0};
}
