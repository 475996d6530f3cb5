/* SPDX-License-Identifier: Apache-2.0 */
/* Runtimes: what sandboxes can be started from. */
#include "core/runtime/runtime.h"
#include "front/agentuity/agentuity_impl.h"
#include "front/agentuity/page.h"

#include <string.h>

static void write_runtime_entry(struct json_writer *json, const struct runtime_entry *entry)
{
    json_map_begin(json);
    member_id(json, "id", RUNTIME_PREFIX, entry->id);
    member_text(json, "name", entry->name);
    member_text(json, "description", entry->description);
    member_time(json, "createdAt", entry->created_at);
    json_key(json, "requirements");
    json_map_begin(json);
    member_bool(json, "networkEnabled", false);
    json_map_end(json);
    json_map_end(json);
}

/* GET /sandbox/runtimes */
static int list_runtimes(struct call *call, struct error *err)
{
    const char *sort = query_text(call->query, "sort");
    bool is_by_name = sort && strcmp(sort, "name") == 0;
    struct page page;
    autoruntimes found = {0};
    autoreply reply = {0};

    if (page_read(call->query, &page, err) < 0 ||
        runtime_list(call->core->runtimes, is_by_name ? RUNTIME_BY_NAME : RUNTIME_BY_CREATED,
                     page_is_descending(call->query, true), &page, &found, err) < 0)
        return -1;
    envelope_data(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "runtimes");
    json_list_begin(&reply.json);
    for (size_t i = 0; i < found.count; i++)
        write_runtime_entry(&reply.json, &found.entries[i]);
    json_list_end(&reply.json);
    member_integer(&reply.json, "total", (int64_t)found.total);
    json_map_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

static const char *const sorts[] = {"created", "name", NULL};
static const struct parameter list_parameters[] = {PAGE_LIMIT_PARAMETER,
                                                   PAGE_OFFSET_PARAMETER,
                                                   {"sort", PARAMETER_WORD, sorts, NULL},
                                                   PAGE_DIRECTION_PARAMETER,
                                                   {0}};

const struct route agentuity_runtime_routes[] = {
    {"GET", "/sandbox/runtimes", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, list_runtimes,
     "what sandboxes can be started from", .query = list_parameters, .answers = answers_runtimes},
    {0},
};
