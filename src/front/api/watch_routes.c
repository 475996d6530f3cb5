/* SPDX-License-Identifier: Apache-2.0 */
/* Watching directories of a sandbox. */
#include "front/api/api.h"
#include "front/api/watch_stream.h"

static const struct parameter watch_parameters[] = {
    {"path", PARAMETER_TEXT, NULL, "a directory; default: where commands start"},
    {"recursive", PARAMETER_BOOL, NULL,
     "also what is below it, in directories that come later too"},
    {0},
};

/* GET /api/v1/sandboxes/{sandbox}/files/watch */
static int watch(struct call *call, struct error *err)
{
    enum event_format format = event_format_wanted(call);
    const char *path = query_text(call->query, "path");
    struct file_watch *files = NULL;
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        file_watch_open(call->core->sandboxes, &call->actor, id, path ? path : ".",
                        query_bool(call->query, "recursive", false), &files, err) < 0)
        return -1;
    watch_stream_start(call, id, format ? format : EVENT_FORMAT_NDJSON, files);
    return 0;
}

static const struct route_answer watch_answers[] = {
    {200, .content = "text/event-stream"}, {200, .content = "application/x-ndjson"}, {0}};

const struct route api_watch_routes[] = {
    {"GET", API_TOP "/sandboxes/{sandbox}/files/watch", ROUTE_SLOW, ACCESS_KEY, BODY_NONE, watch,
     .summary = "what happens in a directory, as server-sent events or (default) ndjson: created, "
                "changed, removed, moved, overflow",
     .query = watch_parameters, .answers = watch_answers, .needs = SCOPE_READ},
    {0},
};
