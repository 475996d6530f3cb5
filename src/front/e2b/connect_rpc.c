/* SPDX-License-Identifier: Apache-2.0 */
/* The Connect protocol; see connect_rpc.h. */
#include "front/e2b/connect_rpc.h"

#include "data/json.h"
#include "front/e2b/e2b_impl.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define HEAD 5 // of an envelope
#define KEEP_ALIVE_S 90
#define DEADLINE_MOST_MS ((int64_t)365 * 24 * 3600 * 1000)

static const struct {
    const char *name;
    int status;
} codes[RPC_CODES] = {
    [RPC_OK] = {"ok", 200},
    [RPC_CANCELED] = {"canceled", 499},
    [RPC_UNKNOWN] = {"unknown", 500},
    [RPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [RPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [RPC_NOT_FOUND] = {"not_found", 404},
    [RPC_ALREADY_EXISTS] = {"already_exists", 409},
    [RPC_PERMISSION_DENIED] = {"permission_denied", 403},
    [RPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [RPC_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [RPC_UNIMPLEMENTED] = {"unimplemented", 501},
    [RPC_INTERNAL] = {"internal", 500},
    [RPC_UNAVAILABLE] = {"unavailable", 503},
    [RPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};

/* The first that fits: a reason, or a kind. */
static const struct {
    enum error_reason reason;
    enum rpc_code code;
} reasons[] = {
    {ERROR_UNAUTHORIZED, RPC_UNAUTHENTICATED},
    {ERROR_METHOD, RPC_UNIMPLEMENTED},
    {ERROR_EXISTS, RPC_ALREADY_EXISTS},
    {ERROR_CANCELLED, RPC_CANCELED},
    {ERROR_INVALID, RPC_INVALID_ARGUMENT},
    {ERROR_NOT_FOUND, RPC_NOT_FOUND},
    {ERROR_DENIED, RPC_PERMISSION_DENIED},
    {ERROR_CONFLICT, RPC_FAILED_PRECONDITION},
    {ERROR_LIMIT, RPC_RESOURCE_EXHAUSTED},
    {ERROR_TIMEOUT, RPC_DEADLINE_EXCEEDED},
    {ERROR_GONE, RPC_NOT_FOUND},
    {ERROR_UNAVAILABLE, RPC_UNAVAILABLE},
};

enum rpc_code rpc_code_of(const struct error *err)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++) {
        if (error_is(err, reasons[i].reason))
            return reasons[i].code;
    }
    return RPC_INTERNAL;
}

const struct http_header rpc_stream_headers[] = {
    {"Content-Type", "application/connect+json"},
    {"Cache-Control", "no-cache"},
    {0},
};

/* Of which both the services there are and those there are not begin. */
bool rpc_is_service(const struct call *call)
{
    const char *path = call->request ? call->request->path
                       : call->route ? call->route->pattern
                                     : "";
    return strncmp(path, "/process.", 9) == 0 || strncmp(path, "/filesystem.", 12) == 0;
}

/* A stream's rows say so. */
static bool is_stream(const struct call *call)
{
    const struct route_answer *answers = call->route ? call->route->answers : NULL;

    return answers && answers->content;
}

// ---- failures ----

static void write_failure(struct json_writer *json, enum rpc_code code, const char *message)
{
    json_map_begin(json);
    e2b_member_text(json, "code", codes[code].name);
    e2b_member_text(json, "message", message);
    json_map_end(json);
}

int rpc_fail(struct call *call, enum rpc_code code, const char *message)
{
    autoreply reply = {0};
    autobuffer stream = {0};

    if (is_stream(call)) {
        rpc_envelope_add_end(&stream, code, message);
        (void)response_send(call->response, 200, rpc_stream_headers, stream.data, stream.length);
        return 0;
    }
    reply_init(&reply);
    write_failure(&reply.json, code, message);
    reply_send(&reply, call->response, codes[code].status);
    return 0;
}

void rpc_on_error(struct call *call, const struct error *err)
{
    enum rpc_code code = rpc_code_of(err);

    if (!call->route && error_is_about(err, "route")) {
        autoreply reply = {0};
        reply_init(&reply);
        write_failure(&reply.json, RPC_UNIMPLEMENTED, err->text);
        reply_send(&reply, call->response, codes[RPC_UNIMPLEMENTED].status);
        return;
    }
    // Whoever speaks another language is told in that of all.
    if (error_is(err, ERROR_MEDIA_TYPE) || error_is(err, ERROR_UNAUTHORIZED) ||
        error_is(err, ERROR_TOO_LARGE)) {
        autoreply reply = {0};
        int status = error_is(err, ERROR_MEDIA_TYPE) ? 415 : codes[code].status;
        reply_init(&reply);
        write_failure(&reply.json, code, err->text);
        reply_send(&reply, call->response, status);
        return;
    }
    (void)rpc_fail(call, code, err->text[0] ? err->text : "something went wrong in the server");
}

// ---- requests ----

int rpc_envelope_read(const char *bytes, size_t length, const char **text, size_t *text_length,
                      struct error *err)
{
    const unsigned char *head = (const unsigned char *)bytes;

    if (length < HEAD)
        return error_set(err, ERROR_INVALID,
                         "the envelope is cut off: %zu of its 5 bytes of head are there", length);
    size_t size =
        (size_t)head[0 + 1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    if (head[0] & 1)
        return error_set(err, ERROR_INVALID, "the envelope is compressed, which is not read here");
    if (head[0] != 0)
        return error_set(err, ERROR_INVALID, "the envelope has flags %u: 0 is a message", head[0]);
    if (length - HEAD < size)
        return error_set(err, ERROR_INVALID,
                         "the envelope is cut off: it says %zu bytes, and %zu are there", size,
                         length - HEAD);
    if (length - HEAD > size)
        return error_set(err, ERROR_INVALID,
                         "there is more after the one envelope that this method takes");
    *text = bytes + HEAD;
    *text_length = size;
    return 0;
}

static bool is_type(const char *value, const char *type)
{
    size_t length = strlen(type);

    return value && strncasecmp(value, type, length) == 0 &&
           (value[length] == '\0' || value[length] == ';' || value[length] == ' ');
}

int rpc_read(struct call *call, const struct field *fields, void *into,
             struct data_document **document, struct error *err)
{
    const char *type = is_stream(call) ? "application/connect+json" : "application/json";
    const char *text = call->request->body.data;
    size_t length = call->request->body.length;
    const struct json_limits limits = {.bytes = E2B_MESSAGE_BYTES,
                                       .memory = (size_t)E2B_MESSAGE_BYTES + (32u << 20),
                                       .may_take = call_may_take,
                                       .data = call};

    if (!is_type(call_header(call, "Content-Type"), type))
        return error_set(err, ERROR_MEDIA_TYPE, "this method takes %s", type);
    if (is_stream(call) && rpc_envelope_read(text, length, &text, &length, err) < 0)
        return -1;
    if (json_read("", length ? text : "{}", length ? length : 2, &limits, document, err) < 0)
        return error_wrap(err, "the message is not JSON");
    if ((*document)->root->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "the message must be a JSON object");
    return fields_read((*document)->root, fields, into, err);
}

// ---- answers ----

int rpc_answer(struct call *call, struct reply *reply)
{
    reply_send(reply, call->response, 200);
    return 0;
}

int rpc_answer_nothing(struct call *call)
{
    autoreply reply = {0};

    reply_init(&reply);
    json_map_begin(&reply.json);
    json_map_end(&reply.json);
    return rpc_answer(call, &reply);
}

size_t rpc_envelope_begin(struct buffer *out)
{
    static const char head[HEAD] = {0};
    struct error ignored = {0};
    size_t begun = out->length;

    (void)buffer_add(out, head, HEAD, &ignored);
    return begun;
}

void rpc_envelope_end(struct buffer *out, size_t begun, unsigned char flags)
{
    size_t length = out->length - begun - HEAD;
    unsigned char *head = (unsigned char *)out->data + begun;

    head[0] = flags;
    for (unsigned i = 0; i < 4; i++)
        head[1 + i] = (unsigned char)(length >> (24 - 8 * i));
}

void rpc_envelope_add(struct buffer *out, const char *json)
{
    struct error ignored = {0};
    size_t begun = rpc_envelope_begin(out);

    (void)buffer_add_text(out, json, &ignored);
    rpc_envelope_end(out, begun, 0);
}

void rpc_envelope_add_end(struct buffer *out, enum rpc_code code, const char *message)
{
    struct error ignored = {0};
    struct json_writer json;
    size_t begun = rpc_envelope_begin(out);

    json_writer_init(&json, out);
    json_map_begin(&json);
    if (code != RPC_OK) {
        json_key(&json, "error");
        write_failure(&json, code, message);
    }
    json_map_end(&json);
    (void)json_writer_finish(&json, &ignored);
    rpc_envelope_end(out, begun, RPC_END_OF_STREAM);
}

// ---- times ----

/* Digits; what follows them is passed over. */
static int64_t header_number(const struct call *call, const char *name, int64_t most,
                             int64_t absent)
{
    const char *text = call_header(call, name);
    int64_t value = 0;

    if (!text || *text < '0' || *text > '9')
        return absent;
    for (; *text >= '0' && *text <= '9'; text++)
        value = value < most ? value * 10 + (*text - '0') : most;
    return value < most ? value : most;
}

int64_t rpc_deadline_ms(const struct call *call)
{
    return header_number(call, "Connect-Timeout-Ms", DEADLINE_MOST_MS, 0);
}

int64_t rpc_keep_alive_ms(const struct call *call)
{
    int64_t seconds = header_number(call, "Keepalive-Ping-Interval", 3600, KEEP_ALIVE_S);

    return (seconds > 0 ? seconds : 1) * 1000;
}
