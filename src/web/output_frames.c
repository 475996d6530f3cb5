/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Both outputs of an execution over one response, framed by whoever asks: what it writes, as it comes, and then how it ended. Everything of
 * a follower is touched on the loop only, but for what a worker has meanwhile; see follower.h. Bytes are read on the loop where they are in
 * memory, and else by a worker.
 */
#include "web/output_frames.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/execution/execution.h"
#include "core/stream/stream.h"
#include "web/follower.h"
#include "web/router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#define PIECE (16u << 10)
#define PIECES 4 // at most, before others get their turn

/* Bytes that a worker has read. */
struct ahead {
    char *bytes;
    size_t length;
    unsigned side;
    uint64_t offset;
};

struct output_follow {
    struct follower base;
    const struct output_frames *frames;
    void *data; // of the frames
    const struct http_header *headers;
    char id[ID_TEXT];
    uint64_t keep_alive_ms, deadline_ms;
    struct output_sides sides;
    bool is_now;
    uint64_t until[OUTPUT_SIDES]; // where it ends; UINT64_MAX: where the output does
    unsigned next;                // the side whose turn it is
    struct watch *watch;
    struct loop_timer beat, deadline;
    struct ahead ahead;
    struct buffer start; // the first frame; empty: none, or told
    struct buffer end;   // the last frame, once it is known
    bool has_looked;     // a worker has looked at the execution
    bool is_failed;      // it could not
    bool is_finished;
};

static void follow_free(void *data)
{
    struct output_follow *follow = data;

    output_sides_clear(&follow->sides);
    if (follow->frames->free)
        follow->frames->free(follow->data);
    free(follow->ahead.bytes);
    buffer_clear(&follow->start);
    buffer_clear(&follow->end);
    free(follow);
}

static void finish(struct output_follow *follow, bool is_whole)
{
    if (follow->is_finished)
        return;
    follow->is_finished = true;
    response_finish(follow->base.waiting.response, is_whole);
}

// ---- looking at the execution ----

enum look { LOOK_DONE, LOOK_ELSEWHERE };

static enum look look(struct output_follow *follow, bool is_quick)
{
    struct executions *executions = follow->base.waiting.core->executions;
    const struct actor *actor = &follow->base.waiting.actor;
    autoclear(execution_info) info = {0};
    struct error err = {0};

    if (is_quick && execution_get_quick(executions, actor, follow->id, NULL, &info, &err) != 1)
        return LOOK_ELSEWHERE;
    if (!is_quick && execution_get(executions, actor, follow->id, NULL, &info, &err) < 0) {
        follow->is_failed = true;
        return LOOK_DONE;
    }
    if (!output_sides_open(&follow->sides, follow->base.waiting.core->streams, &info, is_quick))
        return LOOK_ELSEWHERE;
    if (execution_info_is_over(&info) &&
        !follow->frames->end(follow->data, &follow->base.waiting, &info, is_quick, &follow->end))
        return LOOK_ELSEWHERE;
    return LOOK_DONE;
}

// ---- bytes ----

static ssize_t read_here(int fd, void *bytes, size_t length, uint64_t offset)
{
    struct iovec part = {bytes, length};
    ssize_t got = preadv2(fd, &part, 1, (off_t)offset, RWF_NOWAIT);

    if (got < 0 && errno == EOPNOTSUPP) // as in follow.c: it was written a moment ago
        got = pread(fd, bytes, length, (off_t)offset);
    return got;
}

/* What a worker read ahead, or what is in memory; 0: neither. */
static size_t get_bytes(struct output_follow *follow, unsigned index, char bytes[PIECE],
                        size_t wanted)
{
    const struct output_place *side = &follow->sides.at[index];
    struct ahead *ahead = &follow->ahead;

    if (ahead->length && ahead->side == index && ahead->offset == side->offset) {
        size_t length = ahead->length < wanted ? ahead->length : wanted;
        memcpy(bytes, ahead->bytes, length);
        return length;
    }
    ssize_t got = read_here(stream_fd(side->stream), bytes, wanted, side->offset);
    return got > 0 ? (size_t)got : 0;
}

enum step {
    STEP_NOTHING,   // there is nothing to tell now
    STEP_TOLD,      // a frame more
    STEP_STUCK,     // the client is behind, or gone
    STEP_ELSEWHERE, // it has to be read from the disk
};

