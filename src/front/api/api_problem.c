/* SPDX-License-Identifier: Apache-2.0 */
/* Failures as application/problem+json (RFC 9457), by one table; see api.h. */
#include "front/api/api.h"
#include "front/api/api_document.h"
#include "front/api/api_manners.h"
#include "web/openapi_schema.h"
#include "web/reference.h"

#include <stdio.h>
#include <string.h>

/* The first row that fits: of this reason or kind, and about this noun (NULL: any). A status of 0 is the reason's own. */
// clang-format off
#define PROBLEMS(ROW) \
    ROW(ERROR_UNKNOWN_FIELD, NULL, 0, "unknown_field", "There is no such field", "correct the name, or leave the field out") \
    ROW(ERROR_METHOD, NULL, 0, "method_not_allowed", "Not with this method", "use a method that the header Allow names") \
    ROW(ERROR_PRECONDITION, NULL, 0, "precondition_failed", "It has changed", "read it again, and repeat the request with the new ETag") \
    ROW(ERROR_MEDIA_TYPE, NULL, 0, "unsupported_media_type", "A body of this type is not read here", "send the body as the type that the document names") \
    ROW(ERROR_UPGRADE, NULL, 0, "upgrade_required", "Only as a WebSocket", "ask with 'Connection: Upgrade', 'Upgrade: websocket' and version 13") \
    ROW(ERROR_RANGE, NULL, 0, "range_not_satisfiable", "There is nothing in this range", "ask for a part that the file has; the header Content-Range says how long it is") \
    ROW(ERROR_LONG_TARGET, NULL, 0, "target_too_long", "The request's target is too long", NULL) \
    ROW(ERROR_LONG_HEAD, NULL, 0, "head_too_long", "The request's head is too long", NULL) \
    ROW(ERROR_UNKNOWN_HTTP, NULL, 0, "not_implemented", "This is not spoken here", NULL) \
    ROW(ERROR_DAMAGED, NULL, 0, "damaged", "What was sent is damaged", "look whether it is whole and of the right kind, and send it again") \
    ROW(ERROR_REFUSED, NULL, 0, "refused", "This archive is not unpacked", NULL) \
    ROW(ERROR_INVALID, NULL, 0, "invalid_request", "The request cannot be understood", "correct the request as the detail says") \
    ROW(ERROR_UNAUTHORIZED, NULL, 0, "unauthorized", "A valid key is needed", "send a key: Authorization: Bearer <key>") \
    ROW(ERROR_SCOPE, NULL, 0, "missing_scope", "The key may not do this", "use a key with the scope that the detail names") \
    ROW(ERROR_DENIED, "origin", 0, "origin_not_allowed", "Pages of this origin may not do this", "whoever runs the server names the origins that may") \
    ROW(ERROR_DENIED, NULL, 0, "forbidden", "Not allowed", NULL) \
    ROW(ERROR_NOT_FOUND, "route", 0, "route_not_found", "There is nothing at this path", "/api/v1/openapi.json lists all paths") \
    ROW(ERROR_NOT_FOUND, "file", 0, "not_found", "There is no such thing", "check the path, and list the directory it is in") \
    ROW(ERROR_NOT_FOUND, "runtime", 0, "not_found", "There is no such thing", "take one of those that the list of runtimes has (burrow runtime list)") \
    ROW(ERROR_NOT_FOUND, NULL, 0, "not_found", "There is no such thing", "check the id or name; what was deleted is forgotten") \
    ROW(ERROR_EXPIRED, "event", 0, "cursor_expired", "Events after this place are forgotten", "look at what there is now, and go on after the number before oldest") \
    ROW(ERROR_EXPIRED, NULL, 0, "expired", "It is no longer kept", NULL) \
    ROW(ERROR_CANCELLED, NULL, 409, "cancelled", "It was given up as asked", NULL) \
    ROW(ERROR_GONE, NULL, 409, "ended", "It has ended", "make a new one") \
    ROW(ERROR_BUSY, NULL, 0, "busy", "Something is being done with it", "try again in a moment") \
    ROW(ERROR_EXISTS, NULL, 0, "already_exists", "There is one already", "choose another name, or use the one there is") \
    ROW(ERROR_MISMATCH, NULL, 422, "idempotency_mismatch", "The Idempotency-Key was used for another request", "use a new key for a new request") \
    ROW(ERROR_PENDING, NULL, 0, "idempotency_pending", "The same request is being answered", "try again in a moment with the same key") \
    ROW(ERROR_AMBIGUOUS, NULL, 0, "ambiguous", "Several are meant", "name it by its id") \
    ROW(ERROR_COMPLETE, NULL, 0, "complete", "It takes nothing more", NULL) \
    ROW(ERROR_CONFLICT, "file", 0, "conflict", "Not in its present state", "look what is at this path: a file or a directory, empty or not") \
    ROW(ERROR_CONFLICT, NULL, 0, "conflict", "Not in its present state", "look at its state, and act on that") \
    ROW(ERROR_TOO_LARGE, "snapshot", 0, "too_large", "Larger than one may be", "have whoever runs the server allow more or make room, or send or ask for less") \
    ROW(ERROR_TOO_LARGE, NULL, 0, "too_large", "Larger than one may be", "send or ask for less") \
    ROW(ERROR_DISK_FULL, NULL, 0, "disk_full", "The sandbox's disk is full", "remove files in the sandbox, or give it a larger disk") \
    ROW(ERROR_NO_SPACE, NULL, 507, "no_space", "The server's disk is full", "whoever runs the server has to make room") \
    ROW(ERROR_RATE, NULL, 0, "rate_limited", "Too many requests", "wait for as long as the header Retry-After says") \
    ROW(ERROR_QUOTA, NULL, 0, "quota_exceeded", "More than the quota allows", "end or remove something, or ask for a larger quota") \
    ROW(ERROR_LIMIT, NULL, 0, "limit_reached", "More than there is room for", "end or remove something, or try again later") \
    ROW(ERROR_SLOW, NULL, 0, "request_too_slow", "The request took too long to arrive", NULL) \
    ROW(ERROR_TIMEOUT, NULL, 504, "timeout", "It took too long", "look at its state before trying again") \
    ROW(ERROR_RESTARTING, NULL, 0, "restarting", "The server is restarting", "try again shortly") \
    ROW(ERROR_NOT_BUILT, NULL, 0, "runtime_not_ready", "The runtime is being made", "send it again when the header Retry-After says") \
    ROW(ERROR_UNAVAILABLE, NULL, 503, "unavailable", "Not possible at the moment", "try again later; the detail says what is missing") \
    ROW(ERROR_LOST, NULL, 0, "outcome_unknown", "It may have been done, or not", "look before doing it again")
