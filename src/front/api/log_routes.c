/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands of a sandbox wrote, in the order they were started. */
#include "core/execution/execution_log.h"
#include "front/api/api_page.h"
#include "front/api/execution_answer.h"
#include "front/api/output_follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USUAL_BYTES ((int64_t)256 << 10)
#define MOST_BYTES ((int64_t)4 << 20)
#define LEAST_BYTES 64 // of which one character is never all

static const char *const stream_names[] = {"stdout", "stderr", NULL}; // by enum log_side

struct piece_answer {
    struct answer_joined execution;
    const char *stream;
    int64_t offset, length, started_at;
    const char *encoding;
    struct answer_bytes text, base64;
};
static const char *const encodings[] = {"utf-8", "base64"};
#define AT(member) offsetof(struct piece_answer, member)
static const struct answer_field piece_fields[] = {
    {"executionId", ANSWER_JOINED, AT(execution), .is_needed = true, .prefix = "",
     .help = "whose it is"},
    {"startedAt", ANSWER_TIME, AT(started_at), .help = "when that was started"},
    {"stream", ANSWER_TEXT, AT(stream), .is_needed = true, .words = stream_names, .n_words = 2},
    {"offset", ANSWER_INTEGER, AT(offset), .help = "of the first byte, in the stream"},
    {"bytes", ANSWER_INTEGER, AT(length)},
    {"encoding", ANSWER_TEXT, AT(encoding), .is_needed = true, .words = encodings, .n_words = 2},
    {"text", ANSWER_BYTES, AT(text), .help = "what was written, where that is UTF-8"},
    {"base64", ANSWER_BASE64, AT(base64), .help = "else the same in base64"},
    {0},
};
#undef AT

struct log_answer {
    struct api_list list;
    const char *end_cursor;
};
static const struct answer_field log_fields[] = {
    API_LIST_FIELDS(piece_fields, struct piece_answer),
    {"endCursor", ANSWER_TEXT, offsetof(struct log_answer, end_cursor), .is_needed = true,
     .help = "goes on behind all that is here: for what is written later"},
    {0},
};
static const struct route_answer log_answers[] = {{200, log_fields}, {0}};

static const struct parameter log_parameters[] = {
    {"cursor", PARAMETER_TEXT, NULL, "nextCursor or endCursor of an answer before"},
    {"limitBytes", PARAMETER_AMOUNT, NULL, "at most so much; default 256Ki", .minimum = LEAST_BYTES,
     .maximum = MOST_BYTES},
    {"stream", PARAMETER_WORD, stream_names, "which of the two; default both"},
    {0},
};

/* A mark of number and "stdout.stderr", how much of each was told. */
static const char *write_cursor(struct call *call, const struct log_place *place)
{
    struct page_mark mark = {.at = place->number};

    (void)snprintf(mark.id, sizeof mark.id, "%" PRIu64 ".%" PRIu64, place->offsets[LOG_STDOUT],
                   place->offsets[LOG_STDERR]);
    return api_page_cursor(call, &mark);
}

static int read_cursor(struct call *call, struct log_place *out, struct error *err)
{
    struct page page;

    if (api_page_read(call, &page, err) < 0)
        return -1;
    if (!*page.after.id)
        return 0;
    out->number = page.after.at;
    if (out->number >= 0 && output_follow_read_id(page.after.id, out->offsets))
        return 0;
    (void)error_set(err, ERROR_INVALID, "cursor: is none of this list");
    return error_field(err, "cursor");
}

static struct piece_answer answer_of(const struct execution_log *log, const struct log_piece *piece)
{
    const struct answer_bytes bytes = {log->bytes.data + piece->start, piece->length};
    bool is_text = output_text_length(bytes.data, bytes.length) == bytes.length;

    return (struct piece_answer){
        .execution = {piece->kind == EXECUTION_JOB ? JOB_PREFIX : EXECUTION_PREFIX,
                      piece->execution_id},
        .stream = stream_names[piece->side],
        .offset = (int64_t)piece->offset,
        .length = (int64_t)piece->length,
        .started_at = piece->started_at,
        .encoding = encodings[!is_text],
        .text = is_text ? bytes : (struct answer_bytes){0},
        .base64 = is_text ? (struct answer_bytes){0} : bytes,
    };
}

static int answer_log(struct call *call, const struct execution_log *log)
{
    struct piece_answer *items = call_alloc(call, (log->count + 1) * sizeof *items);
    const char *end = write_cursor(call, &log->next);

    for (size_t i = 0; i < log->count; i++)
        items[i] = answer_of(log, &log->pieces[i]);
    const struct log_answer answer = {{{items, log->count}, log->is_cut ? end : NULL}, end};
    return api_answer(call, 200, log_fields, &answer);
}

/* GET /api/v1/sandboxes/{sandbox}/logs */
static int get_log(struct call *call, struct error *err)
{
    size_t maximum = (size_t)query_amount(call->query, "limitBytes", USUAL_BYTES);
    const char *name = query_text(call->query, "stream");
    const enum log_side side = name && strcmp(name, "stderr") == 0 ? LOG_STDERR : LOG_STDOUT;
    struct log_place from = {0};
    autoclear(execution_log) log = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 || read_cursor(call, &from, err) < 0 ||
        execution_log_read(call->core->executions, &call->actor, id, &from, name ? &side : NULL,
                           maximum, &log, err) < 0)
        return -1;
    return answer_log(call, &log);
}

const struct route api_log_routes[] = {
    {"GET", API_TOP "/sandboxes/{sandbox}/logs", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_log,
     .summary = "what all commands of a sandbox wrote, in the order they were started",
     .query = log_parameters, .answers = log_answers, .needs = SCOPE_READ},
    {0},
};
