/* SPDX-License-Identifier: Apache-2.0 */
/* All routes of burrow's own API, joined from the tables of its files, and what these share; see api.h. */
#include "base/mem.h"
#include "core/execution/execution.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api.h"
#include "front/api/api_document.h"
#include "front/api/api_manners.h"

#include <string.h>

// a line each
// clang-format off
static const struct route *const tables[] = {
    api_system_routes,
    api_runtime_routes,
    api_key_routes,
    api_ssh_key_routes,
    api_quota_routes,
    api_token_routes,
    api_audit_routes,
    api_usage_routes,
    api_sandbox_routes,
    api_log_routes,
    api_attach_routes,
    api_ssh_routes,
    api_watch_routes,
    api_network_routes,
    api_event_routes,
    api_webhook_routes,
    api_file_routes,
    api_tree_routes,
    api_ceiling_routes,
    api_space_routes,
    api_finding_routes,
    api_port_routes,
    api_checkpoint_routes,
    api_code_routes,
    api_difference_routes,
    api_snapshot_routes,
    api_build_routes,
    api_transfer_routes,
    api_run_routes,
    api_execution_routes,
    api_output_routes,
    api_input_routes,
};
// clang-format on

/* Behind the first row of each path one that answers a preflight. */
static size_t add_preflight(struct route *routes, size_t total)
{
    const char *pattern = routes[total - 1].pattern;

    for (size_t i = 0; i + 1 < total; i++) {
        if (strcmp(routes[i].pattern, pattern) == 0)
            return total;
    }
    routes[total] = (struct route){.method = "OPTIONS",
                                   .pattern = pattern,
                                   .lane = ROUTE_LOOP,
                                   .access = ACCESS_OPEN,
                                   .handle = api_manners_preflight,
                                   .is_undescribed = true};
    return total + 1;
}

/* A run names its sandbox in the body. */
static enum route_reach reach_of(const char *pattern)
{
    static const char *const common[] = {API_TOP "/sandboxes", API_TOP "/quotas",
                                         API_TOP "/runtimes", API_TOP "/organisation",
                                         API_TOP "/system/info"};

    if (strstr(pattern, "/{sandbox}") || strstr(pattern, "/{execution}") ||
        strcmp(pattern, API_TOP "/run") == 0)
        return REACH_SANDBOX;
    for (size_t i = 0; i < ARRAY_SIZE(common); i++) {
        if (strcmp(pattern, common[i]) == 0)
            return REACH_COMMON;
    }
    return REACH_ALL;
}

static struct route *join_tables(bool has_origins)
{
    struct route *routes = NULL;
    size_t total = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        size_t count = route_count(tables[i]);
        routes = xrealloc(routes, total + 2 * count + 1, sizeof *routes);
        for (size_t row = 0; row < count; row++) {
            routes[total] = tables[i][row];
            routes[total].reach = reach_of(routes[total].pattern);
            total++;
            if (has_origins)
                total = add_preflight(routes, total);
        }
        routes[total] = (struct route){0};
    }
    return routes;
}

void api_front_init(struct front *front, const struct api_settings *settings)
{
    struct api_manners *manners = api_manners_new(settings);

    *front = (struct front){
        .name = "api",
        .title = "burrow's own API",
        .routes = join_tables(api_manners_has_origins(manners)),
        .top = API_TOP "/",
        .on_error = api_on_error,
        .failure = api_failure_fields,
        .failure_content = API_FAILURE_CONTENT,
        .is_strict = true,
        .document = &api_document,
        .sandbox_prefix = SANDBOX_PREFIX,
        .settings = manners,
        .on_call = api_manners_on_call,
        .on_actor = api_manners_on_actor,
        .on_post = api_manners_on_post,
        .is_once_by_key = true,
    };
}

void api_front_clear(struct front *front)
{
    api_manners_free(front->settings);
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

/* Aionis' clients know theirs as UUIDs. */
static int read_execution(struct call *call, unsigned index, const char **id, struct error *err)
{
    char *same = call_alloc(call, ID_TEXT);

    *id = same;
    if (id_from_uuid(call->parameters[index], same))
        return 0;
    if (strncmp(call->parameters[index], JOB_PREFIX, strlen(JOB_PREFIX)) == 0)
        return call_id(call, index, JOB_PREFIX, "execution", id, err);
    return call_id(call, index, EXECUTION_PREFIX, "execution", id, err);
}

/* Whether the key is for sandboxes with the labels of the one that it is in. */
static int check_selected(struct call *call, const char *id, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (!*call->actor.selector)
        return 0;
    if (execution_get(call->core->executions, &call->actor, id, NULL, &info, err) < 0)
        return -1;
    return sandbox_check_selected(call->core->sandboxes, &call->actor, info.sandbox_id, err) < 0
               ? error_missing(err, "execution", id)
               : 0;
}

int api_execution(struct call *call, unsigned index, const char **id, struct error *err)
{
    if (read_execution(call, index, id, err) < 0)
        return -1;
    return check_selected(call, *id, err);
}
