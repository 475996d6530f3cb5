/* SPDX-License-Identifier: Apache-2.0 */
/* Reading requests, handing them out, writing answers, and ending without losing what was written.
 */
#include "net/connection.h"
#include "net/connection_impl.h"

#include "base/decimal.h"
#include "base/mem.h"
#include "net/body_impl.h"
#include "net/response_impl.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define CONFIRM_EVERY_MS 20 // looking whether a half-closed client took its answer
#define SLOW_BODY_BYTES_A_SECOND 16384
#define YOUNG_MS 50
#define LINGER_BYTES (256u << 10)

struct connection_place *connection_place(struct connection *connection,
                                          enum connection_order order)
{
    return &connection->places[order];
}

const struct peer *connection_peer(const struct connection *connection)
{
    return &connection->peer;
}

bool connection_is_known(const struct connection *connection)
{
    return connection->is_known;
}

void connection_set_known(struct connection *connection, uint64_t who)
{
    connection->is_known = true;
    connection->who = who;
}

uint64_t connection_group(const struct connection *connection)
{
    return connection->is_known ? connection->who : peer_group(&connection->peer);
}

bool connection_is_young(const struct connection *connection)
{
    return loop_now_ms(connection->home->loop) - connection->opened_ms < YOUNG_MS;
}

bool connection_can_go(const struct connection *connection)
{
    bool is_worked_for = connection->is_handed_out || connection->is_held;

    return !connection->response || !is_worked_for || connection->is_blocked;
}

static void wait_for(struct connection *connection, enum waiting what, uint64_t ms)
{
    connection->waiting = what;
    if (what == WAITING_NOTHING)
        loop_timer_clear(&connection->timer);
    else
        loop_timer_set(&connection->timer, ms);
}

/* A little longer than was promised, so that a client that uses the time to its end is not met by a
 * reset. */
static void wait_for_request(struct connection *connection)
{
    uint64_t idle_ms = connection->home->limits.idle_ms;
    wait_for(connection, WAITING_REQUEST, idle_ms + idle_ms / 5);
}

static void set_idle(struct connection *connection, bool is_idle)
{
    if (connection->is_idle == is_idle)
        return;
    connection->is_idle = is_idle;
    connection->home->on_idle(connection->home, connection, is_idle);
}

static void set_known(struct connection *connection, uint64_t who)
{
    if (!connection->is_known || connection->who != who)
        connection->home->on_known(connection->home, connection, who);
}

void connection_watch(struct connection *connection)
{
    unsigned events = 0;
    bool is_waiting = connection->pending_length > 0 || connection->is_held;
    bool has_no_room = is_waiting || connection->is_body_full;

    if (!connection->is_half_closed && !has_no_room)
        events |= LOOP_READABLE;
    else if (!connection->is_half_closed && !connection->is_hung_up)
        events |= LOOP_HANGUP; // also while a body is not read on: nobody may ever do that
    if (connection->is_blocked)
        events |= LOOP_WRITABLE;
    loop_watch_set(connection->watch, events);
}

static void drop_body(struct connection *connection, enum error_reason reason, const char *text)
{
    if (!connection->body)
        return;
    body_end(connection->body, reason, text);
    body_free(take(connection->body));
    connection->is_body_full = false;
}

static void end_response(struct connection *connection, bool is_delivered)
{
    struct connection_home *home = connection->home;

    drop_body(connection, ERROR_GONE, "the request has been answered");
    if (!connection->response)
        return;
    response_end(take(connection->response), is_delivered);
    if (--home->under_way == 0 && home->is_draining)
        home->on_quiet(home);
}

void connection_close(struct connection *connection)
{
    set_idle(connection, false);
    drop_body(connection, ERROR_GONE, "the client went away");
    end_response(connection, false);
    connection->home->on_close(connection->home, connection);
    loop_timer_clear(&connection->timer);
    loop_watch_free(connection->watch);
    closep(&connection->fd);
    http1_clear(&connection->http);
    http_request_free(connection->request);
    output_clear(&connection->output);
    free(connection->pending);
    free(connection);
}

