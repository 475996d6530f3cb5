/* SPDX-License-Identifier: Apache-2.0 */
/* Runs that were started: their record, what they wrote, the record as a bundle, and their end. */
#include "base/id.h"
#include "front/aionis/artifact.h"
#include "front/aionis/aionis_request.h"
#include "front/aionis/run_view.h"

#define TAIL_MAX 512000
#define TAIL_DEFAULT 65536

static int no_run(struct call *call, const char *uuid, struct error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    put_text(&json, "run_id", uuid);
    put_text(&json, "tenant_id", call->actor.tenant);
    put_text(&json, "scope", call->actor.scope);
    json_map_end(&json);
    const struct refusal refusal = {
        .status = 404, .code = "sandbox_run_not_found", .details = keep_json(call, &json, &text)};
    return refuse(call, &refusal, err, "there is no run '%s'", uuid);
}

static int find_run(struct call *call, const char *uuid, struct execution_info *out,
                    struct error *err)
{
    char id[ID_TEXT];

    if (!id_from_uuid(uuid, id))
        return no_run(call, uuid, err);
    if (execution_get(call->core->executions, &call->actor, id, NULL, out, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? no_run(call, uuid, err) : -1;
}

/* With what it wrote. */
static void open_view(struct call *call, const struct execution_info *info, struct run_view *view)
{
    (void)run_view_init(view, call->core, aionis_of(call)->settings, info, false);
}

/* Up to the run that the body names, whose strings are the request's. 0, -1, or CALL_AGAIN. */
static int open_run(struct call *call, enum rate_class class, struct request *request,
                    const struct field *fields, void *body, const char *const *run_id,
                    struct execution_info *out, struct error *err)
{
    int status = request_open(call, class, request, err);
    if (status != 0)
        return status;
    if (request_read(call, request, fields, body, err) < 0)
        return -1;
    return find_run(call, *run_id, out, err);
}

// ---- get ----

struct get_body {
    struct identity_body identity; // first
    const char *run_id;
};
static const struct field get_fields[] = {
    IDENTITY_FIELDS(struct get_body), RUN_FIELD(struct get_body), {0}};

/* POST /v1/memory/sandbox/runs/get */
static int get_run(struct call *call, struct error *err)
{
    struct get_body body = {0};
    autorequest request = {0};
    autoclear(execution_info) info = {0};
    autoreply reply = {0};
    autorun view = {0};

    int status = open_run(call, RATE_READ, &request, get_fields, &body, &body.run_id, &info, err);
    if (status != 0)
        return status;
    open_view(call, &info, &view);
    answer_begin(&reply, &call->actor);
    json_key(&reply.json, "run");
    run_write(&reply.json, &view);
    return answer_send(&reply, call->response, &call_state(call)->head);
}

// ---- logs ----

#define TAIL_FIELD(type)                                                                           \
    {                                                                                              \
        "tail_bytes", FIELD_INTEGER, offsetof(type, tail_bytes),                                   \
            .minimum = 1, .maximum = TAIL_MAX, .help = "of each output; default 65536"             \
    }

struct logs_body {
    struct identity_body identity; // first
    const char *run_id;
    int64_t tail_bytes;
};
static const struct field logs_fields[] = {IDENTITY_FIELDS(struct logs_body),
                                           RUN_FIELD(struct logs_body),
                                           TAIL_FIELD(struct logs_body),
                                           {0}};

static void put_logs(struct json_writer *json, const struct run_view *view, int64_t tail_bytes)
{
    json_key(json, "logs");
    json_map_begin(json);
    put_integer(json, "tail_bytes", tail_bytes);
    run_write_tails(json, view, (size_t)tail_bytes);
    put_bool(json, "truncated", view->is_truncated);
    json_key(json, "summary");
    run_write_output_summary(json, view);
    json_map_end(json);
}

/* POST /v1/memory/sandbox/runs/logs */
static int get_run_logs(struct call *call, struct error *err)
{
    struct logs_body body = {.tail_bytes = TAIL_DEFAULT};
    autorequest request = {0};
    autoclear(execution_info) info = {0};
    autoreply reply = {0};
    autorun view = {0};

    int status = open_run(call, RATE_READ, &request, logs_fields, &body, &body.run_id, &info, err);
    if (status != 0)
        return status;
    open_view(call, &info, &view);
    answer_begin(&reply, &call->actor);
    put_id(&reply.json, "run_id", info.id);
    put_text(&reply.json, "status", view.status);
    put_logs(&reply.json, &view, body.tail_bytes);
    return answer_send(&reply, call->response, &call_state(call)->head);
}

// ---- artifact ----

struct artifact_body {
    struct identity_body identity; // first
    const char *run_id;
    int64_t tail_bytes;
    bool has_action, has_output, has_result, has_metadata, is_inline;
};
static const struct field artifact_fields[] = {
    IDENTITY_FIELDS(struct artifact_body),
    RUN_FIELD(struct artifact_body),
    TAIL_FIELD(struct artifact_body),
    {"include_action", FIELD_BOOL, offsetof(struct artifact_body, has_action),
     .help = "default true"},
    {"include_output", FIELD_BOOL, offsetof(struct artifact_body, has_output),
     .help = "default true"},
    {"include_result", FIELD_BOOL, offsetof(struct artifact_body, has_result),
     .help = "default true"},
    {"include_metadata", FIELD_BOOL, offsetof(struct artifact_body, has_metadata),
     .help = "default true"},
    {"bundle_inline", FIELD_BOOL, offsetof(struct artifact_body, is_inline),
     .help = "default true"},
    {0},
};

/* POST /v1/memory/sandbox/runs/artifact */
static int get_run_artifact(struct call *call, struct error *err)
{
    struct artifact_body body = {.tail_bytes = TAIL_DEFAULT,
                                 .has_action = true,
                                 .has_output = true,
                                 .has_result = true,
                                 .has_metadata = true,
                                 .is_inline = true};
    autorequest request = {0};
    autoclear(execution_info) info = {0};
    autoreply reply = {0};
    autorun view = {0};

    int status =
        open_run(call, RATE_READ, &request, artifact_fields, &body, &body.run_id, &info, err);
    if (status != 0)
        return status;
    open_view(call, &info, &view);
    const struct artifact_options options = {
        .actor = &call->actor,
        .tail_bytes = body.tail_bytes,
        .has_action = body.has_action,
        .has_output = body.has_output,
        .has_result = body.has_result,
        .has_metadata = body.has_metadata,
        .is_inline = body.is_inline,
    };
    answer_begin(&reply, &call->actor);
    json_key(&reply.json, "artifact");
    artifact_write(&reply.json, &view, &options);
    return answer_send(&reply, call->response, &call_state(call)->head);
}

// ---- cancel ----

struct cancel_body {
    struct identity_body identity; // first
    const char *actor;
    const char *run_id;
    const char *reason;
};
static const struct field cancel_fields[] = {
    IDENTITY_FIELDS(struct cancel_body),
    ACTOR_FIELD(struct cancel_body),
    RUN_FIELD(struct cancel_body),
    {"reason", FIELD_TEXT, offsetof(struct cancel_body, reason), .minimum = 1,
     .check = request_check_reason, .help = "at most 400 characters"},
    {0},
};

/* POST /v1/memory/sandbox/runs/cancel */
static int cancel_run(struct call *call, struct error *err)
{
    struct cancel_body body = {0};
    autorequest request = {0};
    autoclear(execution_info) found = {0};
    autoclear(execution_info) info = {0};
    autoreply reply = {0};

    int status =
        open_run(call, RATE_WRITE, &request, cancel_fields, &body, &body.run_id, &found, err);
    if (status != 0)
        return status;
    if (execution_cancel(call->core->executions, &call->actor, found.id,
                         request_trim(call, body.reason), &info, err) < 0)
        return -1;
    answer_begin(&reply, &call->actor);
    put_id(&reply.json, "run_id", info.id);
    put_text(&reply.json, "status", run_status(&info));
    put_bool(&reply.json, "cancel_requested", true);
    put_text(&reply.json, "cancel_reason", info.stop_reason);
    return answer_send(&reply, call->response, &call_state(call)->head);
}

#define ROUTE(path, lane, scope, handler, summary, table, answer)                                  \
    {                                                                                              \
        "POST", "/v1/memory/sandbox/runs/" path, lane, ACCESS_KEY, BODY_WHOLE, handler, summary,   \
            .fields = table, .answers = answer, .body_limit = AIONIS_BODY_MAX, .needs = scope      \
    }

const struct route aionis_run_routes[] = {
    ROUTE("get", ROUTE_QUICK, SCOPE_READ, get_run, "a run's record", get_fields,
          aionis_run_answers),
    ROUTE("logs", ROUTE_QUICK, SCOPE_READ, get_run_logs, "the end of what a run wrote", logs_fields,
          aionis_logs_answers),
    ROUTE("artifact", ROUTE_QUICK, SCOPE_READ, get_run_artifact,
          "a run's record as a bundle of hashed objects", artifact_fields, aionis_artifact_answers),
    ROUTE("cancel", ROUTE_CONTROL, SCOPE_RUN, cancel_run, "asks for a run's end", cancel_fields,
          aionis_cancel_answers),
    {0},
};
