/* SPDX-License-Identifier: Apache-2.0 */
/* The server about itself; see ops.h. */
#include "front/ops/ops.h"

#include "web/call.h"
#include "front/ops/ops_impl.h"
#include "web/reply.h"
#include "web/router.h"

static void reply_text(struct reply *reply, const char *key, const char *text)
{
    json_key(&reply->json, key);
    json_string(&reply->json, text);
}

static void put_core(struct reply *reply, struct core *core)
{
    struct core_health health;

    core_health(core, &health);
    json_key(&reply->json, "sandboxes");
    json_natural(&reply->json, health.sandboxes);
    json_key(&reply->json, "parked");
    json_natural(&reply->json, health.parked);
    json_key(&reply->json, "runtimeReady");
    json_bool(&reply->json, health.is_default_runtime_ready);
}

/* GET /health */
static int get_health(struct call *call, struct error *err)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    reply_text(&reply, "status", "ok");
    reply_text(&reply, "version", BURROW_VERSION);
    if (call->core)
        put_core(&reply, call->core);
    for (const struct front *const *front = router_fronts(call->router); *front; front++) {
        if (call->core && (*front)->on_health)
            (*front)->on_health(*front, call->core, &reply.json);
    }
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 200);
    return 0;
}

/* GET /version */
static int get_version(struct call *call, struct error *err)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    reply_text(&reply, "version", BURROW_VERSION);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 200);
    return 0;
}

/* GET /openapi.json */
static int get_openapi(struct call *call, struct error *err)
{
    static const struct http_header headers[] = {{"Content-Type", "application/json"}, {0}};
    size_t length;
    const char *text = router_openapi(call->router, &length);

    (void)response_send(call->response, 200, headers, text, length);
    return 0;
}

static void on_error(struct call *call, const struct error *err)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    reply_text(&reply, "status", "error");
    reply_text(&reply, "message", err->text);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, error_status(err));
}

static const struct route routes[] = {
    {"GET", "/health", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_health,
     .summary = "whether the server is well"},
    {"GET", "/version", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_version,
     .summary = "which version this is"},
    {"GET", "/openapi.json", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_openapi,
     .summary = "this document"},
    {"GET", "/system/df", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, ops_get_space,
     .summary = "what runtimes, snapshots, checkpoints, sandboxes and streams take on the disk"},
    {"POST", "/system/prune", ROUTE_SLOW, ACCESS_KEY, BODY_JSON, ops_prune,
     .summary = "gives back what nothing uses", .fields = ops_prune_fields},
    {0},
};

const struct front ops_front = {
    .name = "ops", .title = "The server about itself.", .routes = routes, .on_error = on_error};
