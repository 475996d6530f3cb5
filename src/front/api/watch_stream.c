/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Watched directories as records. Everything of one is touched on the loop only.
 */
#include "front/api/watch_stream.h"

#include "base/mem.h"
#include "base/utf8.h"
#include "front/api/api.h"
#include "web/follower.h"
#include "web/router.h"

#include <string.h>

#define LARGE_BYTES (4u << 10) // of records: others get their turn before more are made
#define PAUSE_MS 20

struct watch_stream {
    struct follower base; // has no worker
    enum event_format format;
    struct file_watch *files;
    struct loop_watch *ready; // NULL: it is over
    struct watch *sandbox;    // for the end of the server
    struct loop_timer beat, pause;
    struct buffer text; // records that wait for room
    bool is_broken;     // the loop tells no more, but there may be records before the end
    bool is_over;       // those are the last
    bool is_finished;
};

static void watch_stream_free(void *data)
{
    struct watch_stream *stream = data;

    file_watch_free(stream->files);
    buffer_clear(&stream->text);
    free(stream);
}

static void finish(struct watch_stream *stream, bool is_whole)
{
    if (stream->is_finished)
        return;
    stream->is_finished = true;
    response_finish(stream->base.waiting.response, is_whole);
}

// ---- records ----

struct record {
    const char *path, *from, *to, *type, *reason, *detail;
    struct answer_bytes odd_path, odd_from, odd_to; // those that are not UTF-8
    bool is_attributes;
};
#define AT(member) offsetof(struct record, member)
static const char *const types[] = {"file", "directory"};
const struct answer_field watch_stream_fields[] = {
    {"path", ANSWER_TEXT, AT(path), .help = "relative to the watched directory"},
    {"pathBase64", ANSWER_BASE64, AT(odd_path), .help = "where the path is not UTF-8"},
    {"from", ANSWER_TEXT, AT(from), .help = "moved: where it was"},
    {"fromBase64", ANSWER_BASE64, AT(odd_from)},
    {"to", ANSWER_TEXT, AT(to), .help = "moved: where it is"},
    {"toBase64", ANSWER_BASE64, AT(odd_to)},
    {"kind", ANSWER_TEXT, AT(type), .words = types, .n_words = ARRAY_SIZE(types),
     .help = "a directory, or anything else"},
    {"attributes", ANSWER_TRUTH, AT(is_attributes),
     .help = "changed: its mode, owner or times, and not its content"},
    {"reason", ANSWER_TEXT, AT(reason), .help = "ended: why"},
    {"detail", ANSWER_TEXT, AT(detail), .help = "overflow, ended: a sentence"},
    {0},
};
#undef AT

static void add_record(struct watch_stream *stream, const char *event, const struct record *record)
{
    autobuffer data = {0};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &data);
    answer_write(&json, watch_stream_fields, record);
    if (json_writer_finish(&json, &ignored) < 0)
        return; // there is nothing in it that could not be written
    struct event_record told = {NULL, event, data.data, data.length};
    (void)event_format_add(stream->format, &told, &stream->text, &ignored);
}

static struct answer_bytes odd_bytes(const char *path)
{
    size_t length = path ? strlen(path) : 0;

    return length && !utf8_is_valid(path, length) ? (struct answer_bytes){path, length}
                                                  : (struct answer_bytes){0};
}

static void on_event(void *data, const struct files_event *event)
{
    static const char *const names[FILES_EVENT_KINDS] = {
        [FILES_CREATED] = "created", [FILES_CHANGED] = "changed", [FILES_ATTRIBUTES] = "changed",
        [FILES_REMOVED] = "removed", [FILES_MOVED] = "moved",     [FILES_OVERFLOW] = "overflow",
    };
    bool is_move = event->kind == FILES_MOVED, is_lost = event->kind == FILES_OVERFLOW;
    struct record record = {
        .path = is_move || is_lost ? NULL : event->path,
        .from = is_move ? event->path : NULL,
        .to = is_move ? event->second : NULL,
        .type = is_lost ? NULL : types[event->is_directory],
        .is_attributes = event->kind == FILES_ATTRIBUTES,
        .detail = is_lost ? "more happened than could be told: list the directory again" : NULL,
    };

    record.odd_path = odd_bytes(record.path);
    record.odd_from = odd_bytes(record.from);
    record.odd_to = odd_bytes(record.to);
    if (names[event->kind])
        add_record(data, names[event->kind], &record);
}

