/* SPDX-License-Identifier: Apache-2.0 */
/* WebSockets over an upgraded response; see websocket.h. */
#include "net/websocket.h"

#include "base/mem.h"
#include "net/body.h"

#include <assert.h>
#include <string.h>

#define READ_BYTES (16u << 10)

struct websocket {
    struct loop *loop;
    struct response *response;
    struct body *in;
    const struct websocket_limits *limits;
    const struct websocket_events *events;
    void *data;
    struct frames frames;
    struct loop_timer timer;
    char *rest; // read, not looked at: somebody holds it
    size_t rest_length;
    char pong[WEBSOCKET_CONTROL]; // the answer to the last ping, while has_pong
    size_t pong_length;
    char bye[WEBSOCKET_CONTROL]; // the payload of the close, while has_bye
    size_t bye_length;
    bool has_pong, has_bye;
    bool is_feeding;
    bool is_held;     // by its owner
    bool is_closing;  // no message is sent any more, and none read
    bool is_finished; // and nothing else either
    bool was_heard;   // since the last ping
    bool is_pinged;
    bool is_overdue; // its answer is: the loop reads once more before that counts
};

static void finish(struct websocket *socket, bool is_whole)
{
    socket->is_closing = socket->is_finished = true;
    loop_timer_clear(&socket->timer);
    response_finish(socket->response, is_whole);
}

static enum response_room send_control(struct websocket *socket, enum websocket_opcode opcode,
                                       const void *data, size_t length)
{
    uint8_t frame[FRAMES_HEAD + WEBSOCKET_CONTROL];
    size_t used = frames_head(opcode, length, frame);

    memcpy(frame + used, data, length);
    return response_append(socket->response, frame, used + length);
}

/* What is the socket's own to say, where there is room. */
static void flush_control(struct websocket *socket)
{
    if (socket->is_finished)
        return;
    if (socket->has_pong && !socket->has_bye)
        socket->has_pong = send_control(socket, WEBSOCKET_PONG, socket->pong,
                                        socket->pong_length) == RESPONSE_FULL;
    if (!socket->has_bye)
        return;
    socket->has_bye =
        send_control(socket, WEBSOCKET_CLOSE, socket->bye, socket->bye_length) == RESPONSE_FULL;
    if (!socket->has_bye)
        finish(socket, true);
}

void websocket_close(struct websocket *socket, enum websocket_code code, const char *reason)
{
    size_t length = strlen(reason);

    if (socket->is_closing)
        return;
    assert(length + 2 <= sizeof socket->bye);
    socket->is_closing = socket->has_bye = true;
    socket->bye[0] = (char)(code >> 8);
    socket->bye[1] = (char)(code & 0xff);
    memcpy(socket->bye + 2, reason, length);
    socket->bye_length = length + 2;
    flush_control(socket);
}

/* ---- what comes ---- */

static bool on_binary(void *owner, const char *data, size_t length, bool is_first, bool is_last)
{
    struct websocket *socket = owner;

    if (!socket->events->on_binary(socket->data, data, length, is_first, is_last))
        socket->is_held = true;
    return !socket->is_held && !socket->is_closing;
}

static bool on_text(void *owner, const char *text, size_t length)
{
    struct websocket *socket = owner;

    if (!socket->events->on_text(socket->data, text, length))
        socket->is_held = true;
    return !socket->is_held && !socket->is_closing;
}

/* Of many, the last is answered, once all that came with it was read: a flood of them costs no more than one. */
static bool on_ping(void *owner, const char *data, size_t length)
{
    struct websocket *socket = owner;

    memcpy(socket->pong, data, length);
    socket->pong_length = length;
    socket->has_pong = true;
    return true;
}

static bool on_pong(void *owner)
{
    (void)owner; // that something came is what counts
    return true;
}

static bool on_close(void *owner, unsigned code)
{
    // Only some codes may be said in answer, and the client knows its own.
    websocket_close(owner, code == WEBSOCKET_GOING_AWAY ? WEBSOCKET_GOING_AWAY : WEBSOCKET_NORMAL,
                    "");
    return false;
}

static const struct frames_events frames_events = {
    .on_binary = on_binary,
    .on_text = on_text,
    .on_ping = on_ping,
    .on_pong = on_pong,
    .on_close = on_close,
};

/* Keeps what was read and not told. */
static void keep_rest(struct websocket *socket, const char *data, size_t length)
{
    if (length == 0 || socket->is_closing)
        return;
    socket->rest = xrealloc(NULL, 1, length);
    memcpy(socket->rest, data, length);
    socket->rest_length = length;
}

static void feed(struct websocket *socket, char *data, size_t length)
{
    struct frames_fault fault;
    ssize_t used = frames_feed(&socket->frames, data, length, &fault);

    if (used < 0)
        websocket_close(socket, fault.code, fault.text);
    else
        keep_rest(socket, data + used, length - (size_t)used);
}

