/* SPDX-License-Identifier: Apache-2.0 */
/* Envelopes; see envelope.h. */
#include "front/agentuity/envelope.h"

#include "base/id.h"
#include "front/agentuity/agentuity_impl.h"

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
    autoreply reply = {0};

    envelope_flat(&reply);
    return envelope_send(&reply, call->response, 200);
}

int envelope_answer(struct call *call, int status, const struct answer_field *fields,
                    const void *from)
{
    autoreply reply = {0};

    envelope_data(&reply);
    answer_write(&reply.json, fields, from);
    return envelope_send(&reply, call->response, status);
}

int envelope_answers(struct call *call, const struct answer_field *fields, const void *items,
                     size_t count, size_t item_size)
{
    autoreply reply = {0};

    envelope_data(&reply);
    json_list_begin(&reply.json);
    for (size_t i = 0; i < count; i++)
        answer_write(&reply.json, fields, (const char *)items + i * item_size);
    json_list_end(&reply.json);
    return envelope_send(&reply, call->response, 200);
}

/* The first row that fits: of this reason or kind, and about this noun (NULL: any). */
static const struct {
    enum error_reason reason;
    const char *noun;
    const char *code;
} codes[] = {
    {ERROR_METHOD, NULL, "METHOD_NOT_ALLOWED"},
    {ERROR_INVALID, NULL, "INVALID_ARGUMENT"},
    {ERROR_UNAUTHORIZED, NULL, "UNAUTHORIZED"},
    {ERROR_DENIED, NULL, "FORBIDDEN"},
    {ERROR_GONE, "sandbox", "SANDBOX_TERMINATED"},
    {ERROR_BUSY, "sandbox", "SANDBOX_BUSY"},
    {ERROR_CONFLICT, "checkpoint", "CHECKPOINT_EXISTS"},
    {ERROR_DIFFERS, "runtime", "RUNTIME_DIFFERS"},
    {ERROR_MISMATCH, NULL, "IDEMPOTENCY_MISMATCH"},
    {ERROR_CONFLICT, NULL, "INVALID_STATE"},
    {ERROR_DISK_FULL, NULL, "DISK_FULL"},
    {ERROR_NO_SPACE, NULL, "CAPACITY"},
    {ERROR_TOO_LARGE, NULL, "TOO_LARGE"},
    {ERROR_LIMIT, "file", "FILE_LIMIT"},
    {ERROR_LIMIT, "stream", "STREAM_LIMIT"},
    {ERROR_LIMIT, "snapshot", "SNAPSHOT_LIMIT"},
    {ERROR_LIMIT, NULL, "CAPACITY"},
    {ERROR_SLOW, NULL, "TIMEOUT"},
    {ERROR_SLOW_SANDBOX, NULL, "TIMEOUT"},
    {ERROR_RESTARTING, NULL, "RESTARTING"},
};

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
        if (error_is(err, codes[i].reason) &&
            (!codes[i].noun || error_is_about(err, codes[i].noun)))
            return codes[i].code;
    }
    if (error_is(err, ERROR_NOT_FOUND) || error_is(err, ERROR_GONE))
        return not_found(err->noun, text);
    return "INTERNAL";
}

static const struct {
    const char *noun;
    const char *prefix;
} prefixes[] = {
    {"sandbox", SANDBOX_PREFIX},
    {"execution", EXECUTION_PREFIX},
    {"job", JOB_PREFIX},
    {"stream", STREAM_PREFIX},
    {"runtime", RUNTIME_PREFIX},
    {"snapshot", SNAPSHOT_PREFIX},
    {"checkpoint", CHECKPOINT_PREFIX},
};

static const char *prefix_of(const char *noun)
{
    for (size_t i = 0; noun && i < ARRAY_SIZE(prefixes); i++) {
        if (strcmp(prefixes[i].noun, noun) == 0)
            return prefixes[i].prefix;
    }
    return "";
}

/* Whether an id of the core, in quotes, begins here. */
static bool is_quoted_id(const char *text)
{
    char id[ID_TEXT];

    if (text[0] != '\'' || strnlen(text, ID_LENGTH + 2) < ID_LENGTH + 2 ||
        text[ID_LENGTH + 1] != '\'')
        return false;
    memcpy(id, text + 1, ID_LENGTH);
    id[ID_LENGTH] = '\0';
    return id_is_valid(id);
}

/* The core's sentence, with ids as the client knows them. */
static void write_message(struct json_writer *json, const struct error *err)
{
    const char *prefix = prefix_of(err->noun);
    const char *text = err->text[0] ? err->text : "something went wrong in the server";

    json_string_begin(json);
    for (; *text; text++) {
        json_string_piece(json, text, 1);
        if (is_quoted_id(text))
            json_string_piece(json, prefix, strlen(prefix));
    }
    json_string_end(json);
}

void envelope_failure(struct reply *reply, const struct error *err)
{
    char code[ENVELOPE_CODE];

    reply_init(reply);
    json_map_begin(&reply->json);
    json_key(&reply->json, "success");
    json_bool(&reply->json, false);
    json_key(&reply->json, "code");
    json_string(&reply->json, envelope_code(err, code));
    json_key(&reply->json, "message");
    write_message(&reply->json, err);
}

void envelope_error(struct call *call, const struct error *err)
{
    autoreply reply = {0};

    envelope_failure(&reply, err);
    member_text(&reply.json, "requestId", call_request_id(call));
    envelope_send(&reply, call->response, error_status(err));
}
