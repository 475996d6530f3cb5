/* SPDX-License-Identifier: Apache-2.0 */
/* What all commands of a sandbox wrote, in the order they were started. */
#include "core/execution/execution_log.h"
#include "core/sandbox/sandbox.h"
#include "front/api/api_page.h"
#include "front/api/log_answer.h"
#include "front/api/log_follow.h"
#include "front/api/output_follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define USUAL_BYTES ((int64_t)256 << 10)
#define MOST_BYTES ((int64_t)4 << 20)
#define LEAST_BYTES 64 // of which one character is never all

struct log_answer {
    struct api_list list;
    const char *end_cursor;
};
static const struct answer_field log_fields[] = {
    API_LIST_FIELDS(log_piece_fields, struct log_piece_answer),
    {"endCursor", ANSWER_TEXT, offsetof(struct log_answer, end_cursor), .is_needed = true,
     .help = "goes on after all that is here: for what is written later"},
    {0},
};
static const struct route_answer log_answers[] = {
    {200, log_fields},
    {200, .content = "text/event-stream"},
    {200, .content = "application/x-ndjson"},
    {0},
};

static const struct parameter log_parameters[] = {
    {"cursor", PARAMETER_TEXT, NULL, "nextCursor or endCursor of an answer before"},
    {"maxBytes", PARAMETER_AMOUNT, NULL, "at most so much; default 256Ki", .minimum = LEAST_BYTES,
     .maximum = MOST_BYTES},
    {"stream", PARAMETER_WORD, log_side_names, "which of the two; default both"},
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

static int answer_log(struct call *call, const struct execution_log *log)
{
    struct log_piece_answer *items = call_alloc(call, (log->count + 1) * sizeof *items);
    const char *end = write_cursor(call, &log->next);

    for (size_t i = 0; i < log->count; i++)
        items[i] = log_piece_answer_of(log, &log->pieces[i]);
    const struct log_answer answer = {{{items, log->count}, log->is_cut ? end : NULL}, end};
    return api_answer(call, 200, log_fields, &answer);
}

/* As records, from the beginning or from where an earlier one ended. */
static int follow_log(struct call *call, const char *id, enum event_format format,
                      const enum log_side *side, struct error *err)
{
    const char *last = call_header(call, "Last-Event-ID");
    struct sandbox_status status;
    struct log_state state = {0};

    if (query_text(call->query, "cursor") || query_text(call->query, "maxBytes")) {
        const char *field = query_text(call->query, "cursor") ? "cursor" : "maxBytes";
        (void)error_set(err, ERROR_INVALID, "%s: is for pages, not for records", field);
        return error_field(err, field);
    }
    if (last && *last && !log_state_read(last, &state)) {
        (void)error_set(err, ERROR_INVALID, "Last-Event-ID: is not the id of a record of a log");
        return error_field(err, "Last-Event-ID");
    }
    if (sandbox_status(call->core->sandboxes, &call->actor, id, &status, err) < 0)
        return -1;
    log_follow_start(call, id, format, &state, side);
    return 0;
}

/* GET /api/v1/sandboxes/{sandbox}/logs */
static int get_log(struct call *call, struct error *err)
{
    const char *name = query_text(call->query, "stream");
    const enum log_side side = name && strcmp(name, "stderr") == 0 ? LOG_STDERR : LOG_STDOUT;
    enum event_format format = event_format_wanted(call);
    struct log_request request = {
        .side = name ? &side : NULL,
        .maximum = (size_t)query_amount(call->query, "maxBytes", USUAL_BYTES),
    };
    autoclear(execution_log) log = {0};

    if (api_sandbox(call, 0, &request.sandbox_id, err) < 0)
        return -1;
    if (format != EVENT_FORMAT_NONE)
        return follow_log(call, request.sandbox_id, format, request.side, err);
    if (read_cursor(call, &request.from, err) < 0 ||
        execution_log_read(call->core->executions, &call->actor, &request, &log, err) < 0)
        return -1;
    return answer_log(call, &log);
}

const struct route api_log_routes[] = {
    {"GET", API_TOP "/sandboxes/{sandbox}/logs", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_log,
     .summary = "what all commands of a sandbox wrote, in the order they were started; as records "
                "(Accept: text/event-stream or application/x-ndjson) also what they write until "
                "the sandbox has ended",
     .query = log_parameters, .answers = log_answers, .needs = SCOPE_READ},
    {0},
};