// ---- the loop ----

static void look(struct watch_stream *stream);

/* Whether all records are out. */
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

static void stop_looking(struct watch_stream *stream)
{
    loop_watch_free(take(stream->ready));
}

static void end(struct watch_stream *stream, const struct error *err)
{
    stop_looking(stream);
    stream->is_over = true;
    add_record(stream, "ended",
               &(struct record){.reason = api_problem_code(err), .detail = err->text});
}

/* Tells what has happened, and waits for more. Behind a client that is behind, on_room goes on. */
static void look(struct watch_stream *stream)
{
    struct error err = {0};
    size_t made = 0;

    if (stream->is_finished)
        return;
    if (stream->ready && send_text(stream)) {
        int taken = file_watch_take(stream->files, on_event, stream, &err);
        if (taken < 0)
            end(stream, &err);
        made = stream->text.length;
    }
    bool is_sent = send_text(stream);
    if (is_sent && stream->is_over)
        finish(stream, true);
    else if (router_is_draining(stream->base.waiting.router))
        finish(stream, false);
    if (!stream->ready)
        return;
    bool is_paused = made > LARGE_BYTES;
    if (is_paused || (is_sent && stream->is_broken))
        loop_timer_set(&stream->pause, is_paused ? PAUSE_MS : 0);
    loop_watch_set(stream->ready, is_sent && !is_paused ? LOOP_READABLE : 0);
}

static void on_files(void *data, unsigned events)
{
    struct watch_stream *stream = data;

    stream->is_broken |= (events & LOOP_FAILED) != 0;
    look(stream);
}

static void go_on(void *data)
{
    look(data);
}

static const struct follower_kind kind = {.on_wake = go_on, .free = watch_stream_free};

static void on_beat(void *data)
{
    struct watch_stream *stream = data;

    if (stream->is_finished)
        return;
    follower_keep_alive(&stream->base, stream->format);
    loop_timer_set(&stream->beat, EVENT_KEEP_ALIVE_MS);
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
    loop_timer_clear(&stream->pause);
    watch_free(take(stream->sandbox));
    stop_looking(stream);
    follower_end(&stream->base);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = go_on, .on_end = on_end};

struct beginning {
    struct watch_stream *stream;
    char sandbox_id[ID_TEXT];
};

/* On the loop. */
static void begin(void *data)
{
    autofree struct beginning *beginning = data;
    struct watch_stream *stream = beginning->stream;
    struct waiting_call *waiting = &stream->base.waiting;
    struct error err = {0};

    loop_timer_init(&stream->beat, waiting->loop, on_beat, stream);
    loop_timer_init(&stream->pause, waiting->loop, go_on, stream);
    if (loop_watch_new(waiting->loop, file_watch_fd(stream->files), on_files, stream,
                       &stream->ready, &err) < 0) {
        waiting_call_fail(waiting, &err);
        follower_unref(&stream->base);
        return;
    }
    (void)response_begin(waiting->response, 200, event_format_headers(stream->format),
                         RESPONSE_LENGTH_UNKNOWN);
    loop_timer_set(&stream->beat, EVENT_KEEP_ALIVE_MS);
    stream->sandbox = hub_watch(waiting->core->hub, beginning->sandbox_id, follower_wake, stream);
    response_watch(waiting->response, &events, stream);
    add_record(stream, "started", &(struct record){0});
    look(stream);
}

void watch_stream_start(struct call *call, const char *sandbox_id, enum event_format format,
                        struct file_watch *watch)
{
    struct beginning *beginning = xnew(struct beginning);
    struct watch_stream *stream = xnew(struct watch_stream);

    follower_init(&stream->base, call, &kind);
    stream->format = format;
    stream->files = watch;
    beginning->stream = stream;
    (void)snprintf(beginning->sandbox_id, sizeof beginning->sandbox_id, "%s", sandbox_id);
    loop_post(stream->base.waiting.loop, begin, beginning);
}
