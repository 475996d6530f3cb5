/* SPDX-License-Identifier: Apache-2.0 */
/* What executions write: as bytes, now or as it comes, or as records. */
#include "core/execution/execution.h"
#include "core/stream/stream.h"
#include "front/api/api.h"
#include "front/api/output_follow.h"
#include "web/follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const stream_names[] = {"stdout", "stderr", NULL};
static const char *const places[] = {"start", "now", NULL};

static const struct parameter output_parameters[] = {
    {"stream", PARAMETER_WORD, stream_names, "which of the two; default stdout, of records: both"},
    {"offset", PARAMETER_INTEGER, NULL, "of the first byte; default 0", 0, INT64_MAX},
    {"length", PARAMETER_AMOUNT, NULL, "at most so many bytes; default all", 1, INT64_MAX},
    {"from", PARAMETER_WORD, places, "'now': what comes from here on, instead of an offset"},
    {"follow", PARAMETER_BOOL, NULL,
     "goes on until the command has ended; records do unless it is false"},
    {0},
};

struct output_query {
    bool is_one; // a stream was named
    enum output_side side;
    uint64_t offset, length; // length 0: all
    bool is_from_now, is_followed;
};

static int fault(struct error *err, const char *field, const char *text)
{
    error_set(err, ERROR_INVALID, "%s: %s", field, text);
    return error_field(err, field);
}

static int read_query(const struct call *call, bool is_of_records, struct output_query *out,
                      struct error *err)
{
    const char *stream = query_text(call->query, "stream");
    const char *from = query_text(call->query, "from");

    *out = (struct output_query){
        .is_one = stream != NULL,
        .side = stream && strcmp(stream, "stderr") == 0 ? OUTPUT_STDERR : OUTPUT_STDOUT,
        .offset = (uint64_t)query_integer(call->query, "offset", 0),
        .length = (uint64_t)query_amount(call->query, "length", 0),
        .is_from_now = from && strcmp(from, "now") == 0,
        .is_followed = query_bool(call->query, "follow", is_of_records),
    };
    if (out->is_from_now && out->offset)
        return fault(err, "from", "cannot be given together with 'offset'");
    if (out->length && is_of_records)
        return fault(err, "length", "is for bytes, not for records");
    if (out->length && out->is_followed)
        return fault(err, "length", "cannot be given together with 'follow'");
    return 0;
}

// ---- records ----

static int read_places(struct call *call, const struct output_query *query,
                       struct output_follow_request *out, struct error *err)
{
    const char *last = call_header(call, "Last-Event-ID");

    if (last && *last)
        return output_follow_read_id(last, out->offsets)
                   ? 0
                   : fault(err, "Last-Event-ID", "is not the id of a record of this kind");
    if (query->offset && !query->is_one)
        return fault(err, "offset",
                     "is of one stream: say which by 'stream', or send the last "
                     "record's id as Last-Event-ID");
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        bool is_meant = !query->is_one || query->side == i;
        if (query->is_from_now)
            out->offsets[i] = OUTPUT_FROM_NOW;
        else if (is_meant)
            out->offsets[i] = query->offset;
    }
    return 0;
}

static int send_records(struct call *call, const struct execution_info *info,
                        const struct output_query *query, enum event_format format,
                        struct error *err)
{
    struct output_follow_request request = {
        .info = info, .format = format, .is_now = !query->is_followed};

    if (read_places(call, query, &request, err) < 0)
        return -1;
    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        request.is_left_out[i] = query->is_one && query->side != i;
    return output_follow_start(call, &request, err);
}

// ---- bytes ----

static int missing(const struct execution_info *info, const char *name, struct error *err)
{
    if (info->is_output_expired)
        return error_refuse(err, ERROR_GONE, "output",
                            "its %s is gone: it was kept for as long as output is", name);
    return error_refuse(err, ERROR_NOT_FOUND, "output", "it has no %s of its own", name);
}

static int open_output(struct call *call, const struct execution_info *info, enum output_side side,
                       struct stream **out, struct error *err)
{
    const char *name = stream_names[side];
    const char *id = side == OUTPUT_STDERR ? info->stderr_stream : info->stdout_stream;

    if (!id && info->state == EXECUTION_QUEUED)
        return error_refuse(err, ERROR_STATE, "execution",
                            "it waits for its turn, and has written nothing yet");
    if (!id)
        return missing(info, name, err);
    if (stream_open(call->core->streams, id, out, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? missing(info, name, err) : -1;
}

static int send_bytes(struct call *call, const struct execution_info *info,
                      const struct output_query *query, struct error *err)
{
    autoptr(stream) stream = NULL;
    struct stream_progress progress;
    char size[24];

    if (open_output(call, info, query->side, &stream, err) < 0)
        return -1;
    stream_progress(stream, &progress);
    (void)snprintf(size, sizeof size, "%" PRIu64, progress.size_bytes);
    const struct http_header headers[] = {
        {"Output-Bytes", size}, {"Output-Complete", progress.is_complete ? "true" : "false"}, {0}};
    const struct follow_request request = {
        .loop = call_loop(call),
        .router = call->router,
        .hub = call->core->hub,
        .stream = stream,
        .response = call->response,
        .request = call->request,
        .offset = query->is_from_now ? progress.size_bytes : query->offset,
        .is_now = !query->is_followed,
        .length = query->length,
        .headers = headers,
    };
    follow_start(&request);
    return 0;
}

/* GET /api/v1/executions/{execution}/output */
static int get_output(struct call *call, struct error *err)
{
    enum event_format format = event_format_wanted(call);
    autoclear(execution_info) info = {0};
    struct output_query query;
    const char *id;

    if (api_execution(call, 0, &id, err) < 0 ||
        read_query(call, format != EVENT_FORMAT_NONE, &query, err) < 0 ||
        execution_get(call->core->executions, &call->actor, id, NULL, &info, err) < 0)
        return -1;
    call_about_sandbox(call, SANDBOX_PREFIX, info.sandbox_id);
    return format == EVENT_FORMAT_NONE ? send_bytes(call, &info, &query, err)
                                       : send_records(call, &info, &query, format, err);
}

static const struct route_answer output_answers[] = {
    {200, .content = "application/octet-stream"},
    {200, .content = "text/event-stream"},
    {200, .content = "application/x-ndjson"},
    {206, .content = "application/octet-stream"},
    {0},
};

const struct route api_output_routes[] = {
    {"GET", API_TOP "/executions/{execution}/output", ROUTE_QUICK, ACCESS_KEY, BODY_NONE,
     get_output,
     .summary = "what it wrote: a part as bytes, followed as it comes, or both streams as records",
     .query = output_parameters, .answers = output_answers, .needs = SCOPE_READ},
    {0},
};
