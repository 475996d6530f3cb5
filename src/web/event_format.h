/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records that are sent as they come: server-sent events (text/event-stream) or lines of JSON (application/x-ndjson). A record is an id to
 * go on from, the name of what happened, and a JSON value.
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "net/request.h"
#include "web/call.h"

enum event_format {
    EVENT_FORMAT_NONE, // neither was asked for: the caller answers as it answers others
    EVENT_FORMAT_SSE,
    EVENT_FORMAT_NDJSON,
};

/* By the request's Accept: the first of the two types that it names. Others, and weights, are passed over. */
enum event_format event_format_wanted(const struct call *call);

/* Of the answer: Content-Type, Cache-Control: no-cache, and X-Accel-Buffering: no, so that no proxy keeps records back. */
const struct http_header *event_format_headers(enum event_format format);

/*
 * Adds one record. `id` and `event` are ours, without line breaks, and may be NULL; `data` is JSON as json_writer writes it, without
 * line breaks. ERROR_LIMIT when the buffer is full.
 *     id: 17                                {"id":"17","event":"exit","data":{"code":0}}
 *     event: exit
 *     data: {"code":0}
 */
struct event_record {
    const char *id;
    const char *event;
    const char *data;
    size_t length; // of data
};
int event_format_add(enum event_format format, const struct event_record *record,
                     struct buffer *out, struct error *err);

/* What keeps a quiet connection open: a comment, or {"event":"keepAlive"}. Every EVENT_KEEP_ALIVE_MS. */
#define EVENT_KEEP_ALIVE_MS 15000
int event_format_add_keep_alive(enum event_format format, struct buffer *out, struct error *err);
