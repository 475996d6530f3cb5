/* SPDX-License-Identifier: Apache-2.0 */
/* Answers; see answer.h. */
#include "front/aionis/answer.h"

#include "base/clock.h"
#include "base/id.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// ---- members ----

void put_text(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    if (text)
        json_exact(json, text, strlen(text));
    else
        json_null(json);
}

void put_integer(struct json_writer *json, const char *name, int64_t number)
{
    json_key(json, name);
    json_integer(json, number);
}

void put_bool(struct json_writer *json, const char *name, bool truth)
{
    json_key(json, name);
    json_bool(json, truth);
}

void put_null(struct json_writer *json, const char *name)
{
    json_key(json, name);
    json_null(json);
}

void put_time(struct json_writer *json, const char *name, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    put_text(json, name, wall_ms > 0 ? clock_format((uint64_t)wall_ms, text) : NULL);
}

void put_id(struct json_writer *json, const char *name, const char *id)
{
    char uuid[ID_UUID_TEXT];

    put_text(json, name, id_to_uuid(id, uuid));
}

const char *keep_json(struct call *call, struct json_writer *json, const struct buffer *text)
{
    struct error ignored = {0};

    if (json_writer_finish(json, &ignored) < 0)
        return NULL;
    char *copy = call_alloc(call, text->length + 1);
    memcpy(copy, text->data, text->length);
    return copy;
}

// ---- headers ----

/* One of the configured ones, compared exactly. */
static bool is_origin_allowed(const char *origins, const char *origin)
{
    size_t length = strlen(origin);

    for (const char *at = origins; at && *at; at += strcspn(at, ",")) {
        at += strspn(at, ", ");
        size_t size = strcspn(at, ", ");
        if (size == length && memcmp(at, origin, length) == 0)
            return true;
    }
    return false;
}

static void read_origin(const struct call *call, char out[ANSWER_ORIGIN])
{
    const char *origin = call_header(call, "Origin");

    out[0] = '\0';
    if (origin && *origin && strlen(origin) < ANSWER_ORIGIN &&
        is_origin_allowed(aionis_of(call)->settings->origins, origin))
        (void)snprintf(out, ANSWER_ORIGIN, "%s", origin);
}

static void read_head(struct call *call, struct answer_head *out)
{
    read_origin(call, out->origin);
}

struct call_state *call_state(struct call *call)
{
    if (!call->front_data) {
        struct call_state *state = call_alloc(call, sizeof *state);
        read_head(call, &state->head);
        call->front_data = state;
    }
    return call->front_data;
}

// ---- sending ----

static void send_text(struct response *response, int status, const struct answer_head *head,
                      int64_t retry_after_s, const struct buffer *text)
{
    struct http_header headers[8] = {{"Content-Type", "application/json; charset=utf-8"}};
    size_t count = 1;
    char seconds[24];

    if (head->origin[0]) {
        headers[count++] = (struct http_header){"Access-Control-Allow-Origin", head->origin};
        headers[count++] = (struct http_header){"Access-Control-Expose-Headers", "x-request-id"};
        headers[count++] = (struct http_header){"Vary", "Origin"};
    }
    if (retry_after_s > 0) {
        (void)snprintf(seconds, sizeof seconds, "%lld", (long long)retry_after_s);
        headers[count++] = (struct http_header){"Retry-After", seconds};
    }
    (void)response_send(response, status, headers, text->data, text->length);
}

void answer_begin(struct reply *reply, const struct actor *actor)
{
    reply_init(reply);
    json_map_begin(&reply->json);
    put_text(&reply->json, "tenant_id", actor->tenant);
    put_text(&reply->json, "scope", actor->scope);
}

int answer_send(struct reply *reply, struct response *response, const struct answer_head *head)
{
    static char failed[] =
        "{\"status\":500,\"error\":\"internal_error\",\"message\":\"the answer is too long\"}";
    struct buffer instead = {.data = failed, .length = sizeof failed - 1};
    struct error err = {0};

    json_map_end(&reply->json);
    bool is_whole = json_writer_finish(&reply->json, &err) == 0;
    send_text(response, is_whole ? 200 : 500, head, 0, is_whole ? &reply->text : &instead);
    return 0;
}

// ---- failures ----

int refuse(struct call *call, const struct refusal *refusal, struct error *err, const char *format,
           ...)
{
    char text[sizeof err->text];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    call_state(call)->refusal = *refusal;
    return reply_error(refusal->status, text, err);
}

/* The first row that fits: of this reason or kind, and about this noun (NULL: any). */
static const struct {
    enum error_reason reason;
    const char *noun;
    const char *code;
} codes[] = {
    {ERROR_UNAUTHORIZED, NULL, "unauthorized"},
    {ERROR_DENIED, NULL, "forbidden"},
    {ERROR_METHOD, NULL, "method_not_allowed"},
    {ERROR_INVALID, "request", "bad_request"},
    {ERROR_INVALID, NULL, "invalid_request"},
    {ERROR_NOT_FOUND, "route", "not_found"},
    {ERROR_DISK_FULL, NULL, "sandbox_disk_full"},
    {ERROR_NO_SPACE, NULL, "server_disk_full"},
    {ERROR_TOO_LARGE, NULL, "payload_too_large"},
    {ERROR_LIMIT, "queue", "sandbox_queue_full"},
    {ERROR_LIMIT, "sandbox", "sandbox_capacity_exceeded"},
    {ERROR_LIMIT, NULL, "too_many_requests"},
    {ERROR_SLOW, NULL, "request_timeout"},
    {ERROR_SLOW_SANDBOX, NULL, "sandbox_timeout"},
    {ERROR_RESTARTING, NULL, "server_restarting"},
};

static const char *error_code_of(const struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (error_is(err, codes[i].reason) &&
            (!codes[i].noun || error_is_about(err, codes[i].noun)))
            return codes[i].code;
    }
    return "internal_error";
}

static void put_json(struct json_writer *json, const char *name, const char *text)
{
    if (!text)
        return;
    json_key(json, name);
    json_raw(json, text, strlen(text));
}

void answer_error(struct call *call, const struct error *err)
{
    const struct call_state *state = call->front_data;
    struct refusal refusal = state ? state->refusal : (struct refusal){0};
    struct answer_head head;
    autoreply reply = {0};

    if (state)
        head = state->head;
    else
        read_head(call, &head);
    if (refusal.status == 0)
        refusal = (struct refusal){.status = error_status(err), .code = error_code_of(err)};
    if (refusal.status == 500)
        refusal.details = "{\"contract\":\"error_v1\"}";
    reply_init(&reply);
    json_map_begin(&reply.json);
    put_integer(&reply.json, "status", refusal.status);
    put_text(&reply.json, "error", refusal.code);
    put_text(&reply.json, "message", err->text);
    put_json(&reply.json, "details", refusal.details);
    put_json(&reply.json, "issues", refusal.issues);
    put_text(&reply.json, "request_id", call_request_id(call));
    json_map_end(&reply.json);
    send_text(call->response, refusal.status, &head, refusal.retry_after_s, &reply.text);
}
