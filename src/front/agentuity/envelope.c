/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes; see envelope.h. */
#include "front/agentuity/envelope.h"
#include "base/log.h"

#include <ctype.h>
#include <string.h>

void envelope_flat(struct reply *reply)
{
    reply_init(reply);
    json_map_begin(&reply->json);
    json_key(&reply->json, "success");
    json_bool(&reply->json, true);
}

void envelope_data(struct reply *reply)
{
    envelope_flat(reply);
    json_key(&reply->json, "data");
}

int envelope_send(struct reply *reply, struct response *response, int status)
{
    json_map_end(&reply->json);
    reply_send(reply, response, status);
    return 0;
}

int envelope_bare(struct call *call)
{
    autoreply reply;

    envelope_flat(&reply);
    return envelope_send(&reply, call->response, 200);
}

/* The first row that fits; NULL fits all. */
static const struct {
    enum error_kind kind;
    const char *noun;
    const char *reason;
    const char *code;
} codes[] = {
    {ERROR_INVALID, NULL, "too large", "TOO_LARGE"},
    {ERROR_INVALID, NULL, NULL, "INVALID_ARGUMENT"},
    {ERROR_DENIED, NULL, "unauthorized", "UNAUTHORIZED"},
    {ERROR_DENIED, NULL, NULL, "FORBIDDEN"},
    {ERROR_GONE, "sandbox", NULL, "SANDBOX_TERMINATED"},
    {ERROR_CONFLICT, "sandbox", "busy", "SANDBOX_BUSY"},
    {ERROR_CONFLICT, NULL, "mismatch", "IDEMPOTENCY_MISMATCH"},
    {ERROR_CONFLICT, NULL, NULL, "INVALID_STATE"},
    {ERROR_LIMIT, NULL, "too large", "TOO_LARGE"},
    {ERROR_LIMIT, "file", NULL, "FILE_LIMIT"},
    {ERROR_LIMIT, "stream", NULL, "STREAM_LIMIT"},
    {ERROR_LIMIT, NULL, NULL, "CAPACITY"},
    {ERROR_UNAVAILABLE, NULL, "restarting", "RESTARTING"},
};

static bool fits(const char *wanted, const char *is)
{
    return !wanted || (is && strcmp(wanted, is) == 0);
}

/* "snapshot" → "SNAPSHOT_NOT_FOUND" */
static const char *not_found(const char *noun, char text[ENVELOPE_CODE])
{
    static const char end[] = "_NOT_FOUND";
    size_t length = 0;

    if (!noun)
        return &end[1];
    for (; noun[length] && length < ENVELOPE_CODE - sizeof end; length++)
        text[length] =
            isalnum((unsigned char)noun[length]) ? (char)toupper((unsigned char)noun[length]) : '_';
    memcpy(text + length, end, sizeof end);
    return text;
}

const char *envelope_code(const struct error *err, char text[ENVELOPE_CODE])
{
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++) {
        if (codes[i].kind == err->kind && fits(codes[i].noun, err->noun) &&
            fits(codes[i].reason, err->reason))
            return codes[i].code;
    }
    if (err->kind == ERROR_NOT_FOUND || err->kind == ERROR_GONE)
        return not_found(err->noun, text);
    return "INTERNAL";
}

void envelope_error(struct call *call, const struct error *err)
{
    autoreply reply;
    char code[ENVELOPE_CODE];
    int status = reply_status(err);

    if (status == 500)
        log_error("call failed", F("route", call->route ? call->route->pattern : NULL),
                  F("error", err->text));
    reply_init(&reply);
    json_map_begin(&reply.json);
    json_key(&reply.json, "success");
    json_bool(&reply.json, false);
    json_key(&reply.json, "code");
    json_string(&reply.json, envelope_code(err, code));
    json_key(&reply.json, "message");
    json_string(&reply.json, err->text[0] ? err->text : "something went wrong in the server");
    envelope_send(&reply, call->response, status);
}
