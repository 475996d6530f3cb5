/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Followers of events. Everything of one is touched on the loop only, but for what a worker reads from the store
 * meanwhile; see follower.h.
 */
#include "front/api/event_stream.h"

#include "base/mem.h"
#include "base/strings.h"
#include "core/event/channel.h"
#include "front/api/event_text.h"
#include "web/follower.h"
#include "web/router.h"

#include <string.h>

#define AT_ONCE 256              // events that are taken from the memory for one piece
#define SCANNED 256              // that a worker looks at in one turn
#define PIECE (48u << 10)        // bytes of a piece, from the memory
#define BATCH_MAXIMUM (4u << 20) // of what a worker reads: SCANNED events of the largest kind fit

struct event_stream {
    struct follower base;
    enum event_format format;
    char *sandbox_id;
    const char *const *kinds;
    struct watch *watch;
    // On the loop:
    struct loop_timer quiet;
    int64_t place;       // the last number that was looked at, and told where it was wanted
    bool is_finished;    // nothing more will be appended
    struct buffer batch; // what a worker read and the client has no room for yet
    int64_t batch_place; // where it is with that
    // The worker's while it has it:
    struct error failure;
    bool has_failed;
};

static void advance(struct event_stream *stream);

static void event_stream_free(void *data)
{
    struct event_stream *stream = data;

    buffer_clear(&stream->batch);
    free(stream->sandbox_id);
    free((void *)stream->kinds);
    free(stream);
}

static void finish(struct event_stream *stream, bool is_whole)
{
    if (stream->is_finished)
        return;
    stream->is_finished = true;
    response_finish(stream->base.waiting.response, is_whole);
    watch_free(take(stream->watch));
    loop_timer_clear(&stream->quiet);
    event_channel_leave(stream->base.waiting.core->events);
}

static bool is_wanted(const struct event_stream *stream, const struct event_info *info)
{
    char spare[EVENT_KIND];

    if (stream->sandbox_id &&
        (!info->sandbox_id || strcmp(stream->sandbox_id, info->sandbox_id) != 0))
        return false;
    return event_patterns_match(stream->kinds, event_kind(info, spare));
}

// ---- from the memory ----

/* Its text, made once for all who follow in this format. NULL: it cannot be written. */
static const char *shared_text(struct shared_event *event, enum event_format format, size_t *length)
{
    unsigned slot = format == EVENT_FORMAT_SSE ? 0 : 1;
    struct error ignored;

    if (!event->rendered[slot]) {
        struct buffer text = {0};
        if (event_text_record(format, &event->info, &text, &ignored) < 0) {
            buffer_clear(&text);
            return NULL;
        }
        event->rendered[slot] = text.data;
        event->lengths[slot] = text.length;
    }
    *length = event->lengths[slot];
    return event->rendered[slot];
}

/* One piece of what there is. *place: how far it goes. False: an event cannot be written. */
static bool gather(struct event_stream *stream, struct shared_event **events, int count,
                   struct buffer *piece, int64_t *place)
{
    struct error ignored;

    for (int i = 0; i < count && piece->length < PIECE; i++) {
        size_t length = 0;
        const struct event_info *info = &events[i]->info;
        if (actor_sees_in(&stream->base.waiting.actor, &info->owner, info->sandbox_id) &&
            is_wanted(stream, info)) {
            const char *text = shared_text(events[i], stream->format, &length);
            if (!text || buffer_add(piece, text, length, &ignored) < 0)
                return false;
        }
        *place = events[i]->info.serial;
    }
    return true;
}

enum step { STEP_ON, STEP_WAIT, STEP_BEHIND };

static enum step send_from_memory(struct event_stream *stream)
{
    struct shared_event *events[AT_ONCE];
    autobuffer piece = {0};
    int64_t place = stream->place;
    int count =
        event_channel_next(stream->base.waiting.core->events, stream->place, events, AT_ONCE);

    if (count < 0)
        return STEP_BEHIND;
    bool is_written = gather(stream, events, count, &piece, &place);
    for (int i = 0; i < count; i++)
        shared_event_unref(events[i]);
    if (!is_written) {
        finish(stream, false);
        return STEP_WAIT;
    }
    if (piece.length &&
        response_append(stream->base.waiting.response, piece.data, piece.length) != RESPONSE_TAKEN)
        return STEP_WAIT; // on_room goes on, from the same place
    stream->place = place;
    return count > 0 ? STEP_ON : STEP_WAIT;
}

// ---- from the store ----

