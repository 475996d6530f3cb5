/* SPDX-License-Identifier: Apache-2.0 */
/* Followers of code; see code_follow.h. Everything of one is touched on the loop only, but for what a worker has meanwhile. */
#include "web/code_follow.h"

#include "base/mem.h"
#include "data/json.h"
#include "data/json_writer.h"
#include "web/event_format.h"
#include "web/follower.h"
#include "web/reply.h"
#include "web/router.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define PIECE (256u << 10)        // read at once
#define SMALL (32u << 10)         // lines that the loop reads itself
#define BATCH (CODE_LINE + SMALL) // of what goes to the client at once
#define FREE (64u << 10)          // that a run may keep without being counted
#define TREE (48u << 20)          // that is made of one line

struct code_follow {
    struct follower base;
    const struct code_format *format;
    void *state;
    struct code_run run;
    struct loop_watch *watch;
    struct loop_timer quiet, deadline;
    size_t written; // of the request
    int64_t timeout_ms;
    bool is_finished;    // nothing more will be appended
    bool is_closed;      // the interpreter sends no more
    const char *refusal; // why no more is read; NULL: it is
    // The worker's while it has it:
    struct buffer lines; // that came and were not read yet
    size_t whole;        // of these, up to a line break
    size_t kept;         // by the format, at most, of an answer that is given at the end
    size_t tree;         // of the line that is being read
    struct buffer batch; // for the client
    bool is_over;        // the last line was read
    bool has_failed;
};

static void advance(struct code_follow *follow);

// ---- on a worker, or on the loop for little ----

/* A line of ours, in the words of an interpreter. */
static void tell(struct code_follow *follow, const char *type, const char *name, const char *value)
{
    autobuffer text = {0};
    struct json_writer json;
    struct error err = {0};
    autoptr(data_document) document = NULL;

    json_writer_init(&json, &text);
    json_map_begin(&json);
    json_key(&json, "type");
    json_string(&json, type);
    if (name) {
        json_key(&json, "name");
        json_string(&json, name);
        json_key(&json, "value");
        json_string(&json, value);
        json_key(&json, "traceback");
        json_string(&json, "");
    }
    json_map_end(&json);
    if (json_writer_finish(&json, &err) < 0 ||
        json_read("", text.data, text.length, NULL, &document, &err) < 0 ||
        follow->format->add(follow->state, document->root, text.data, text.length, &follow->batch,
                            &err) < 0)
        follow->has_failed = !follow->format->is_whole;
}

static const char too_much[] =
    "the interpreter sends more at once than the server keeps of one sandbox, one organisation or "
    "all of them: print or display less, or run less at a time";
static const char too_long[] = "the interpreter sent a line, or a value, of more than 16 MiB: "
                               "write what is large into a file, and read that";

/* Counts what is kept of the run just now. */
static bool count(struct code_follow *follow)
{
    size_t bytes = follow->lines.length + follow->batch.length + follow->kept + follow->tree;

    return code_run_take(&follow->run, bytes > FREE ? bytes : 0);
}

static bool may_take(void *data, size_t bytes)
{
    struct code_follow *follow = data;

    follow->tree += bytes;
    if (count(follow))
        return true;
    follow->tree -= bytes;
    return false;
}

static void read_line(struct code_follow *follow, const char *line, size_t length)
{
    const struct json_limits limits = {.memory = TREE, .may_take = may_take, .data = follow};
    autoptr(data_document) document = NULL;
    struct error err = {0};
    const char *type = NULL;

    if (json_read("", line, length, &limits, &document, &err) < 0 ||
        document->root->kind != VALUE_MAP ||
        value_get_string(document->root, "type", true, &type, &err) < 0) {
        if (error_is(&err, ERROR_FULL) || error_is(&err, ERROR_LIMIT))
            follow->refusal = error_is(&err, ERROR_FULL) ? too_much : too_long;
        return; // whoever plays the interpreter there cheats itself
    }
    follow->kept += follow->format->is_whole ? length : 0;
    follow->is_over = strcmp(type, "end") == 0;
    if (follow->format->add(follow->state, document->root, line, length, &follow->batch, &err) < 0)
        follow->has_failed = !follow->format->is_whole;
}

/* Nothing more is read, and what was not read yet goes. */
static void refuse(struct code_follow *follow, const char *reason)
{
    follow->refusal = reason;
    follow->is_closed = true;
    follow->whole = 0;
    buffer_clear(&follow->lines);
}

