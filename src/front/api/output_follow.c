/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions as records. Everything of a follower is touched on the loop only, but for what a worker has
 * meanwhile; see follower.h. Bytes are read on the loop where they are in
 * memory, and else by a worker.
 */
#include "front/api/output_follow.h"

#include "base/fd.h"
#include "base/mem.h"
#include "core/execution/execution.h"
#include "core/sandbox/sandbox.h"
#include "core/stream/stream.h"
#include "front/api/api.h"
#include "front/api/execution_answer.h"
#include "web/follower.h"
#include "web/router.h"

#include <errno.h>
#include <inttypes.h>
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
    char *base_url;
    enum event_format format;
    char id[ID_TEXT], sandbox_id[ID_TEXT];
    bool has_changes, is_alone, ends_with_client;
    struct output_sides sides;
    unsigned next; // the side whose turn it is
    struct watch *watch;
    struct loop_timer beat;
    struct ahead ahead;
    struct buffer start; // the first record; empty: none, or told
    struct buffer end;   // the last record, once it is known
    bool has_looked;     // a worker has looked at the execution
    bool is_failed;      // it could not
    bool is_finished;
};

static void follow_free(void *data)
{
    struct output_follow *follow = data;

    output_sides_clear(&follow->sides);
    free(follow->ahead.bytes);
    free(follow->base_url);
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

// ---- records ----

struct piece {
    struct answer_bytes text, base64;
    uint64_t offset;
};
static const struct answer_field piece_fields[] = {
    {"text", ANSWER_BYTES, offsetof(struct piece, text)},
    {"textBase64", ANSWER_BASE64, offsetof(struct piece, base64)},
    {"offset", ANSWER_NATURAL, offsetof(struct piece, offset)},
    {0},
};

static void write_record(const struct output_follow *follow, const char *event,
                         const struct answer_field *fields, const void *from, struct buffer *out)
{
    autobuffer data = {0};
    struct json_writer json;
    struct error ignored = {0};
    char id[48];

    (void)snprintf(id, sizeof id, "%" PRIu64 ".%" PRIu64, follow->sides.at[OUTPUT_STDOUT].offset,
                   follow->sides.at[OUTPUT_STDERR].offset);
    json_writer_init(&json, &data);
    answer_write(&json, fields, from);
    if (json_writer_finish(&json, &ignored) < 0)
        return; // there is nothing in it that could not be written
    struct event_record record = {id, event, data.data, data.length};
    (void)event_format_add(follow->format, &record, out, &ignored);
}

static void write_start(struct output_follow *follow, const struct execution_info *info)
{
    autoexecutionanswer answer = {0};

    execution_answer_init(&answer, info, follow->base_url);
    write_record(follow, "started", execution_answer_fields, &answer, &follow->start);
}

static void write_end(struct output_follow *follow, const struct execution_info *info)
{
    autoexecutionanswer answer = {0};
    struct core *core = follow->base.waiting.core;

    execution_answer_init(&answer, info, follow->base_url);
    if (follow->has_changes)
        execution_answer_compare(&answer, core, &follow->base.waiting.actor, info);
    if (follow->has_changes && follow->is_alone) // it is no one-shot sandbox, for its files' sake
        sandbox_end_later(core->sandboxes, info->sandbox_id, "one_shot");
    write_record(follow, "exit", execution_answer_fields, &answer, &follow->end);
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
    bool is_over = execution_info_is_over(&info);
    if (!output_sides_open(&follow->sides, follow->base.waiting.core->streams, &info, is_quick) ||
        (is_over && follow->has_changes && is_quick))
        return LOOK_ELSEWHERE;
    if (is_over)
        write_end(follow, &info);
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
    STEP_TOLD,      // a record more
    STEP_STUCK,     // the client is behind, or gone
    STEP_ELSEWHERE, // it has to be read from the disk
};

/* As text up to a character whose rest has not come yet; what is no text, in base64. How much of it: 0 when that rest is all there
 * is. */
static size_t shape(const char *bytes, size_t length, bool is_last, struct piece *piece)
{
    size_t text = output_text_length(bytes, length);

    if (text == NO_TEXT || (text == 0 && is_last)) {
        piece->base64 = (struct answer_bytes){bytes, length};
        return length;
    }
    piece->text = (struct answer_bytes){bytes, text};
    return text;
}

static enum step send_bytes(struct output_follow *follow, unsigned index, const char *bytes,
                            size_t length, bool is_last)
{
    struct output_place *side = &follow->sides.at[index];
    struct piece piece = {.offset = side->offset};
    autobuffer record = {0};
    size_t told = shape(bytes, length, is_last, &piece);

    if (told == 0)
        return STEP_NOTHING;
    side->offset += told; // the record's id is of behind it
    write_record(follow, output_side_names[index], piece_fields, &piece, &record);
    if (response_append(follow->base.waiting.response, record.data, record.length) ==
        RESPONSE_TAKEN)
        return STEP_TOLD;
    side->offset -= told;
    return STEP_STUCK;
}

static enum step send_piece(struct output_follow *follow, unsigned index)
{
    struct output_place *side = &follow->sides.at[index];
    struct stream_progress progress;
    char bytes[PIECE];

    if (!side->stream)
        return STEP_NOTHING;
    stream_progress(side->stream, &progress);
    if (side->offset < progress.first_bytes) // of a terminal: gone, and the records' offsets tell
        side->offset = progress.first_bytes;
    if (side->offset >= progress.size_bytes)
        return STEP_NOTHING;
    uint64_t rest = progress.size_bytes - side->offset;
    size_t wanted = rest < sizeof bytes ? (size_t)rest : sizeof bytes;
    size_t got = get_bytes(follow, index, bytes, wanted);
    if (got == 0)
        return STEP_ELSEWHERE;
    return send_bytes(follow, index, bytes, got, progress.is_complete && got == rest);
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

/* Whether the record is out. */
static bool send_record(struct output_follow *follow, struct buffer *record)
{
    if (record->length == 0)
        return true;
    if (response_append(follow->base.waiting.response, record->data, record->length) !=
        RESPONSE_TAKEN)
        return false;
    buffer_clear(record);
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
        if (send_record(follow, &follow->end))
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
    if (!send_record(follow, &follow->start))
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

static void on_beat(void *data)
{
    struct output_follow *follow = data;

    if (follow->is_finished)
        return;
    follower_keep_alive(&follow->base, follow->format);
    loop_timer_set(&follow->beat, EVENT_KEEP_ALIVE_MS);
}

/* The client went before the end. Not so when this server stops: then the command goes on, and its client finds it at the next one. */
static void abandon(const struct output_follow *follow)
{
    if (!follow->is_finished && follow->ends_with_client)
        sandbox_abandon(follow->base.waiting.core->sandboxes, follow->sandbox_id);
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

    (void)response_begin(response, 200, event_format_headers(follow->format),
                         RESPONSE_LENGTH_UNKNOWN);
    loop_timer_init(&follow->beat, follow->base.waiting.loop, on_beat, follow);
    loop_timer_set(&follow->beat, EVENT_KEEP_ALIVE_MS);
    follow->watch = hub_watch(follow->base.waiting.core->hub, follow->id, follower_wake, follow);
    (void)output_sides_watch(&follow->sides, follow->base.waiting.core->hub, follower_wake, follow);
    response_watch(response, &events, follow);
    advance(follow);
}

// ---- starting ----

static struct output_follow *follow_new(struct call *call,
                                        const struct output_follow_request *request)
{
    struct output_follow *follow = xnew(struct output_follow);

    follower_init(&follow->base, call, &kind);
    follow->base_url = xstrdup(call_base_url(call));
    follow->format = request->format;
    follow->has_changes = request->has_changes;
    follow->is_alone = request->is_alone;
    follow->ends_with_client = request->ends_with_client;
    (void)snprintf(follow->id, sizeof follow->id, "%s", request->info->id);
    (void)snprintf(follow->sandbox_id, sizeof follow->sandbox_id, "%s", request->info->sandbox_id);
    for (unsigned i = 0; i < OUTPUT_SIDES; i++)
        follow->sides.at[i].is_left_out = request->is_left_out[i];
    return follow;
}

int output_follow_start(struct call *call, const struct output_follow_request *request,
                        struct error *err)
{
    struct output_follow *follow = follow_new(call, request);

    (void)output_sides_open(&follow->sides, call->core->streams, request->info, false);
    if (output_sides_place(&follow->sides, request->offsets, err) < 0) {
        follower_unref(&follow->base);
        return -1;
    }
    if (request->tells_start)
        write_start(follow, request->info);
    loop_post(follow->base.waiting.loop, begin, follow);
    return 0;
}

bool output_follow_read_id(const char *text, uint64_t offsets[OUTPUT_SIDES])
{
    for (unsigned i = 0; i < OUTPUT_SIDES; i++) {
        char *end;
        if (*text < '0' || *text > '9')
            return false;
        errno = 0;
        offsets[i] = strtoull(text, &end, 10);
        if (errno || *end != (i + 1 < OUTPUT_SIDES ? '.' : '\0'))
            return false;
        text = end + 1;
    }
    return true;
}