/* False: nothing more for now. */
static bool read_once(struct websocket *socket)
{
    char data[READ_BYTES];
    struct error err = {0};

    if (socket->rest) {
        autofree char *rest = take(socket->rest);
        feed(socket, rest, socket->rest_length);
        return true;
    }
    ssize_t length = body_read(socket->in, data, sizeof data, 0, &err);
    if (length < 0 && error_is(&err, ERROR_TIMEOUT))
        return false;
    if (length <= 0) {
        finish(socket, false); // it went without a word
        return false;
    }
    socket->was_heard = true;
    feed(socket, data, (size_t)length);
    return true;
}

static void read_all(struct websocket *socket)
{
    if (socket->is_feeding)
        return;
    socket->is_feeding = true;
    while (!socket->is_held && !socket->is_closing && read_once(socket)) {
    }
    socket->is_feeding = false;
    flush_control(socket);
}

static void on_bytes(void *data)
{
    read_all(data);
}

void websocket_resume(struct websocket *socket)
{
    socket->is_held = false;
    socket->is_pinged = false; // its answer may not have been read so far
    read_all(socket);
}

/* ---- what goes ---- */

/* The head of the message's frame and its prefix. */
static size_t start_message(const struct websocket_message *message, uint64_t length,
                            uint8_t out[FRAMES_HEAD + WEBSOCKET_PREFIX])
{
    assert(message->prefix_length <= WEBSOCKET_PREFIX);
    size_t used = frames_head(message->opcode, message->prefix_length + length, out);
    if (message->prefix_length)
        memcpy(out + used, message->prefix, message->prefix_length);
    return used + message->prefix_length;
}

enum response_room websocket_send(struct websocket *socket, const struct websocket_message *message,
                                  const void *data, size_t length)
{
    uint8_t start[FRAMES_HEAD + WEBSOCKET_PREFIX];

    if (socket->is_closing)
        return RESPONSE_GONE;
    size_t used = start_message(message, length, start);
    return response_append_parts(socket->response, start, used, data, length);
}

enum response_room websocket_send_file(struct websocket *socket,
                                       const struct websocket_message *message,
                                       const struct file_range *range)
{
    uint8_t start[FRAMES_HEAD + WEBSOCKET_PREFIX];

    if (socket->is_closing)
        return RESPONSE_GONE;
    size_t used = start_message(message, range->length, start);
    return response_append_file_behind(socket->response, start, used, range);
}

bool websocket_is_drained(const struct websocket *socket)
{
    return response_is_drained(socket->response);
}

/* ---- its end ---- */

/* A client that does not read is net's to give up, and one that is not read from cannot show that it is there. */
static void on_time(void *data)
{
    struct websocket *socket = data;
    bool is_judged = socket->is_pinged && !socket->is_held;

    if (is_judged && !socket->was_heard) {
        if (socket->is_overdue) {
            finish(socket, false);
            return;
        }
        socket->is_overdue = true; // the loop may be late itself, with the answer in the socket
        loop_timer_set(&socket->timer, 1);
        return;
    }
    socket->is_overdue = false;
    socket->is_pinged = response_is_drained(socket->response) &&
                        send_control(socket, WEBSOCKET_PING, "", 0) == RESPONSE_TAKEN;
    socket->was_heard = false;
    loop_timer_set(&socket->timer, socket->limits->ping_ms);
}

static void on_room(void *data)
{
    struct websocket *socket = data;

    flush_control(socket);
    if (!socket->is_closing)
        socket->events->on_room(socket->data);
}

static void on_gone(void *data)
{
    struct websocket *socket = data;

    if (!socket->is_finished)
        finish(socket, false);
}

static void on_end(void *data, bool is_delivered)
{
    struct websocket *socket = data;

    (void)is_delivered;
    loop_timer_clear(&socket->timer);
    body_watch(socket->in, NULL, NULL);
    body_free(socket->in);
    frames_clear(&socket->frames);
    free(socket->rest);
    socket->events->on_end(socket->data);
    response_free(socket->response);
    free(socket);
}

static const struct response_events response_events = {
    .on_gone = on_gone, .on_room = on_room, .on_end = on_end};

struct websocket *websocket_open(const struct websocket_request *request)
{
    struct body *in = response_upgrade(request->response, request->headers);
    if (!in)
        return NULL;
    struct websocket *socket = xnew(struct websocket);
    *socket = (struct websocket){
        .loop = request->loop,
        .response = response_ref(request->response),
        .in = in,
        .limits = request->limits,
        .events = request->events,
        .data = request->data,
    };
    frames_init(&socket->frames, socket->limits, &frames_events, socket);
    loop_timer_init(&socket->timer, socket->loop, on_time, socket);
    loop_timer_set(&socket->timer, socket->limits->ping_ms);
    response_watch(socket->response, &response_events, socket);
    body_watch(socket->in, on_bytes, socket);
    return socket;
}