/* What is left behind the lines that were read; what a long one took is given back. */
static void keep_rest(struct code_follow *follow)
{
    struct buffer before = follow->lines;
    struct error ignored = {0};
    size_t rest = before.length - follow->whole;

    if (before.capacity > 2 * PIECE && rest <= PIECE) {
        buffer_init(&follow->lines, CODE_LINE + PIECE);
        (void)buffer_add(&follow->lines, before.data + follow->whole, rest, &ignored);
        buffer_clear(&before);
    } else {
        memmove(before.data, before.data + follow->whole, rest);
        follow->lines.length = rest;
    }
    follow->whole = 0;
}

static void read_lines(void *data)
{
    struct code_follow *follow = data;
    const char *at = follow->lines.data;
    const char *end = at + follow->whole;

    while (at < end && !follow->is_over && !follow->refusal) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        if (stop > at)
            read_line(follow, at, (size_t)(stop - at));
        follow->tree = 0; // the document has gone
        at = stop + 1;
    }
    follow->kept = follow->kept > CODE_FOLLOW_BYTES / 4 ? CODE_FOLLOW_BYTES / 4 : follow->kept;
    keep_rest(follow);
    if (!follow->refusal && !count(follow))
        follow->refusal = too_much;
    if (follow->refusal)
        refuse(follow, follow->refusal);
}

/* The interpreter has gone without an end. */
static void explain(void *data)
{
    struct code_follow *follow = data;
    struct error err = {0};

    if (follow->refusal) {
        tell(follow, "error", "OutputLimit", follow->refusal);
    } else {
        context_reason(follow->base.waiting.core->contexts, &follow->base.waiting.actor,
                       &follow->run.context, &err);
        tell(follow, "error", "ContextEnded", err.text);
    }
    tell(follow, "end", NULL, NULL);
    follow->is_over = true;
}

// ---- on the loop ----

static void follow_free(void *data)
{
    struct code_follow *follow = data;

    code_run_clear(&follow->run);
    buffer_clear(&follow->lines);
    buffer_clear(&follow->batch);
    if (follow->format->free)
        follow->format->free(follow->state);
    free(follow);
}

/* Closing the socket interrupts what still runs. */
static void let_go(struct code_follow *follow)
{
    loop_watch_free(take(follow->watch));
    loop_timer_clear(&follow->quiet);
    loop_timer_clear(&follow->deadline);
    if (!follow->base.is_working)
        code_run_clear(&follow->run);
}

static void finish(struct code_follow *follow, bool is_whole)
{
    if (follow->is_finished)
        return;
    follow->is_finished = true;
    if (!follow->format->is_whole)
        response_finish(follow->base.waiting.response, is_whole);
    let_go(follow);
}

static void answer_whole(struct code_follow *follow)
{
    static const struct http_header headers[] = {{"Content-Type", "application/json"}, {0}};
    struct error err = {0};

    follow->is_finished = true;
    if (follow->format->finish(follow->state, &follow->run.context, &follow->batch, &err) < 0)
        waiting_call_fail(&follow->base.waiting, &err);
    else
        (void)response_send(follow->base.waiting.response, 200, headers, follow->batch.data,
                            follow->batch.length);
    let_go(follow);
}

/* Sends what is there. False: there is no room. */
static bool send_batch(struct code_follow *follow)
{
    if (follow->format->is_whole || follow->batch.length == 0)
        return true;
    if (response_append(follow->base.waiting.response, follow->batch.data, follow->batch.length) !=
        RESPONSE_TAKEN)
        return false;
    buffer_clear(&follow->batch);
    buffer_init(&follow->batch, BATCH);
    (void)count(follow); // less than before
    loop_timer_set(&follow->quiet, EVENT_KEEP_ALIVE_MS);
    return true;
}

static void write_request(struct code_follow *follow)
{
    while (follow->written < follow->run.request.length) {
        ssize_t n = send(follow->run.fd, follow->run.request.data + follow->written,
                         follow->run.request.length - follow->written, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0)
            return; // full, or gone, which reading finds out
        follow->written += (size_t)n;
    }
    buffer_clear(&follow->run.request);
    follow->written = 0;
}

/* Reads what there is, up to a piece. A line that is longer than one may be ends the run. */
static void receive(struct code_follow *follow)
{
    struct error err = {0};

    if (follow->is_closed)
        return;
    if (buffer_reserve(&follow->lines, PIECE, &err) < 0) {
        refuse(follow, too_long);
        return;
    }
    ssize_t n =
        recv(follow->run.fd, follow->lines.data + follow->lines.length, PIECE, MSG_DONTWAIT);
    if (n > 0) {
        const char *fresh = follow->lines.data + follow->lines.length;
        const char *last = memrchr(fresh, '\n', (size_t)n);
        buffer_grew(&follow->lines, (size_t)n);
        if (last)
            follow->whole = (size_t)(last - follow->lines.data) + 1;
        if (!count(follow))
            refuse(follow, too_much);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        follow->is_closed = true;
    }
}

