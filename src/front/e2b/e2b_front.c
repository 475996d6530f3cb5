/* SPDX-License-Identifier: Apache-2.0 */
/* All routes of the two fronts, joined from the tables of their files; see e2b.h. */
#include "base/mem.h"
#include "core/core.h"
#include "core/seal.h"
#include "front/e2b/e2b_impl.h"
#include "front/e2b/envd_watch.h"

#include <string.h>

const struct e2b_settings e2b_settings_default = {.runtime = "code-interpreter:latest"};

static const struct route *const control_tables[] = {
    e2b_sandbox_routes,  e2b_list_routes,    e2b_snapshot_routes, e2b_build_routes,
    e2b_template_routes, e2b_metrics_routes, e2b_refused_routes,  NULL,
};

static const struct route *const envd_tables[] = {
    envd_process_routes, envd_input_routes,   envd_health_routes,
    envd_file_routes,    envd_compose_routes, envd_filesystem_routes,
    envd_watch_routes,   envd_metrics_routes, NULL,
};

static struct route *join_tables(const struct route *const *tables)
{
    struct route *routes = NULL;
    size_t total = 0;

    for (; *tables; tables++) {
        size_t count = route_count(*tables);
        routes = xrealloc(routes, total + count + 1, sizeof *routes);
        memcpy(routes + total, *tables, (count + 1) * sizeof *routes);
        total += count;
    }
    return routes;
}

void e2b_front_init(struct front *front, const struct e2b_settings *settings)
{
    struct e2b *e2b = xnew(struct e2b);

    e2b->settings = settings;
    *front = (struct front){
        .name = "e2b",
        .title = "E2B's control plane",
        .routes = join_tables(control_tables),
        .auth = &e2b_key_auth,
        .on_error = e2b_on_error,
        .settings = e2b,
    };
}

/* Before anything else: what is sent to another port than envd's is not envd's to answer. */
static int on_envd_call(struct call *call, struct error *err)
{
    struct e2b_target target;

    e2b_target_read(call->request, &target);
    if (target.is_wrong)
        return error_refuse(err, ERROR_INVALID, "target",
                            "send both E2b-Sandbox-Id and E2b-Sandbox-Port, the port as a number");
    if (target.port == E2B_ENVD_PORT)
        return 0;
    return error_refuse(err, ERROR_ENDED, "sandbox", "The sandbox is running but port is not open");
}

void e2b_envd_front_init(struct front *front, const struct e2b_settings *settings)
{
    struct e2b *e2b = xnew(struct e2b);

    e2b->settings = settings;
    e2b->watchers = envd_watchers_new();
    *front = (struct front){
        .name = "e2b-envd",
        .title = "What E2B's clients find in a sandbox",
        .routes = join_tables(envd_tables),
        .claims = e2b_target_claims,
        .auth = &e2b_token_auth,
        .on_call = on_envd_call,
        .on_error = envd_on_error,
        .settings = e2b,
    };
}

static bool claims_code(const struct http_request *request)
{
    struct e2b_target target;

    if (!e2b_target_claims(request))
        return false;
    e2b_target_read(request, &target);
    return !target.is_wrong && target.port == E2B_CODE_PORT;
}

static const struct route *const code_tables[] = {e2b_code_routes, NULL};

void e2b_code_front_init(struct front *front, const struct e2b_settings *settings)
{
    struct e2b *e2b = xnew(struct e2b);

    e2b->settings = settings;
    *front = (struct front){
        .name = "e2b-code",
        .title = "What E2B's code interpreter answers",
        .routes = join_tables(code_tables),
        .claims = claims_code,
        .auth = &e2b_token_auth,
        .on_error = envd_on_error,
        .settings = e2b,
    };
}

static const struct route *const debug_tables[] = {
    e2b_debug_routes,
    envd_process_routes,
    envd_input_routes,
    envd_health_routes,
    envd_file_routes,
    envd_compose_routes,
    envd_watch_routes,
    envd_filesystem_routes,
    envd_metrics_routes,
    e2b_code_routes,
    NULL,
};

/* Its own row for a path is the one that counts, and none is open: the sandbox is found by who asks. */
static struct route *join_debug(void)
{
    struct route *routes = join_tables(debug_tables);
    size_t kept = 0;

    for (size_t i = 0; routes[i].method; i++) {
        if (i > 0 && strcmp(routes[i].pattern, routes[0].pattern) == 0)
            continue;
        routes[kept] = routes[i];
        if (routes[kept].access != ACCESS_KEY) {
            routes[kept].access = ACCESS_KEY;
            routes[kept].needs = SCOPE_RUN;
            routes[kept].reach = REACH_SANDBOX;
        }
        kept++;
    }
    routes[kept] = (struct route){0};
    return routes;
}

void e2b_debug_front_init(struct front *front, const struct e2b_settings *settings)
{
    struct e2b *e2b = xnew(struct e2b);

    e2b->settings = settings;
    e2b->watchers = envd_watchers_new();
    e2b->is_debug = true;
    *front = (struct front){
        .name = "e2b-debug",
        .title = "What E2B's clients find in debug mode",
        .routes = join_debug(),
        .auth = &e2b_debug_auth,
        .on_call = e2b_debug_on_call,
        .on_error = envd_on_error,
        .settings = e2b,
    };
}

void e2b_front_clear(struct front *front)
{
    struct e2b *e2b = front->settings;

    if (e2b)
        envd_watchers_free(e2b->watchers);
    free(e2b);
    free((void *)(uintptr_t)front->routes);
    *front = (struct front){0};
}
