/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watched directory as a stream of messages. What has happened is read by a worker, since what stands there may have to be looked at; all else is
 * touched on the loop only.
 */
#include "front/e2b/envd_watch.h"

#include "base/mem.h"
#include "core/core.h"
#include "front/e2b/connect_rpc.h"
#include "web/follower.h"
#include "web/router.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MOST ((size_t)4 << 20) // that waits for a client; more is dropped with the watch

struct watch_stream {
    struct follower base;
    struct file_watch *files;
    struct loop_watch *ready; // NULL: it is over
    struct watch *sandbox;    // for the end of the server
    struct loop_timer beat, deadline;
    uint64_t keep_alive_ms, deadline_ms;
    char *sandbox_id, *user, *path;
    bool has_entries;
    struct buffer text; // messages that wait for room
    bool is_over;       // they are the last
    bool is_finished;
};

static void stream_free(void *data)
{
    struct watch_stream *stream = data;

    file_watch_free(stream->files);
    buffer_clear(&stream->text);
    free(stream->sandbox_id);
    free(stream->user);
    free(stream->path);
    free(stream);
}

static void finish(struct watch_stream *stream, bool is_whole)
{
    if (stream->is_finished)
        return;
    stream->is_finished = true;
    response_finish(stream->base.waiting.response, is_whole);
}

static bool send_text(struct watch_stream *stream)
{
    struct buffer *text = &stream->text;

    if (text->length == 0)
        return true;
    if (response_append(stream->base.waiting.response, text->data, text->length) != RESPONSE_TAKEN)
        return false;
    text->length = 0;
    return true;
}

// ---- the worker ----

static void put_event(void *data, const char *json)
{
    struct watch_stream *stream = data;
    struct error ignored = {0};
    size_t begun = rpc_envelope_begin(&stream->text);

    (void)buffer_addf(&stream->text, &ignored, "{\"filesystem\":%s}", json);
    rpc_envelope_end(&stream->text, begun, 0);
}

static void take_events(void *data)
{
    struct watch_stream *stream = data;
    struct call call = waiting_call_get(&stream->base.waiting);
    const struct file_place place = {stream->sandbox_id, stream->user, stream->path};
    const struct envd_teller teller = {&call, &place, stream->has_entries, put_event, stream};
    autoarena arena = {0};
    struct error err = {0};

    call.arena = &arena;
    if (envd_watch_tell(stream->files, &teller, &err) < 0) {
        stream->is_over = true;
        if (error_is(&err, ERROR_ENDED))
            rpc_envelope_add_end(&stream->text, RPC_UNAVAILABLE, err.text);
        else
            rpc_envelope_add_end(&stream->text, RPC_OK, NULL);
    }
}

// ---- the loop ----

static void advance(void *data)
{
    struct watch_stream *stream = data;

    if (stream->is_finished || stream->base.is_working)
        return;
    bool is_sent = send_text(stream);
    if (is_sent && stream->is_over)
        finish(stream, true);
    else if (router_is_draining(stream->base.waiting.router))
        finish(stream, false);
    if (stream->ready)
        loop_watch_set(stream->ready, is_sent && !stream->is_over ? LOOP_READABLE : 0);
}

static void on_files(void *data, unsigned events)
{
    struct watch_stream *stream = data;

    (void)events;
    loop_watch_set(stream->ready, 0);
    if (!stream->is_finished && !stream->base.is_working)
        (void)follower_work(&stream->base, take_events);
}

/* There was no worker. */
static void on_retry(void *data)
{
    struct watch_stream *stream = data;

    if (!stream->is_finished && !stream->base.is_working)
        (void)follower_work(&stream->base, take_events);
}

static const struct follower_kind kind = {
    .on_wake = advance, .on_worked = advance, .on_retry = on_retry, .free = stream_free};

static void on_beat(void *data)
{
    struct watch_stream *stream = data;
    autobuffer text = {0};

    if (stream->is_finished)
        return;
    rpc_envelope_add(&text, "{\"keepalive\":{}}");
    if (response_is_drained(stream->base.waiting.response))
        (void)response_append(stream->base.waiting.response, text.data, text.length);
    loop_timer_set(&stream->beat, stream->keep_alive_ms);
}

static void on_deadline(void *data)
{
    struct watch_stream *stream = data;
    autobuffer text = {0};

    if (stream->is_finished)
        return;
    rpc_envelope_add_end(&text, RPC_DEADLINE_EXCEEDED, "the time for this call is over");
    finish(stream, response_append(stream->base.waiting.response, text.data, text.length) ==
                       RESPONSE_TAKEN);
}

static void on_gone(void *data)
{
    finish(data, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct watch_stream *stream = data;

    (void)is_delivered;
    stream->is_finished = true;
    loop_timer_clear(&stream->beat);
    loop_timer_clear(&stream->deadline);
    watch_free(take(stream->sandbox));
    loop_watch_free(take(stream->ready));
    follower_end(&stream->base);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = advance, .on_end = on_end};

/* On the loop. */
static void begin(void *data)
{
    struct watch_stream *stream = data;
    struct waiting_call *waiting = &stream->base.waiting;
    struct error err = {0};

    loop_timer_init(&stream->beat, waiting->loop, on_beat, stream);
    loop_timer_init(&stream->deadline, waiting->loop, on_deadline, stream);
    if (loop_watch_new(waiting->loop, file_watch_fd(stream->files), on_files, stream,
                       &stream->ready, &err) < 0) {
        waiting_call_fail(waiting, &err);
        follower_unref(&stream->base);
        return;
    }
    (void)response_begin(waiting->response, 200, rpc_stream_headers, RESPONSE_LENGTH_UNKNOWN);
    loop_timer_set(&stream->beat, stream->keep_alive_ms);
    if (stream->deadline_ms)
        loop_timer_set(&stream->deadline, stream->deadline_ms);
    stream->sandbox = hub_watch(waiting->core->hub, stream->sandbox_id, follower_wake, stream);
    rpc_envelope_add(&stream->text, "{\"start\":{}}");
    response_watch(waiting->response, &events, stream);
    advance(stream);
}

void envd_watch_start(struct call *call, const struct envd_watching *watching)
{
    struct watch_stream *stream = xnew(struct watch_stream);

    follower_init(&stream->base, call, &kind);
    stream->files = watching->watch;
    stream->has_entries = watching->has_entries;
    stream->sandbox_id = xstrdup(watching->place->sandbox_id);
    stream->user = watching->place->user ? xstrdup(watching->place->user) : NULL;
    stream->path = xstrdup(watching->place->path);
    stream->keep_alive_ms = (uint64_t)rpc_keep_alive_ms(call);
    stream->deadline_ms = (uint64_t)rpc_deadline_ms(call);
    stream->text.maximum = TEXT_MOST;
    loop_post(stream->base.waiting.loop, begin, stream);
}