static void on_socket(void *data, unsigned events)
{
    struct code_follow *follow = data;

    (void)events;
    if (follow->is_finished || follow->base.is_working)
        return;
    write_request(follow);
    receive(follow);
    advance(follow);
}

static void listen_again(struct code_follow *follow)
{
    if (follow->watch)
        loop_watch_set(follow->watch,
                       LOOP_READABLE | (follow->run.request.length ? LOOP_WRITABLE : 0u));
}

static void hold_still(struct code_follow *follow)
{
    if (follow->watch)
        loop_watch_set(follow->watch, 0);
}

/* Behind a full response on_room goes on; behind one that is gone, on_end comes. */
static void advance(struct code_follow *follow)
{
    if (follow->is_finished || follow->base.is_working)
        return;
    if (!send_batch(follow)) {
        hold_still(follow);
        return;
    }
    if (follow->whole && follow->whole <= SMALL && !follow->is_over) {
        read_lines(follow);
        if (!send_batch(follow)) {
            hold_still(follow);
            return;
        }
    }
    if (follow->has_failed)
        finish(follow, false);
    else if (follow->is_over)
        follow->format->is_whole ? answer_whole(follow) : finish(follow, true);
    else if (follow->whole || follow->is_closed) {
        hold_still(follow);
        (void)follower_work(&follow->base, follow->whole ? read_lines : explain);
    } else {
        listen_again(follow);
    }
}

static void go_on(void *data)
{
    struct code_follow *follow = data;

    if (follow->is_finished && !follow->base.is_working)
        code_run_clear(&follow->run);
    advance(follow);
}

static const struct follower_kind kind = {
    .on_wake = go_on, .on_worked = go_on, .on_retry = go_on, .free = follow_free};

static void on_quiet(void *data)
{
    struct code_follow *follow = data;
    struct error ignored = {0};

    if (!follow->base.is_working && !follow->is_finished && follow->format->keep_alive &&
        !follow->format->is_whole && follow->batch.length == 0)
        (void)follow->format->keep_alive(follow->state, &follow->batch, &ignored);
    loop_timer_set(&follow->quiet, EVENT_KEEP_ALIVE_MS);
    advance(follow);
}

static void on_deadline(void *data)
{
    struct code_follow *follow = data;
    char text[120];

    if (follow->base.is_working) {
        loop_timer_set(&follow->deadline, 10);
        return;
    }
    (void)snprintf(text, sizeof text,
                   "the code ran for %lld ms, which is its timeout, and was interrupted",
                   (long long)follow->timeout_ms);
    tell(follow, "error", "TimeoutError", text);
    tell(follow, "end", NULL, NULL);
    follow->is_over = true;
    advance(follow);
}

static void on_gone(void *data)
{
    finish(data, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct code_follow *follow = data;

    (void)is_delivered;
    follow->is_finished = true;
    let_go(follow);
    follower_end(&follow->base);
}

static const struct response_events events = {
    .on_gone = on_gone, .on_room = go_on, .on_end = on_end};

static void begin(void *data)
{
    struct code_follow *follow = data;
    struct waiting_call *waiting = &follow->base.waiting;
    struct error err = {0};

    loop_timer_init(&follow->quiet, waiting->loop, on_quiet, follow);
    loop_timer_init(&follow->deadline, waiting->loop, on_deadline, follow);
    if (loop_watch_new(waiting->loop, follow->run.fd, on_socket, follow, &follow->watch, &err) <
        0) {
        waiting_call_fail(waiting, &err);
        follow->is_finished = true;
    } else if (!follow->format->is_whole) {
        (void)response_begin(waiting->response, 200, follow->format->headers,
                             RESPONSE_LENGTH_UNKNOWN);
        loop_timer_set(&follow->quiet, EVENT_KEEP_ALIVE_MS);
    }
    if (follow->timeout_ms > 0 && !follow->is_finished)
        loop_timer_set(&follow->deadline, (uint64_t)follow->timeout_ms);
    response_watch(waiting->response, &events, follow);
    if (!follow->is_finished)
        on_socket(follow, 0);
}

void code_follow_start(struct call *call, struct code_run *run, int64_t timeout_ms,
                       const struct code_format *format, void *state)
{
    struct code_follow *follow = xnew(struct code_follow);

    follower_init(&follow->base, call, &kind);
    follow->format = format;
    follow->state = state;
    follow->run = *run;
    *run = (struct code_run){.fd = -1};
    follow->timeout_ms = timeout_ms;
    buffer_init(&follow->lines, CODE_LINE + PIECE);
    buffer_init(&follow->batch, format->is_whole ? CODE_FOLLOW_BYTES : BATCH);
    loop_post(call_loop(call), begin, follow);
}
