/* SPDX-License-Identifier: Apache-2.0 */
/* The server about itself; see ops.h. */
#include "front/ops/ops.h"

#include "front/ops/ops_impl.h"

#include "web/call.h"
#include "web/reply.h"
#include "web/router.h"

// ---- answers and failures ----

struct failure {
    bool is_success; // false
    const char *code, *message, *request_id;
};
static const struct answer_field failure_fields[] = {
    {"success", ANSWER_BOOL, offsetof(struct failure, is_success), .help = "always false"},
    {"code", ANSWER_TEXT, offsetof(struct failure, code), .is_needed = true,
     .help = "a word for programs"},
    {"message", ANSWER_TEXT, offsetof(struct failure, message), .is_needed = true,
     .help = "a sentence for people"},
    {"requestId", ANSWER_TEXT, offsetof(struct failure, request_id), .is_needed = true,
     .help = "what the log calls the request"},
    {0},
};

/* The first row that fits: of this reason or kind. */
static const struct {
    enum error_reason reason;
    const char *code;
} codes[] = {
    {ERROR_METHOD, "METHOD_NOT_ALLOWED"},
    {ERROR_INVALID, "INVALID_ARGUMENT"},
    {ERROR_UNAUTHORIZED, "UNAUTHORIZED"},
    {ERROR_DENIED, "FORBIDDEN"},
    {ERROR_NOT_FOUND, "NOT_FOUND"},
    {ERROR_GONE, "NOT_FOUND"},
    {ERROR_CONFLICT, "INVALID_STATE"},
    {ERROR_TOO_LARGE, "TOO_LARGE"},
    {ERROR_DISK_FULL, "TOO_LARGE"},
    {ERROR_LIMIT, "CAPACITY"},
    {ERROR_SLOW, "TIMEOUT"},
    {ERROR_SLOW_SANDBOX, "TIMEOUT"},
    {ERROR_RESTARTING, "RESTARTING"},
};

static const char *code_of(const struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (error_is(err, codes[i].reason))
            return codes[i].code;
    }
    return "INTERNAL";
}

static void on_ops_error(struct call *call, const struct error *err)
{
    const struct failure failure = {
        .code = code_of(err), .message = err->text, .request_id = call_request_id(call)};
    autoreply reply = {0};

    reply_init(&reply);
    answer_write(&reply.json, failure_fields, &failure);
    reply_send(&reply, call->response, error_status(err));
}

// ---- what can be asked ----

struct health {
    const char *status, *reason, *version;
    bool has_core;
    bool is_known; // who asks
    struct core_health core;
};

/* Those of the fronts have their own words for it. */
static void write_front_health(struct json_writer *json, const struct call *call)
{
    for (const struct front *const *front = router_fronts(call->router); *front; front++) {
        if (call->core && (*front)->on_health)
            (*front)->on_health(*front, call->core, call->is_known, json);
    }
}

static const char *const health_words[] = {"ok", "degraded"};
static const struct answer_field health_fields[] = {
    {"status", ANSWER_TEXT, offsetof(struct health, status), .is_needed = true,
     .words = health_words, .n_words = ARRAY_SIZE(health_words)},
    {"reason", ANSWER_TEXT, offsetof(struct health, reason),
     .help = "why it is degraded: what the server cannot do now, and what to do about it"},
    {"version", ANSWER_TEXT, offsetof(struct health, version), .is_needed = true},
    {"sandboxes", ANSWER_UNSIGNED, offsetof(struct health, core.sandboxes),
     .has_offset = offsetof(struct health, is_known), .help = "that are alive; told to keys alone"},
    {"parked", ANSWER_UNSIGNED, offsetof(struct health, core.spares),
     .has_offset = offsetof(struct health, is_known),
     .help = "sandboxes made ahead; told to keys alone"},
    {"runtimeReady", ANSWER_BOOL, offsetof(struct health, core.is_default_runtime_ready),
     .has_offset = offsetof(struct health, has_core),
     .help = "whether the default runtime has been built"},
    {0},
};

/* GET /health */
static int get_health(struct call *call, struct error *err)
{
    struct health health = {
        .version = BURROW_VERSION,
        .has_core = call->core != NULL,
        .is_known = call->core && call->is_known,
    };
    autoreply reply = {0};

    if (call->core)
        core_health(call->core, &health.core);
    health.reason = health.core.fault;
    health.status = health_words[health.reason != NULL];
    reply_init(&reply);
    json_map_begin(&reply.json);
    answer_write_members(&reply.json, health_fields, &health);
    write_front_health(&reply.json, call);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 200);
    return 0;
}

struct version {
    const char *version;
};
static const struct answer_field version_fields[] = {
    {"version", ANSWER_TEXT, offsetof(struct version, version), .is_needed = true},
    {0},
};

/* GET /version */
static int get_version(struct call *call, struct error *err)
{
    static const struct version version = {BURROW_VERSION};
    autoreply reply = {0};

    reply_init(&reply);
    answer_write(&reply.json, version_fields, &version);
    reply_send(&reply, call->response, 200);
    return 0;
}

/* GET /openapi.json */
static int get_openapi(struct call *call, struct error *err)
{
    static const struct http_header headers[] = {{"Content-Type", "application/json"}, {0}};
    size_t length;

    (void)router_openapi(call->router, NULL, &length);
    (void)response_send_file(
        call->response, 200, headers,
        &(struct file_range){.fd = router_openapi_file(call->router, NULL), .length = length});
    return 0;
}

/* The document describes itself no further. */
static const struct answer_field document_fields[] = {
    {"openapi", ANSWER_TEXT, .is_needed = true},  {"info", ANSWER_JSON, .is_needed = true},
    {"servers", ANSWER_JSON, .is_needed = true},  {"tags", ANSWER_JSON, .is_needed = true},
    {"paths", ANSWER_JSON, .is_needed = true},    {"components", ANSWER_JSON, .is_needed = true},
    {"security", ANSWER_JSON, .is_needed = true}, {0},
};

static const struct route_answer health_answers[] = {{200, health_fields, .is_open = true}, {0}};
static const struct route_answer version_answers[] = {{200, version_fields}, {0}};
static const struct route_answer openapi_answers[] = {{200, document_fields}, {0}};

static const struct route routes[] = {
    {"GET", "/", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, ops_get_welcome,
     .summary = "what this is, for people (text/html) and programs",
     .answers = ops_welcome_answers},
    {"GET", "/health", ROUTE_LOOP, ACCESS_ANY, BODY_NONE, get_health,
     .summary = "whether the server is well", .answers = health_answers},
    {"GET", "/version", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_version,
     .summary = "which version this is", .answers = version_answers},
    {"GET", "/openapi.json", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_openapi,
     .summary = "this document", .answers = openapi_answers},
    {0},
};

const struct front ops_front = {
    .name = "ops",
    .title = "The server about itself.",
    .routes = routes,
    .on_error = on_ops_error,
    .failure = failure_fields,
};