/* So that the client cannot take what it has for the whole. */
static void cut(struct connection *connection)
{
    struct linger reset = {.l_onoff = 1};
    (void)setsockopt(connection->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    connection_close(connection);
}

static void on_response_change(void *data);
static const struct response_link response_link = {.on_change = on_response_change,
                                                   .on_upgrade = connection_upgrade};

static void start_response(struct connection *connection, const struct http_request *request)
{
    assert(!connection->response);
    set_idle(connection, false);
    connection->home->under_way++;
    connection->response = response_new(connection->home->loop, &response_link, connection);
    connection->is_complete = connection->is_handed_out = connection->is_bad = false;
    connection->is_finished = connection->is_cut = connection->ends_by_close = false;
    connection->is_held = connection->is_skipped = false;
    connection->body_bytes = 0;
    if (request)
        response_set_request(connection->response, request);
}

static void answer_plainly(struct response *response, int status, const char *text)
{
    static const struct http_header headers[] = {{"Content-Type", "text/plain"}, {0}};
    (void)response_send(response, status, headers, text, strlen(text));
    response_free(response);
}

static void hand_out_bad(struct connection *connection, const struct http_request *request,
                         int status, const char *text)
{
    struct connection_home *home = connection->home;

    home->bad_requests++;
    connection->is_last = connection->is_handed_out = connection->is_bad = true;
    struct response *response = response_ref(connection->response);
    if (home->handler->on_bad_request)
        home->handler->on_bad_request(home->owner, request, response, status, text);
    else
        answer_plainly(response, status, text);
}

/* No more is read. An answer that was begun cannot be taken back: it goes on. */
static void refuse(struct connection *connection, const struct http1_fault *fault)
{
    enum error_reason reason = fault->status == 413 ? ERROR_TOO_LARGE : ERROR_INVALID;

    drop_body(connection, reason, fault->text);
    wait_for(connection, WAITING_NOTHING, 0);
    autoptr(http_request) request = take(connection->request);
    connection->is_last = true;
    if (connection->response && connection->is_handed_out)
        return; // a streamed body went bad: its reader knows, and answers
    if (!connection->response)
        start_response(connection, NULL);
    hand_out_bad(connection, request, fault->status, fault->text);
}

static void hand_out(struct connection *connection, struct http_request *request)
{
    struct connection_home *home = connection->home;

    home->requests++;
    connection->is_handed_out = true;
    wait_for(connection, WAITING_NOTHING, 0);
    home->handler->on_request(home->owner, request, response_ref(connection->response));
}

static int set_fault(struct http1_fault *fault, int status, const char *text)
{
    *fault = (struct http1_fault){.status = status, .text = text};
    return -1;
}

static const char too_large[] = "the body is too large";
static const char no_memory[] = "too many large bodies are being sent at once, try again shortly";

static void on_body_resume(void *data)
{
    struct connection *connection = data;
    connection->is_body_full = false;
    connection_watch(connection);
}

/* A slow sender without a key is given up sooner. */
static void start_receiving(struct connection *connection, struct http_request *request,
                            const struct http_plan *plan)
{
    struct connection_home *home = connection->home;

    if (!request->has_body)
        return;
    if (!connection->is_skipped)
        gather_charge_open(&request->charge, home->budget, plan->who,
                           plan->who == GATHER_KEY ? plan->who_id : peer_group(&request->peer));
    connection->body_ms = connection->is_known ? home->limits.body_ms : home->limits.stranger_ms;
    connection->since_ms = loop_now_ms(home->loop);
    wait_for(connection, WAITING_BODY, connection->body_ms);
}

static int check_plan(const struct http_request *request, const struct http_plan *plan,
                      struct http1_fault *fault)
{
    if (plan->refuse_status)
        return set_fault(fault, plan->refuse_status, plan->refuse_text);
    return request->body_length > plan->body_bytes ? set_fault(fault, 413, too_large) : 0;
}

/* Does with the request what was decided by its head. -1 with *fault: that is to refuse it. */
static int follow_plan(struct connection *connection, struct http_request *taken,
                       const struct http_plan *plan, struct http1_fault *fault)
{
    autoptr(http_request) request = taken;

    connection->body_limit = plan->body_bytes;
    connection->is_skipped = plan->body == HTTP_BODY_SKIP || plan->body == HTTP_BODY_REFUSE;
    if (plan->is_known)
        set_known(connection, plan->who_id);
    if (check_plan(request, plan, fault) < 0) {
        connection->request = take(request);
        return -1;
    }
    request->is_body_refused = plan->body == HTTP_BODY_REFUSE && request->has_body;
    if (request->expects_continue && !request->is_body_refused)
        output_add_copy(&connection->output, "HTTP/1.1 100 Continue\r\n\r\n", 25);
    if (plan->body == HTTP_BODY_STREAM) {
        connection->body = body_new(connection->home->loop, on_body_resume, connection);
        request->stream = body_ref(connection->body);
    }
    if (request->stream || request->is_body_refused) {
        hand_out(connection, take(request));
    } else {
        start_receiving(connection, request, plan);
        connection->request = take(request);
    }
    return 0;
}

static int on_head(void *owner, struct http_request *request, struct http1_fault *fault)
{
    struct connection *connection = owner;
    struct connection_home *home = connection->home;
    struct http_plan plan = {.body_bytes = home->limits.body_bytes};

    request->peer = connection->peer;
    start_response(connection, request);
    connection->is_last = !request->keeps_alive || home->is_draining;
    if (home->handler->on_head)
        home->handler->on_head(home->owner, request, &plan);
    if (plan.body != HTTP_BODY_ASK || !request->has_body)
        return follow_plan(connection, request, &plan, fault);
    connection->is_held = true;
    wait_for(connection, WAITING_NOTHING, 0);
    home->handler->on_ask(home->owner, request, response_ref(connection->response));
    return HTTP1_HOLD;
}

static int gather(struct connection *connection, const char *data, size_t length,
                  struct http1_fault *fault)
{
    struct http_request *request = connection->request;
    struct error err;

    if (!gather_charge_add(&request->charge, length))
        return set_fault(fault, 429, no_memory);
    return buffer_add(&request->body, data, length, &err) < 0 ? set_fault(fault, 413, too_large)
                                                              : 0;
}

static int on_body(void *owner, const char *data, size_t length, struct http1_fault *fault)
{
    struct connection *connection = owner;

    connection->body_bytes += length;
    if (connection->body_bytes > connection->body_limit)
        return set_fault(fault, 413, too_large);
    if (connection->is_skipped)
        return 0;
    if (connection->request)
        return gather(connection, data, length, fault);
    if (connection->body && !body_put(connection->body, data, length))
        connection->is_body_full = true;
    return 0;
}

static void on_end(void *owner)
{
    struct connection *connection = owner;

    connection->is_complete = true;
    drop_body(connection, ERROR_NONE, NULL);
    if (connection->request)
        hand_out(connection, take(connection->request));
}

static bool is_elsewhere(void *owner, const char *head, size_t length)
{
    struct connection *connection = owner;
    const struct http_elsewhere *elsewhere = connection->home->elsewhere;

    return elsewhere && !connection->peer.is_local &&
           elsewhere->is_elsewhere(elsewhere->owner, head, length);
}

static const struct http1_events parse_events = {
    .on_head = on_head, .on_body = on_body, .on_end = on_end, .is_elsewhere = is_elsewhere};

/* Keeps what belongs to the next request. */
static void keep(struct connection *connection, const char *data, size_t length)
{
    char *kept = length ? xrealloc(NULL, length, 1) : NULL;

    if (length)
        memcpy(kept, data, length);
    free(connection->pending);
    connection->pending = kept;
    connection->pending_length = length;
}

static void feed(struct connection *connection, const char *data, size_t length)
{
    struct http1_fault fault = {0};
    ssize_t used = http1_feed(&connection->http, data, length, &fault);

    if (used < 0) {
        keep(connection, NULL, 0);
        connection->is_complete = false;
        refuse(connection, &fault);
    } else if (connection->is_upgraded) { // within the feed
        connection_take(connection, data + used, length - (size_t)used);
    } else {
        keep(connection, data + used, length - (size_t)used);
    }
    if (used >= 0 && connection->http.is_left) {
        connection->is_held = true;
        wait_for(connection, WAITING_LEAVE, 0); // not from inside whoever fed it
    } else if (connection->http.part == HTTP1_HEAD && connection->waiting == WAITING_REQUEST) {
        set_idle(connection, false);
        wait_for(connection, WAITING_HEAD, connection->home->limits.head_ms);
    }
    connection->is_blocked |=
        connection->output.first != NULL; // 100 Continue goes out in the next turn
    connection_watch(connection);
}

static void feed_pending(struct connection *connection)
{
    autofree char *data = take(connection->pending);
    size_t length = connection->pending_length;

    connection->pending_length = 0;
    if (length)
        feed(connection, data, length);
}

/* Goes on with a request of which nothing was read but the head, once it was decided what to do with it. */
static void continue_request(struct connection *connection)
{
    struct http1_fault fault = {0};
    struct http_plan plan;
    struct http_request *request = response_take_decision(connection->response, &plan);

    if (!request)
        return;
    connection->is_held = false;
    if (follow_plan(connection, request, &plan, &fault) < 0) {
        connection->http.part = HTTP1_DEAD;
        keep(connection, NULL, 0);
        refuse(connection, &fault);
    }
    feed_pending(connection);
    connection_watch(connection);
}

/* Ready for a request, which may have come already. */
static void start_request(struct connection *connection)
{
    connection->is_ended = connection->is_hung_up = false;
    if (connection->pending_length) {
        wait_for_request(connection);
        feed_pending(connection);
        if (connection->response)
            return;
    }
    if (connection->is_half_closed) {
        connection_close(connection);
        return;
    }
    if (connection->waiting == WAITING_HEAD || connection->waiting == WAITING_LEAVE)
        return;
    set_idle(connection, true);
    wait_for_request(connection);
    connection_watch(connection);
}

/* Closing a socket with unread bytes in it would reset it and might take the answer along. */
static void linger(struct connection *connection)
{
    (void)shutdown(connection->fd, SHUT_WR);
    connection->is_ended = true;
    if (connection->is_half_closed) {
        connection_close(connection);
        return;
    }
    keep(connection, NULL, 0);
    wait_for(connection, WAITING_LINGER, connection->home->limits.linger_ms);
    connection_watch(connection);
}

/*
 * A client that closed its side may have closed both; then the last bytes meet a reset. The answer
 * counts as delivered when the other machine has acknowledged it.
 */
static void confirm(struct connection *connection)
{
    int unsent = 0;
    int code = 0;
    socklen_t size = sizeof code;

    (void)getsockopt(connection->fd, SOL_SOCKET, SO_ERROR, &code, &size);
    if (code == 0 && !connection->peer.is_local && ioctl(connection->fd, SIOCOUTQ, &unsent) == 0 &&
        unsent > 0) {
        uint64_t now = loop_now_ms(connection->home->loop);
        if (connection->waiting != WAITING_CONFIRM)
            connection->since_ms = now;
        if (now - connection->since_ms < connection->home->limits.linger_ms) {
            connection->is_ended = true;
            wait_for(connection, WAITING_CONFIRM, CONFIRM_EVERY_MS);
            connection_watch(connection);
            return;
        }
        code = ETIMEDOUT;
    }
    end_response(connection, code == 0);
    if (code == 0 && connection->pending_length && !connection->is_last)
        start_request(connection);
    else
        connection_close(connection);
}

/* The last byte of an answer was written. */
static void end_answer(struct connection *connection)
{
    wait_for(connection, WAITING_NOTHING, 0);
    if (connection->is_cut && connection->ends_by_close) {
        cut(connection);
        return;
    }
    if (connection->is_cut) {
        connection_close(connection); // its length or last chunk is missing
        return;
    }
    if (connection->is_half_closed || connection->is_hung_up) {
        confirm(connection);
        return;
    }
    bool is_complete = connection->is_complete;
    end_response(connection, true);
    if (connection->is_last || !is_complete)
        linger(connection);
    else
        start_request(connection);
}

/* Puts the answer's head in front, once it is known whether the connection stays. */
static void add_head(struct connection *connection, struct segment *head)
{
    char line[96], *end;

    connection->is_last |=
        connection->ends_by_close || !connection->is_complete || connection->home->is_draining;
    if (connection->is_upgraded)
        end = stpcpy(line, "Connection: Upgrade");
    else if (connection->is_last)
        end = stpcpy(line, "Connection: close");
    else {
        end = stpcpy(line, "Connection: keep-alive\r\nKeep-Alive: timeout=");
        end += decimal_format_natural(connection->home->limits.idle_ms / 1000, end);
    }
    end = stpcpy(end, "\r\n\r\n");
    output_add(&connection->output, head);
    output_add_copy(&connection->output, line, (size_t)(end - line));
}

/* Nobody is left to answer: ask once more for a word about that, else cut what there is. */
static void replace_answer(struct connection *connection, bool is_waiting)
{
    if (is_waiting && !connection->is_bad)
        hand_out_bad(connection, NULL, 500, "no answer was given");
    else
        connection->is_finished = connection->is_cut = true;
}

static void collect(struct connection *connection)
{
    struct output added = {0};
    struct response_changes changes;

    response_collect(connection->response, &added, &changes);
    connection->is_finished = changes.is_finished;
    connection->is_cut = changes.is_cut;
    connection->ends_by_close = changes.ends_by_close;
    if (changes.is_vouched && (changes.who || !connection->is_known))
        set_known(connection, changes.who);
    if (changes.head)
        add_head(connection, changes.head);
    output_move(&connection->output, &added);
    if (changes.is_abandoned && connection->is_handed_out)
        replace_answer(connection, changes.is_waiting);
    if (changes.deadline_ms && changes.is_waiting)
        wait_for(connection, WAITING_DEADLINE, changes.deadline_ms);
    else if (!changes.is_waiting && connection->waiting == WAITING_DEADLINE)
        wait_for(connection, WAITING_NOTHING, 0);
}

/*
 * How long to wait for the client to take more. What it took counts: one that takes a byte now and then must not hold its answer,
 * and what that is sent from, for ever.
 */
static uint64_t write_patience(struct connection *connection)
{
    const struct http_limits *limits = &connection->home->limits;
    uint64_t patience_ms = connection->is_known ? limits->write_ms : limits->stranger_ms;
    uint64_t now = loop_now_ms(connection->home->loop);

    if (connection->waiting != WAITING_WRITE) {
        connection->blocked_ms = now;
        connection->blocked_at = connection->output.sent;
    }
    if (limits->write_pace == 0)
        return patience_ms;
    uint64_t taken = connection->output.sent - connection->blocked_at;
    uint64_t until_ms = connection->blocked_ms + patience_ms + taken * 1000 / limits->write_pace;
    uint64_t left_ms = until_ms > now ? until_ms - now : 0;
    return left_ms < patience_ms ? left_ms : patience_ms;
}

static void on_written(struct connection *connection, enum output_result result, bool has_progress)
{
    connection->is_blocked = result == OUTPUT_BLOCKED;
    if (connection->is_blocked && (has_progress || connection->waiting != WAITING_WRITE))
        wait_for(connection, WAITING_WRITE, write_patience(connection));
    else if (!connection->is_blocked && connection->waiting == WAITING_WRITE)
        wait_for(connection, WAITING_NOTHING, 0);
}

/* Moves the answer along as far as it goes. */
static void pump(struct connection *connection)
{
    if (connection->response)
        collect(connection);
    uint64_t sent = connection->output.sent;
    enum output_result result = output_write(&connection->output, connection->fd);
    if (result == OUTPUT_BROKEN) {
        connection_close(connection);
        return;
    }
    on_written(connection, result, connection->output.sent != sent);
    if (result == OUTPUT_DONE && connection->response && connection->is_finished) {
        end_answer(connection);
        return;
    }
    if (connection->response)
        response_set_waiting(connection->response, &connection->output);
    connection_watch(connection);
}

static void on_response_change(void *data)
{
    struct connection *connection = data;

    if (connection->is_held)
        continue_request(connection);
    if (!connection->is_ended)
        pump(connection);
}

static void on_no_more(struct connection *connection)
{
    bool is_answering = connection->response && (connection->is_complete || connection->is_bad);

    connection->is_half_closed = true;
    if (!is_answering) {
        connection_close(connection); // idle, or in the middle of a request
        return;
    }
    response_set_gone(connection->response);
    connection_watch(connection);
}

/* What comes behind an early answer is read for the client's sake, so that it gets to the answer. A stranger who sends on and on is
 * not read from any more, and closed when its time is over. */
static void drop_useless(struct connection *connection, size_t length)
{
    connection->body_bytes += length;
    if (connection->is_known || connection->body_bytes <= LINGER_BYTES)
        return;
    connection->is_body_full = true;
    connection_watch(connection);
}

static void read_some(struct connection *connection)
{
    char *scratch = connection->home->scratch;

    if (connection->is_held)
        return;
    ssize_t length = recv(connection->fd, scratch, CONNECTION_SCRATCH, MSG_DONTWAIT);

    if (length < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (length < 0 || (length == 0 && connection->is_ended)) {
        connection_close(connection);
    } else if (length == 0) {
        on_no_more(connection);
    } else if (connection->is_ended || connection->http.part == HTTP1_DEAD) {
        drop_useless(connection, (size_t)length);
    } else if (connection->is_upgraded) {
        connection_take(connection, scratch, (size_t)length);
    } else if (connection->response && connection->is_complete) {
        keep(connection, scratch, (size_t)length);
        connection_watch(connection);
    } else {
        feed(connection, scratch, (size_t)length);
    }
}

void connection_look(struct connection *connection)
{
    read_some(connection);
}

static void on_socket(void *data, unsigned events)
{
    struct connection *connection = data;

    if (events & LOOP_FAILED) {
        connection_close(connection);
    } else if (events & LOOP_WRITABLE) {
        pump(connection); // what can be read is told again in the next turn
    } else if (events & LOOP_READABLE) {
        read_some(connection);
    } else if (events & LOOP_HANGUP) {
        connection->is_hung_up = true;
        if (connection->response)
            response_set_gone(connection->response);
        connection_watch(connection);
    }
}

static void on_slow_body(struct connection *connection)
{
    static const struct http1_fault fault = {.status = 408, .text = "the body came too slowly"};
    uint64_t taken_ms = loop_now_ms(connection->home->loop) - connection->since_ms;
    uint64_t allowed_ms =
        connection->body_ms + connection->body_bytes * 1000 / SLOW_BODY_BYTES_A_SECOND;

    if (taken_ms < allowed_ms) {
        wait_for(connection, WAITING_BODY, allowed_ms - taken_ms);
        return;
    }
    connection->http.part = HTTP1_DEAD;
    refuse(connection, &fault);
}

/* Its socket, the head it has sent and what was read behind that go to somebody else. */
static void leave(struct connection *connection)
{
    const struct http_elsewhere *elsewhere = connection->home->elsewhere;
    const struct buffer *head = &connection->http.head;
    size_t length = head->length + connection->pending_length;
    char *data = xrealloc(NULL, length, 1);
    int fd = connection->fd;

    memcpy(data, head->data, head->length);
    if (connection->pending_length)
        memcpy(data + head->length, connection->pending, connection->pending_length);
    connection->fd = -1;
    connection_close(connection);
    elsewhere->on_leave(elsewhere->owner, fd, data, length);
}

static void on_time(void *data)
{
    static const struct http1_fault slow_head = {.status = 408,
                                                 .text = "the head of the request came too slowly"};
    struct connection *connection = data;

    switch (connection->waiting) {
    case WAITING_HEAD:
        connection->http.part = HTTP1_DEAD;
        refuse(connection, &slow_head);
        break;
    case WAITING_BODY:
        on_slow_body(connection);
        break;
    case WAITING_DEADLINE:
        connection->waiting = WAITING_NOTHING;
        response_call_deadline(connection->response);
        break;
    case WAITING_CONFIRM:
        confirm(connection);
        break;
    case WAITING_WRITE:
        cut(connection);
        break;
    case WAITING_LEAVE:
        leave(connection);
        break;
    case WAITING_REQUEST:
    case WAITING_LINGER:
    case WAITING_NOTHING:
        connection_close(connection);
        break;
    }
}

int connection_open(struct connection_home *home, int fd, const char *bytes, size_t length,
                    struct connection **out, struct error *err)
{
    struct connection *connection = xnew(struct connection);

    if (loop_watch_new(home->loop, fd, on_socket, connection, &connection->watch, err) < 0) {
        free(connection);
        return -1;
    }
    connection->home = home;
    connection->fd = fd;
    connection->opened_ms = loop_now_ms(home->loop);
    peer_init(&connection->peer, fd);
    connection->is_known = connection->peer.is_local; // its mode says who may
    http1_init(&connection->http, &home->parse_limits, &parse_events, connection);
    loop_timer_init(&connection->timer, home->loop, on_time, connection);
    *out = connection;
    keep(connection, bytes, length);
    connection_watch(connection);
    return 0;
}

void connection_start(struct connection *connection)
{
    start_request(connection);
}
