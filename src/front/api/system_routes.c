/* SPDX-License-Identifier: Apache-2.0 */
/* The server about itself, and the document of this API. */
#include "core/runtime/runtimes.h"
#include "front/api/api.h"
#include "web/router.h"

// ---- GET /api/v1/system/info ----

static const char *const health_words[] = {"ok", "degraded"};

struct info_answer {
    const char *name, *version, *status, *reason, *runtime;
    struct core_health health;
};
#define AT(member) offsetof(struct info_answer, member)
static const struct answer_field info_fields[] = {
    {"name", ANSWER_TEXT, AT(name), .is_needed = true, .help = "burrow"},
    {"version", ANSWER_TEXT, AT(version), .is_needed = true},
    {"status", ANSWER_TEXT, AT(status), .is_needed = true, .words = health_words,
     .n_words = ARRAY_SIZE(health_words)},
    {"reason", ANSWER_TEXT, AT(reason),
     .help = "why it is degraded: what the server cannot do now, and what to do about it"},
    {"runtime", ANSWER_TEXT, AT(runtime), .is_needed = true,
     .help = "what a sandbox starts from that asks for nothing"},
    {"runtimeReady", ANSWER_BOOL, AT(health.is_default_runtime_ready),
     .help = "whether that has been built"},
    {"sandboxes", ANSWER_UNSIGNED, AT(health.sandboxes), .help = "that are alive"},
    {"spareSandboxes", ANSWER_UNSIGNED, AT(health.spares), .help = "made ahead"},
    {"spareMemoryBytes", ANSWER_INTEGER, AT(health.spare_bytes), .help = "that those hold"},
    {"executions", ANSWER_UNSIGNED, AT(health.commands), .help = "that run now"},
    {"queued", ANSWER_UNSIGNED, AT(health.queued), .help = "commands that wait"},
    {0},
};
#undef AT
static const struct route_answer info_answers[] = {{200, info_fields}, {0}};

static int get_info(struct call *call, struct error *err)
{
    struct info_answer answer = {
        .name = "burrow",
        .version = BURROW_VERSION,
        .runtime = runtimes_default(call->core->runtimes),
    };

    (void)err;
    core_health(call->core, &answer.health);
    answer.reason = answer.health.fault;
    answer.status = health_words[answer.reason != NULL];
    return api_answer(call, 200, info_fields, &answer);
}

// ---- GET /api/v1/openapi.json ----

static int get_document(struct call *call, struct error *err)
{
    static const struct http_header headers[] = {{"Content-Type", "application/json"}, {0}};
    size_t length;

    (void)err;
    (void)router_openapi(call->router, call->front, &length);
    (void)response_send_file(
        call->response, 200, headers,
        &(struct file_range){.fd = router_openapi_file(call->router, call->front),
                             .length = length});
    return 0;
}

/* The document describes itself no further. */
static const struct answer_field document_fields[] = {
    {"openapi", ANSWER_TEXT, .is_needed = true},  {"info", ANSWER_JSON, .is_needed = true},
    {"servers", ANSWER_JSON, .is_needed = true},  {"tags", ANSWER_JSON, .is_needed = true},
    {"paths", ANSWER_JSON, .is_needed = true},    {"components", ANSWER_JSON, .is_needed = true},
    {"security", ANSWER_JSON, .is_needed = true}, {0},
};
static const struct route_answer document_answers[] = {{200, document_fields}, {0}};

const struct route api_system_routes[] = {
    {"GET", API_TOP "/system/info", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, get_info,
     .summary = "version and state of the server", .answers = info_answers, .needs = SCOPE_READ},
    {"GET", API_TOP "/openapi.json", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_document,
     .summary = "this document", .answers = document_answers},
    {0},
};
