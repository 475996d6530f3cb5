/* SPDX-License-Identifier: Apache-2.0 */
/* All routes of the front, joined from the tables of its files; see aionis.h. */
#include "base/mem.h"
#include "front/aionis/answer.h"
#include "front/aionis/health.h"

static const struct route *const tables[] = {
    aionis_session_routes,
    aionis_execute_routes,
    aionis_run_routes,
    aionis_control_routes,
};

/* Where another page's script asks first whether it may. */
static int preflight(struct call *call, struct error *err)
{
    const struct answer_head *head = &call_state(call)->head;
    const struct http_header allowed[] = {
        {"Access-Control-Allow-Origin", head->origin},
        {"Access-Control-Allow-Methods", "GET,POST,OPTIONS"},
        {"Access-Control-Allow-Headers",
         "content-type,x-api-key,x-tenant-id,authorization,x-request-id"},
        {"Access-Control-Expose-Headers", "x-request-id"},
        {"Access-Control-Max-Age", "600"},
        {"Vary", "Origin"},
        {0},
    };

    (void)response_send(call->response, 204, head->origin[0] ? allowed : NULL, NULL, 0);
    return 0;
}

/* Where pages may call: behind each row of the protocol's own, one that answers a preflight. */
static size_t add_row(struct route *routes, size_t count, const struct route *row, bool has_pages)
{
    routes[count++] = *row;
    if (has_pages && row->body == BODY_WHOLE)
        routes[count++] = (struct route){"OPTIONS",
                                         row->pattern,
                                         ROUTE_LOOP,
                                         ACCESS_OPEN,
                                         BODY_NONE,
                                         preflight,
                                         "whether a page may ask",
                                         .answers = aionis_preflight_answers};
    return count;
}

static struct route *join_tables(bool has_pages)
{
    struct route *routes = NULL;
    size_t total = 0;

    for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
        size_t count = route_count(tables[i]);
        routes = xrealloc(routes, total + 2 * count + 1, sizeof *routes);
        for (size_t row = 0; row < count; row++)
            total = add_row(routes, total, &tables[i][row], has_pages);
        routes[total] = (struct route){0};
    }
    return routes;
}

/* Comes before the key, so that whoever turned it off sees that. */
static int on_call(struct call *call, struct error *err)
{
    const struct refusal refusal = {.status = 400, .code = "sandbox_disabled"};

    (void)call_state(call);
    if (aionis_of(call)->is_enabled || call->route->body != BODY_WHOLE)
        return 0;
    return refuse(call, &refusal, err,
                  "the sandbox is turned off on this server (SANDBOX_ENABLED)");
}

int aionis_front_init(struct front *front, const struct aionis_settings *settings,
                      struct error *err)
{
    struct aionis *aionis = xnew(struct aionis);

    aionis->settings = settings;
    *front = (struct front){
        .name = "aionis",
        .title = "Aionis Lite: the sandbox routes",
        .routes = join_tables(settings->origins && *settings->origins),
        .top = "/v1/memory/",
        .on_error = answer_error,
        .failure = aionis_failure,
        .defaults = {.queue_at_once = (unsigned)settings->queue_at_once,
                     .queue_length = (unsigned)settings->queue_length},
        .on_call = on_call,
        .on_health = health_write,
        .settings = aionis,
    };
    if (aionis_read(aionis, err) == 0)
        return 0;
    aionis_front_clear(front);
    return -1;
}

void aionis_front_clear(struct front *front)
{
    struct aionis *aionis = front->settings;

    if (!aionis)
        return;
    commands_clear(&aionis->commands);
    budgets_free(aionis->budgets);
    rate_limiter_free(aionis->limiter);
    proxies_free(aionis->proxies);
    free(aionis);
    free((void *)(uintptr_t)front->routes);
    *front = (struct front){0};
}
