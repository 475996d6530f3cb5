/* SPDX-License-Identifier: Apache-2.0 */
/* Watching directories of a sandbox. */
#include "front/api/api_file.h"
#include "front/api/watch_stream.h"

static const struct parameter watch_parameters[] = {
    API_FILE_PARAMETERS,
    {"recursive", PARAMETER_BOOL, NULL,
     "also what is below it, in directories that come later too"},
    {0},
};

/* GET /api/v1/sandboxes/{sandbox}/files/watch */
static int watch(struct call *call, struct error *err)
{
    enum event_format format = event_format_wanted(call);
    struct file_watch *files = NULL;
    struct file_place place;

    if (api_file_place(call, ".", &place, err) < 0)
        return -1;
    if (file_watch_open(call->core->sandboxes, &call->actor, &place,
                        query_bool(call->query, "recursive", false), &files, err) < 0)
        return api_file_failed(err);
    watch_stream_start(call, place.sandbox_id, format ? format : EVENT_FORMAT_NDJSON, files);
    return 0;
}

static const struct route_answer watch_answers[] = {
    {200, .content = "application/x-ndjson"},
    {200, .content = "text/event-stream"},
    {0},
};

const struct route api_watch_routes[] = {
    {"GET", API_FILES "/watch", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, watch,
     .summary = "what happens in a directory, as server-sent events or (default) ndjson: created, "
                "changed, removed, moved, overflow",
     .query = watch_parameters, .answers = watch_answers, .needs = SCOPE_READ},
    {0},
};