// clang-format on

#define PROBLEM_ROW(...) {__VA_ARGS__},
static const struct problem_row {
    enum error_reason reason;
    const char *noun;
    int status;
    const char *code, *title, *remedy;
} rows[] = {PROBLEMS(PROBLEM_ROW)};

#define PROBLEM_CODE(reason, noun, status, code, title, remedy) code,
static const char *const codes[] = {PROBLEMS(PROBLEM_CODE) "internal_error"};

struct problem {
    const char *type, *title, *code, *detail, *field, *remedy, *request_id;
    int64_t status, oldest;
    bool has_oldest;
};
#define AT(member) offsetof(struct problem, member)
const struct answer_field api_failure_fields[] = {
    {"type", ANSWER_TEXT, AT(type), .is_needed = true,
     .help = "about:blank: the code says what it is"},
    {"title", ANSWER_TEXT, AT(title), .is_needed = true, .help = "what the code means"},
    {"status", ANSWER_INTEGER, AT(status), .help = "the HTTP status"},
    {"code", ANSWER_TEXT, AT(code), .is_needed = true, .words = codes, .n_words = ARRAY_SIZE(codes),
     .help = "a word for programs; x-problems has them all"},
    {"detail", ANSWER_TEXT, AT(detail), .is_needed = true, .help = "a sentence for people"},
    {"field", ANSWER_TEXT, AT(field),
     .help = "which member of the body or parameter of the query it is about: \"files[2].path\""},
    {"remedy", ANSWER_TEXT, AT(remedy), .help = "what can be done about it"},
    {"requestId", ANSWER_TEXT, AT(request_id), .is_needed = true,
     .help = "what the server's log calls the request"},
    {"oldest", ANSWER_INTEGER, AT(oldest), .has_offset = AT(has_oldest),
     .help = "of cursor_expired: the number of the oldest event there is; one less is a good place "
             "to go on from"},
    {0},
};
#undef AT

static const struct problem_row fault = {
    .code = "internal_error",
    .title = "The server failed",
    .remedy = "tell whoever runs the server the request id",
};

static const struct problem_row *row_of(const struct error *err)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (error_is(err, rows[i].reason) && (!rows[i].noun || error_is_about(err, rows[i].noun)))
            return &rows[i];
    }
    return &fault;
}

const char *api_problem_code(const struct error *err)
{
    return row_of(err)->code;
}

/* Core has ids bare. Executions are left so: which of their prefixes they have, a sentence does not tell. */
static const char *const spelled[][2] = {
    {"sandbox '", SANDBOX_PREFIX},       {"snapshot '", SNAPSHOT_PREFIX},
    {"checkpoint '", CHECKPOINT_PREFIX}, {"key '", KEY_PREFIX},
    {"token '", TOKEN_PREFIX},           {"webhook '", WEBHOOK_PREFIX},
    {"context '", CONTEXT_PREFIX},       {"stream '", STREAM_PREFIX}};