static enum step send_bytes(struct output_follow *follow, unsigned index, const char *bytes,
                            size_t length, bool is_last)
{
    struct output_place *side = &follow->sides.at[index];
    const struct output_piece piece = {.side = index,
                                       .bytes = bytes,
                                       .length = length,
                                       .is_last = is_last,
                                       .sides = &follow->sides};
    autobuffer frame = {0};
    size_t told = follow->frames->piece(follow->data, &piece, &frame);

    if (told == 0)
        return STEP_NOTHING;
    if (response_append(follow->base.waiting.response, frame.data, frame.length) != RESPONSE_TAKEN)
        return STEP_STUCK;
    side->offset += told;
    return STEP_TOLD;
}

static enum step send_piece(struct output_follow *follow, unsigned index)
{
    struct output_place *side = &follow->sides.at[index];
    struct stream_progress progress;
    char bytes[PIECE];

    if (!side->stream)
        return STEP_NOTHING;
    stream_progress(side->stream, &progress);
    if (side->offset < progress.first_bytes) // of a terminal: gone, and the frames' offsets tell
        side->offset = progress.first_bytes;
    bool is_cut = follow->until[index] <= progress.size_bytes;
    uint64_t end = is_cut ? follow->until[index] : progress.size_bytes;
    if (side->offset >= end)
        return STEP_NOTHING;
    uint64_t rest = end - side->offset;
    size_t wanted = rest < sizeof bytes ? (size_t)rest : sizeof bytes;
    size_t got = get_bytes(follow, index, bytes, wanted);
    if (got == 0)
        return STEP_ELSEWHERE;
    return send_bytes(follow, index, bytes, got, (is_cut || progress.is_complete) && got == rest);
}

/* Of either side in turn. */
static enum step send_next(struct output_follow *follow)
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        unsigned index = (follow->next + i) % OUTPUT_SIDES;
        enum step step = send_piece(follow, index);
        if (step == STEP_NOTHING)
            continue;
        follow->next = step == STEP_TOLD ? (index + 1) % OUTPUT_SIDES : index;
        return step;
    }
    return STEP_NOTHING;
}

// ---- workers ----

static void read_ahead(struct output_follow *follow)
{
    struct output_place *side = &follow->sides.at[follow->next];
    struct ahead *ahead = &follow->ahead;

    if (!ahead->bytes)
        ahead->bytes = xcalloc(1, PIECE);
    ssize_t got = pread(stream_fd(side->stream), ahead->bytes, PIECE, (off_t)side->offset);
    ahead->length = got > 0 ? (size_t)got : 0;
    ahead->side = follow->next;
    ahead->offset = side->offset;
    follow->is_failed |= got <= 0; // a broken disk: nobody should wait for ever
}

static void on_read_worker(void *data)
{
    struct output_follow *follow = data;

    read_ahead(follow);
}

static void on_look_worker(void *data)
{
    struct output_follow *follow = data;

    (void)look(follow, false);
    follow->has_looked = true;
}

// ---- the loop ----

/* Whether the frame is out. */
static bool send_frame(struct output_follow *follow, struct buffer *frame)
{
    if (frame->length == 0)
        return true;
    if (response_append(follow->base.waiting.response, frame->data, frame->length) !=
        RESPONSE_TAKEN)
        return false;
    buffer_clear(frame);
    return true;
}

/* How it ended, or which streams it has got. False: a worker looks. */
static bool learn(struct output_follow *follow)
{
    bool has_looked = follow->has_looked; // a worker has, since something changed

    follow->has_looked = false;
    if (follow->end.length || has_looked)
        return true;
    if (look(follow, true) == LOOK_DONE)
        return true;
    (void)follower_work(&follow->base, on_look_worker);
    return false;
}

/* All that is there has been told. */
static void settle(struct output_follow *follow)
{
    bool is_draining = router_is_draining(follow->base.waiting.router);
    bool was_complete = output_sides_are_told(&follow->sides);

    if (was_complete && !learn(follow))
        return;
    (void)output_sides_watch(&follow->sides, follow->base.waiting.core->hub, follower_wake, follow);
    if (follow->is_failed) {
        finish(follow, false);
    } else if (was_complete && !output_sides_are_told(&follow->sides)) {
        buffer_clear(&follow->end); // what has come goes first
        follower_wake(follow);
    } else if (follow->end.length) {
        if (send_frame(follow, &follow->end))
            finish(follow, true);
    } else if (follow->is_now) {
        finish(follow, true);
    } else if (is_draining) {
        finish(follow, false);
    }
}

