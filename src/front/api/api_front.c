/* SPDX-License-Identifier: Apache-2.0 */
/* All routes of burrow's own API, joined from the tables of its files, and what these share; see api.h. */
#include "base/mem.h"
#include "front/api/api.h"

#include <string.h>

// a line each
// clang-format off
static const struct route *const tables[] = {
    api_system_routes,
    api_runtime_routes,
    api_event_routes,
    api_webhook_routes,
    api_ceiling_routes,
    api_space_routes,
    api_finding_routes,
    api_checkpoint_routes,
    api_difference_routes,
    api_snapshot_routes,
    api_build_routes,
    api_transfer_routes,
    api_run_routes,
    api_execution_routes,
    api_output_routes,
};
// clang-format on

static struct route *join_tables(void)
{
    struct route *routes = NULL;
    size_t total = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        size_t count = route_count(tables[i]);
        routes = xrealloc(routes, total + count + 1, sizeof *routes);
        memcpy(routes + total, tables[i], (count + 1) * sizeof *routes);
        total += count;
    }
    return routes;
}

void api_front_init(struct front *front)
{
    *front = (struct front){
        .name = "api",
        .title = "burrow's own API",
        .routes = join_tables(),
        .top = API_TOP "/",
        .on_error = api_on_error,
        .failure = api_failure_fields,
        .failure_content = API_FAILURE_CONTENT,
        .is_strict = true,
        .has_document = true,
        .sandbox_prefix = SANDBOX_PREFIX,
    };
}

void api_front_clear(struct front *front)
{
    free((void *)(uintptr_t)front->routes);
    *front = (struct front){0};
}

int api_answer(struct call *call, int status, const struct answer_field *fields, const void *from)
{
    autoreply reply = {0};

    reply_init(&reply);
    answer_write(&reply.json, fields, from);
    reply_send(&reply, call->response, status);
    return 0;
}

int api_answer_empty(struct call *call)
{
    (void)response_send(call->response, 204, NULL, NULL, 0);
    return 0;
}

int api_sandbox(struct call *call, unsigned index, const char **id, struct error *err)
{
    return call_id(call, index, SANDBOX_PREFIX, "sandbox", id, err);
}

int api_execution(struct call *call, unsigned index, const char **id, struct error *err)
{
    if (strncmp(call->parameters[index], JOB_PREFIX, strlen(JOB_PREFIX)) == 0)
        return call_id(call, index, JOB_PREFIX, "execution", id, err);
    return call_id(call, index, EXECUTION_PREFIX, "execution", id, err);
}