/* Whether an id stands here, up to the next quote, behind such a word: the prefix it gets; else NULL. */
static const char *prefix_here(const char *text, const char *at)
{
    char id[sizeof EXAMPLE_ID + 8];

    for (size_t i = 0; i < ARRAY_SIZE(spelled); i++) {
        size_t word = strlen(spelled[i][0]);
        if ((size_t)(at - text) < word || memcmp(at - word, spelled[i][0], word) != 0)
            continue;
        (void)snprintf(id, sizeof id, "%s%.*s", spelled[i][1], (int)strcspn(at, "'"), at);
        return reference_is_id(id, spelled[i][1]) ? spelled[i][1] : NULL;
    }
    return NULL;
}

/* "there is no sandbox 'sbx_…'": as the client knows it. */
static void spell_ids(const char *text, char *out, size_t size)
{
    size_t length = 0;

    for (const char *at = text; *at && length + 16 < size; at++) { // the longest prefix, and this
        const char *prefix = prefix_here(text, at);
        if (prefix)
            length += strlen(strcpy(out + length, prefix));
        out[length++] = *at;
    }
    out[length] = '\0';
}

/* The status; the text is written into the reply. */
static int write_problem(const struct error *err, const char *request_id, int64_t oldest,
                         struct reply *reply)
{
    const struct problem_row *row = row_of(err);
    char detail[sizeof err->text + 64];
    spell_ids(err->text, detail, sizeof detail);
    const struct problem problem = {
        .type = "about:blank",
        .title = row->title,
        .status = row->status ? row->status : error_status(err),
        .code = row->code,
        .detail = detail,
        .field = err->field[0] ? err->field : NULL,
        .remedy = row->remedy,
        .request_id = request_id,
        .oldest = oldest,
        .has_oldest = oldest > 0,
    };

    reply_init(reply);
    answer_write(&reply->json, api_failure_fields, &problem);
    return (int)problem.status;
}

static void answer_problem(struct call *call, const struct error *err, int64_t oldest,
                           const struct http_header *more)
{
    const struct http_header headers[] = {
        {"Content-Type", API_FAILURE_CONTENT}, more ? *more : (struct http_header){0}, {0}};
    autoreply reply = {0};
    struct error ignored;
    int status = write_problem(err, call_request_id(call), oldest, &reply);

    if (json_writer_finish(&reply.json, &ignored) == 0)
        (void)response_send(call->response, status, headers, reply.text.data, reply.text.length);
}

void api_on_error(struct call *call, const struct error *err)
{
    api_manners_on_refusal(call);
    answer_problem(call, err, 0, NULL);
}

void api_on_error_with(struct call *call, const struct error *err, const struct http_header *more)
{
    answer_problem(call, err, 0, more);
}

int api_refuse_cursor(struct call *call, int64_t after, int64_t oldest, struct error *err)
{
    (void)error_refuse(err, ERROR_EXPIRED, "event",
                       "after: events after number %lld are forgotten: the oldest there is has "
                       "number %lld",
                       (long long)after, (long long)oldest);
    answer_problem(call, err, oldest, NULL);
    return 1;
}

void *api_problem_of_status(int status, const char *request_id, size_t *length)
{
    autoreply reply = {0};
    struct error err, ignored;

    (void)reply_error(status,
                      status == 416 ? "what is asked for begins after the end of what there is"
                                    : "the request cannot be served",
                      &err);
    (void)write_problem(&err, request_id, 0, &reply);
    if (json_writer_finish(&reply.json, &ignored) < 0)
        return NULL;
    *length = reply.text.length;
    return take(reply.text.data);
}

// ---- for the document ----

static void put_problem(struct json_writer *json, const struct problem_row *row, int status)
{
    json_map_begin(json);
    openapi_text(json, "code", row->code);
    json_key(json, "status");
    json_integer(json, status);
    openapi_text(json, "title", row->title);
    if (row->remedy)
        openapi_text(json, "remedy", row->remedy);
    json_map_end(json);
}

/* A row that says another remedy for what one below it says in general. */
static bool is_special(size_t at)
{
    for (size_t i = at + 1; i < ARRAY_SIZE(rows); i++) {
        if (strcmp(rows[i].code, rows[at].code) == 0)
            return true;
    }
    return false;
}

void api_put_problems(struct json_writer *json)
{
    json_key(json, "x-problems");
    json_list_begin(json);
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct error err = {.reason = rows[i].reason};
        if (!is_special(i))
            put_problem(json, &rows[i], rows[i].status ? rows[i].status : error_status(&err));
    }
    put_problem(json, &fault, 500);
    json_list_end(json);
}