/* Tells what there is. Behind STEP_STUCK, on_room goes on, or on_end comes. */
static void advance(void *data)
{
    struct output_follow *follow = data;
    enum step step = STEP_TOLD;

    if (follow->is_finished || follow->base.is_working)
        return;
    if (follow->is_failed) {
        finish(follow, false);
        return;
    }
    if (!send_frame(follow, &follow->start))
        return;
    for (unsigned i = 0; i < PIECES && step == STEP_TOLD; i++)
        step = send_next(follow);
    if (step == STEP_TOLD)
        follower_wake(follow);
    else if (step == STEP_ELSEWHERE)
        (void)follower_work(&follow->base, on_read_worker);
    else if (step == STEP_NOTHING)
        settle(follow);
}

static const struct follower_kind kind = {
    .on_wake = advance, .on_worked = advance, .on_retry = advance, .free = follow_free};

/* A sign of life, unless the client is behind anyway. */
static void on_beat(void *data)
{
    struct output_follow *follow = data;
    autobuffer text = {0};

    if (follow->is_finished)
        return;
    if (response_is_drained(follow->base.waiting.response)) {
        follow->frames->keep_alive(follow->data, &text);
        (void)response_append(follow->base.waiting.response, text.data, text.length);
    }
    loop_timer_set(&follow->beat, follow->keep_alive_ms);
}

/* What there is has been told, as far as the client takes it; the execution goes on. */
static void on_deadline(void *data)
{
    struct output_follow *follow = data;
    autobuffer text = {0};

    if (follow->is_finished)
        return;
    follow->frames->late(follow->data, &text);
    bool is_sent =
        response_append(follow->base.waiting.response, text.data, text.length) == RESPONSE_TAKEN;
    finish(follow, is_sent);
}

/* The client went before the end. Not so when this server stops: then the command goes on, and its client finds it at the next one. */
static void abandon(const struct output_follow *follow)
{
    if (!follow->is_finished && follow->frames->gone)
        follow->frames->gone(follow->data, follow->base.waiting.core);
}

static void on_gone(void *data)
{
    struct output_follow *follow = data;

    abandon(follow);
    finish(follow, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct output_follow *follow = data;

    (void)is_delivered;
    abandon(follow);
    follow->is_finished = true;
    loop_timer_clear(&follow->beat);
    loop_timer_clear(&follow->deadline);
    watch_free(take(follow->watch));
    output_sides_unwatch(&follow->sides);
    follower_end(&follow->base);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = advance, .on_end = on_end};

/* On the loop. Watches first, then looks. */
static void begin(void *data)
{
    struct output_follow *follow = data;
    struct response *response = follow->base.waiting.response;

    (void)response_begin(response, 200, follow->headers, RESPONSE_LENGTH_UNKNOWN);
    loop_timer_init(&follow->beat, follow->base.waiting.loop, on_beat, follow);
    loop_timer_init(&follow->deadline, follow->base.waiting.loop, on_deadline, follow);
    loop_timer_set(&follow->beat, follow->keep_alive_ms);
    if (follow->deadline_ms)
        loop_timer_set(&follow->deadline, follow->deadline_ms);
    follow->watch = hub_watch(follow->base.waiting.core->hub, follow->id, follower_wake, follow);
    (void)output_sides_watch(&follow->sides, follow->base.waiting.core->hub, follower_wake, follow);
    response_watch(response, &events, follow);
    advance(follow);
}

// ---- starting ----

/* Streams that it gets later have nothing yet. */
static void set_ends(struct output_follow *follow, bool is_now)
{
    follow->is_now = is_now;
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        struct stream_progress progress = {0};
        if (is_now && follow->sides.at[i].stream)
            stream_progress(follow->sides.at[i].stream, &progress);
        follow->until[i] = is_now ? progress.size_bytes : UINT64_MAX;
    }
}

int output_frames_start(struct call *call, const struct output_frames_request *request,
                        struct error *err)
{
    struct output_follow *follow = xnew(struct output_follow);

    follower_init(&follow->base, call, &kind);
    follow->frames = request->frames;
    follow->data = request->data;
    follow->headers = request->headers;
    follow->keep_alive_ms = request->keep_alive_ms;
    follow->deadline_ms = request->deadline_ms;
    (void)snprintf(follow->id, sizeof follow->id, "%s", request->info->id);
    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        follow->sides.at[i].is_left_out = request->is_left_out[i];
    (void)output_sides_open(&follow->sides, call->core->streams, request->info, false);
    if (output_sides_place(&follow->sides, request->offsets, err) < 0) {
        follower_unref(&follow->base);
        return -1;
    }
    set_ends(follow, request->is_now);
    if (follow->frames->start)
        follow->frames->start(follow->data, request->info, &follow->sides, &follow->start);
    loop_post(follow->base.waiting.loop, begin, follow);
    return 0;
}
