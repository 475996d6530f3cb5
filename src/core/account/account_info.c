/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of organisations and keys, made from their records; see account_info.h. */
#include "core/account/account_info_impl.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/account/mcp_tool.h"
#include "core/account/scope.h"

#include <string.h>

void organisation_info_take(struct organisation_info *out, struct organisation_record *record)
{
    *out = (struct organisation_info){
        .id = take(record->id),
        .name = take(record->name),
        .ceilings = record->ceilings,
        .created_at = record->created_at,
    };
}

void organisation_info_clear(struct organisation_info *info)
{
    free((char *)info->id);
    free((char *)info->name);
    *info = (struct organisation_info){0};
}

void ssh_key_info_take(struct ssh_key_info *out, struct ssh_key_record *record)
{
    *out = (struct ssh_key_info){
        .fingerprint = take(record->fingerprint),
        .type = take(record->type),
        .comment = take(record->comment),
        .public_key = take(record->public_key),
        .name = take(record->name),
        .member = take(record->member),
        .key_id = take(record->key_id),
        .created_at = record->created_at,
        .used_at = record->used_at,
    };
}

void ssh_key_info_clear(struct ssh_key_info *info)
{
    const char *const strings[] = {info->fingerprint, info->type,   info->comment, info->public_key,
                                   info->name,        info->member, info->key_id};

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    *info = (struct ssh_key_info){0};
}

void ssh_key_infos_take(struct ssh_key_infos *out, struct ssh_key_list *list)
{
    *out = (struct ssh_key_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                                  .count = list->count,
                                  .total = list->total,
                                  .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        ssh_key_info_take(&out->items[i], &list->rows[i]);
}

void ssh_key_infos_clear(struct ssh_key_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        ssh_key_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct ssh_key_infos){0};
}

void key_info_take(struct key_info *out, struct key_record *record)
{
    *out = (struct key_info){
        .id = take(record->id),
        .prefix = take(record->prefix),
        .name = take(record->name),
        .member = take(record->member),
        .made_by = take(record->made_by),
        .sandbox_id = take(record->sandbox_id),
        .scopes = scopes_read(record->scopes),
        .is_admin = (scopes_read(record->scopes) & SCOPE_ADMIN) != 0,
        .runtimes = take(record->runtimes),
        .has_no_network = record->has_no_network,
        .network_allow = take(record->network_allow),
        .tools = mcp_tools_read(record->tools),
        .selector = take(record->selector),
        .quota = record->quota,
        .created_at = record->created_at,
        .used_at = record->used_at,
        .expires_at = record->expires_at,
        .revoked_at = record->revoked_at,
    };
}

void key_info_clear(struct key_info *info)
{
    const char *const strings[] = {info->id,      info->prefix,     info->name,    info->member,
                                   info->made_by, info->sandbox_id, info->selector};

    free((void *)info->runtimes);
    free((void *)info->network_allow);

    for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
        free((char *)strings[i]);
    *info = (struct key_info){0};
}

bool key_info_is_in_use(const struct key_info *info)
{
    return !info->revoked_at && (!info->expires_at || info->expires_at > (int64_t)clock_wall_ms());
}

void key_infos_take(struct key_infos *out, struct key_list *list)
{
    *out = (struct key_infos){.items = xcalloc(list->count + 1, sizeof *out->items),
                              .count = list->count,
                              .total = list->total,
                              .next = list->next};
    for (size_t i = 0; i < list->count; i++)
        key_info_take(&out->items[i], &list->rows[i]);
}

void key_infos_clear(struct key_infos *infos)
{
    for (size_t i = 0; i < infos->count; i++)
        key_info_clear(&infos->items[i]);
    free(infos->items);
    *infos = (struct key_infos){0};
}