static int read_batch(struct event_stream *stream, struct error *err)
{
    struct waiting_call *waiting = &stream->base.waiting;
    const struct event_scan scan = {.owner = actor_filter(&waiting->actor),
                                    .sandbox_id = stream->sandbox_id,
                                    .after = stream->place,
                                    .scanned = SCANNED};
    autoclear(event_infos) found = {0};
    struct event_range range;

    // First what there is, then whether anything of it was forgotten meanwhile.
    if (event_scan(waiting->core->events, &scan, &found, &stream->batch_place, err) < 0 ||
        event_range(waiting->core->events, &range, err) < 0)
        return -1;
    if (stream->place < range.forgotten && !stream->sandbox_id)
        return error_set(err, ERROR_EXPIRED, "the client is too far behind");
    for (size_t i = 0; i < found.count; i++) {
        if (is_wanted(stream, &found.items[i]) &&
            event_text_record(stream->format, &found.items[i], &stream->batch, err) < 0)
            return -1;
    }
    return 0;
}

/* Sends what a worker has read. False: there is no room. */
static bool send_batch(struct event_stream *stream)
{
    if (stream->batch.length && response_append(stream->base.waiting.response, stream->batch.data,
                                                stream->batch.length) != RESPONSE_TAKEN)
        return false;
    buffer_clear(&stream->batch);
    stream->batch = (struct buffer){.maximum = BATCH_MAXIMUM};
    if (stream->batch_place > stream->place)
        stream->place = stream->batch_place;
    return true;
}

/* A worker is done with it. */
static void on_read(void *data)
{
    struct event_stream *stream = data;

    if (stream->has_failed)
        finish(stream, false);
    advance(stream);
}

static void on_worker(void *data)
{
    struct event_stream *stream = data;

    stream->has_failed = read_batch(stream, &stream->failure) < 0;
}

// ---- on the loop ----

/* Hands over what there is. Behind a full response on_room goes on; behind one that is gone, on_end comes. */
static void advance(struct event_stream *stream)
{
    enum step step = STEP_ON;
    int64_t before = stream->place;

    if (stream->is_finished || stream->base.is_working)
        return;
    if (!send_batch(stream))
        step = STEP_WAIT;
    while (step == STEP_ON)
        step = send_from_memory(stream);
    if (stream->is_finished)
        return;
    if (stream->place != before)
        loop_timer_set(&stream->quiet, EVENT_KEEP_ALIVE_MS);
    if (router_is_draining(stream->base.waiting.router))
        finish(stream, false);
    else if (step == STEP_BEHIND)
        (void)follower_work(&stream->base, on_worker);
}

static void go_on(void *data)
{
    advance(data);
}

static const struct follower_kind kind = {
    .on_wake = go_on, .on_worked = on_read, .on_retry = go_on, .free = event_stream_free};

/* Nothing was told for a while. */
static void on_quiet(void *data)
{
    struct event_stream *stream = data;
    autobuffer text = {0};
    struct error ignored;

    if (!stream->base.is_working &&
        event_text_place(stream->format, stream->place, &text, &ignored) == 0)
        (void)response_append(stream->base.waiting.response, text.data, text.length);
    loop_timer_set(&stream->quiet, EVENT_KEEP_ALIVE_MS);
}

static void on_gone(void *data)
{
    finish(data, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct event_stream *stream = data;

    (void)is_delivered;
    finish(stream, false);
    follower_end(&stream->base);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = go_on, .on_end = on_end};

/* On the loop. */
static void begin(void *data)
{
    struct event_stream *stream = data;
    struct waiting_call *waiting = &stream->base.waiting;

    loop_timer_init(&stream->quiet, waiting->loop, on_quiet, stream);
    loop_timer_set(&stream->quiet, EVENT_KEEP_ALIVE_MS);
    event_channel_join(waiting->core->events);
    stream->watch = hub_watch(waiting->core->hub, EVENT_CHANNEL_ID, follower_wake, stream);
    (void)response_begin(waiting->response, 200, event_format_headers(stream->format),
                         RESPONSE_LENGTH_UNKNOWN);
    response_watch(waiting->response, &events, stream);
    advance(stream);
}

void event_stream_start(struct call *call, enum event_format format, const struct event_wish *wish)
{
    struct event_stream *stream = xnew(struct event_stream);

    follower_init(&stream->base, call, &kind);
    stream->format = format;
    stream->sandbox_id = wish->sandbox_id ? xstrdup(wish->sandbox_id) : NULL;
    stream->kinds = wish->kinds ? strings_copy(wish->kinds) : NULL;
    stream->place = wish->after;
    stream->batch.maximum = BATCH_MAXIMUM;
    loop_post(stream->base.waiting.loop, begin, stream);
}
