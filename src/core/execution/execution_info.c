/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of an execution, made from its record; see execution_info.h. */
#include "core/execution/execution_info_impl.h"

#include "base/mem.h"

void execution_info_take(struct execution_info *out, struct execution_record *record)
{
    *out = (struct execution_info){
        .id = take(record->id),
        .sandbox_id = take(record->sandbox_id),
        .kind = record->kind,
        .number = record->number,
        .owner = owner_take(&record->owner),
        .command = command_take(&record->command),
        .metadata = take(record->metadata),
        .asked = take(record->asked),
        .tag = take(record->tag),
        .output_cap_bytes = record->output_cap_bytes,
        .has_timestamps = record->has_timestamps,
        .stdin_stream = take(record->stdin_stream),
        .stdout_stream = take(record->stdout_stream),
        .stderr_stream = take(record->stderr_stream),
        .is_output_expired = record->is_output_expired,
        .state = record->state,
        .exit = record->exit,
        .error = take(record->error),
        .created_at = record->created_at,
        .updated_at = record->updated_at,
        .started_at = record->started_at,
        .ended_at = record->ended_at,
        .stop_at = record->stop_at,
        .stop_reason = take(record->stop_reason),
    };
}

void execution_info_clear(struct execution_info *info)
{
    const char *const strings[] = {
        info->id,           info->sandbox_id,    info->metadata,
        info->asked,        info->tag,           info->error,
        info->stdin_stream, info->stdout_stream, info->stderr_stream,
        info->stop_reason,
    };

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    owner_clear(&info->owner);
    command_clear(&info->command);
    *info = (struct execution_info){0};
}

void execution_infos_take(struct execution_infos *out, struct execution_list *list)
{
    *out = (struct execution_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                    .count = list->count,
                                    .total = list->total,
                                    .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        execution_info_take(&out->items[i], &list->rows[i]);
}

void execution_infos_clear(struct execution_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        execution_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct execution_infos){0};
}

int64_t execution_info_exit_code(const struct execution_info *info)
{
    if (info->exit.code >= 0)
        return info->exit.code;
    if (info->exit.signal > 0)
        return 128 + info->exit.signal;
    if (info->exit.cause == EXECUTION_NOT_FOUND)
        return 127;
    if (info->exit.cause == EXECUTION_NOT_RUN)
        return 126;
    if (info->state == EXECUTION_TIMED_OUT)
        return 124;
    return info->state == EXECUTION_CANCELLED ? 137 : 1;
}
