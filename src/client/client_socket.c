/* SPDX-License-Identifier: Apache-2.0 */
/* A WebSocket to an execution: input and output, resize, signals; see burrow.h. */
#include "client/client_impl.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "base/mem.h"
#include "client/frame_reader.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define KEY_BYTES 16
#define INPUT_MAX ((size_t)32 << 10)
#define RECEIVE_MAX 64 // without a message, until it is looked for a cancel, and how late it is

struct burrow_socket {
    struct burrow_client *client;
    struct wire *wire;
    struct frame_reader reader;
    struct data_document *document; // of the message that was told
    bool is_closed;
};

static int fail_from(struct burrow_error *err, const struct error *error)
{
    return client_fail_from(err, BURROW_PROTOCOL, error);
}

/* The upgrade: a request whose answer is 101. What the server makes of the key is not looked at: whoever answers knows no secret by it. */
int client_upgrade(struct burrow_client *client, const char *path, struct wire **out,
                   struct burrow_error *err)
{
    struct burrow_stream stream = {.client = client};
    unsigned char bytes[KEY_BYTES];
    char key[32];
    autobuffer head = {0};
    struct error error = {0};

    if (getrandom(bytes, sizeof bytes, 0) != sizeof bytes)
        return client_fail_sys(err, BURROW_LOCAL, "get random bytes");
    if (client_write_head(client, "GET", path, "*/*", &head, err) < 0)
        return -1;
    base64_encode(bytes, sizeof bytes, key);
    if (buffer_addf(&head, &error,
                    "Connection: Upgrade\r\nUpgrade: websocket\r\n"
                    "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %s\r\n\r\n",
                    key) < 0)
        return fail_from(err, &error);
    if (client_connect(client, &stream.wire, err) < 0)
        return -1;
    reply_reader_init(&stream.reader, false);
    stream.reader.may_switch = true;
    int result = wire_send(stream.wire, &client->patience, head.data, head.length, err);
    while (result == 0 && stream.reader.state == REPLY_HEAD)
        result = client_read_more(&stream, false, err) < 0 ? -1 : 0;
    if (result == 0 && stream.reader.status >= 400)
        result = client_read_problem(&stream, err);
    if (result == 0 && stream.reader.state != REPLY_SWITCHED)
        result = client_fail(err, BURROW_PROTOCOL, "the server does not speak WebSocket here");
    reply_reader_clear(&stream.reader);
    if (result < 0) {
        wire_free(stream.wire);
        return -1;
    }
    *out = stream.wire;
    return 0;
}

int burrow_attach(struct burrow_client *client, const char *execution, const char *from,
                  struct burrow_socket **out, struct burrow_error *err)
{
    autofree char *path = burrow_path(
        from ? "/executions/%s/attach?from=%s" : "/executions/%s/attach", execution, from, NULL);
    struct wire *wire = NULL;

    if (client_upgrade(client, path, &wire, err) < 0)
        return -1;
    struct burrow_socket *socket = xnew(struct burrow_socket);
    socket->client = client;
    socket->wire = wire;
    frame_reader_init(&socket->reader);
    *out = socket;
    return 0;
}

void burrow_socket_close(struct burrow_socket *socket)
{
    if (!socket)
        return;
    wire_free(socket->wire);
    frame_reader_clear(&socket->reader);
    data_document_free(socket->document);
    free(socket);
}

int burrow_socket_fd(const struct burrow_socket *socket)
{
    return socket->wire->fd;
}

// ---- sending ----

static int send_frame(struct burrow_socket *socket, enum frame_kind kind, const void *data,
                      size_t length, struct burrow_error *err)
{
    autobuffer frame = {0};
    struct error error = {0};
    uint32_t mask = 0;

    if (getrandom(&mask, sizeof mask, 0) != sizeof mask)
        return client_fail_sys(err, BURROW_LOCAL, "get random bytes");
    if (frame_add(&frame, kind, data, length, mask, &error) < 0)
        return fail_from(err, &error);
    return wire_send(socket->wire, &socket->client->patience, frame.data, frame.length, err);
}

int burrow_socket_input(struct burrow_socket *socket, const void *data, size_t length,
                        struct burrow_error *err)
{
    autofree char *bytes = malloc(INPUT_MAX + 1);
    const char *from = data;

    if (!bytes)
        return client_fail_sys(err, BURROW_LOCAL, "send input");
    bytes[0] = 0;
    while (length) {
        size_t part = length < INPUT_MAX ? length : INPUT_MAX;
        memcpy(bytes + 1, from, part);
        if (send_frame(socket, FRAME_BINARY, bytes, part + 1, err) < 0)
            return -1;
        from += part;
        length -= part;
    }
    return 0;
}

static int send_order(struct burrow_socket *socket, struct buffer *text, struct json_writer *json,
                      struct burrow_error *err)
{
    struct error error = {0};

    json_map_end(json);
    if (json_writer_finish(json, &error) < 0)
        return fail_from(err, &error);
    return send_frame(socket, FRAME_TEXT, text->data, text->length, err);
}

static void begin_order(struct json_writer *json, struct buffer *text, const char *type)
{
    json_writer_init(json, text);
    json_map_begin(json);
    json_key(json, "type");
    json_string(json, type);
}

int burrow_socket_resize(struct burrow_socket *socket, int rows, int cols, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    begin_order(&json, &text, "resize");
    json_key(&json, "rows");
    json_integer(&json, rows);
    json_key(&json, "cols");
    json_integer(&json, cols);
    return send_order(socket, &text, &json, err);
}

int burrow_socket_signal(struct burrow_socket *socket, const char *signal, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    begin_order(&json, &text, "signal");
    json_key(&json, "signal");
    json_string(&json, signal);
    return send_order(socket, &text, &json, err);
}

int burrow_socket_close_input(struct burrow_socket *socket, struct burrow_error *err)
{
    autobuffer text = {0};
    struct json_writer json;

    begin_order(&json, &text, "close_stdin");
    return send_order(socket, &text, &json, err);
}

// ---- receiving ----

static enum burrow_message message_of(const char *type)
{
    if (type && strcmp(type, "exit") == 0)
        return BURROW_MESSAGE_EXIT;
    if (type && strcmp(type, "started") == 0)
        return BURROW_MESSAGE_STARTED;
    return BURROW_MESSAGE_ERROR;
}

static int take_text(struct burrow_socket *socket, const struct buffer *text,
                     struct burrow_event *out, struct burrow_error *err)
{
    struct error error = {0};

    data_document_free(socket->document);
    socket->document = NULL;
    if (json_read("a message of the server", text->data ? text->data : "", text->length, NULL,
                  &socket->document, &error) < 0)
        return fail_from(err, &error);
    const struct burrow_value *value = (const struct burrow_value *)socket->document->root;
    *out = (struct burrow_event){.kind = message_of(burrow_text(burrow_get(value, "type"))),
                                 .value = value};
    return 1;
}

/* 1: something to tell; 0: nothing. */
static int take_message(struct burrow_socket *socket, enum frame_kind kind,
                        const struct buffer *data, struct burrow_event *out,
                        struct burrow_error *err)
{
    switch (kind) {
    case FRAME_TEXT:
        return take_text(socket, data, out, err);
    case FRAME_BINARY:
        if (data->length < 1 || (data->data[0] != 1 && data->data[0] != 2))
            return 0; // of a later server
        *out = (struct burrow_event){.kind = BURROW_MESSAGE_OUTPUT,
                                     .stream = data->data[0],
                                     .data = data->data + 1,
                                     .length = data->length - 1};
        return 1;
    case FRAME_PING:
        return send_frame(socket, FRAME_PONG, data->data, data->length, err);
    case FRAME_CLOSE:
        socket->is_closed = true;
        *out = (struct burrow_event){.kind = BURROW_MESSAGE_CLOSED};
        return 1;
    default:
        return 0;
    }
}

/* What is there already: 1, 0, -1. */
static int take_buffered(struct burrow_socket *socket, struct burrow_event *out,
                         struct burrow_error *err)
{
    struct wire *wire = socket->wire;

    while (wire->at < wire->end) {
        const struct buffer *data = NULL;
        enum frame_kind kind = FRAME_PONG;
        struct error error = {0};
        size_t used = 0;
        int whole = frame_reader_take(&socket->reader, wire->in + wire->at, wire->end - wire->at,
                                      &used, &kind, &data, &error);
        wire->at += used;
        if (whole < 0)
            return fail_from(err, &error);
        int told = whole ? take_message(socket, kind, data, out, err) : 0;
        if (told != 0)
            return told;
    }
    return 0;
}

int burrow_socket_next(struct burrow_socket *socket, int wait_ms, struct burrow_event *out,
                       struct burrow_error *err)
{
    uint64_t until = clock_monotonic_ms() + (wait_ms > 0 ? (uint64_t)wait_ms : 0);

    for (unsigned n = 1;; n++) {
        int told = take_buffered(socket, out, err);
        if (told != 0)
            return told;
        int got = socket->is_closed      ? 0
                  : n % RECEIVE_MAX == 0 ? 2
                                         : wire_receive_now(socket->wire, err);
        if (got < 0)
            return -1;
        if (got == 1)
            continue;
        if (got == 0) {
            socket->is_closed = true;
            *out = (struct burrow_event){.kind = BURROW_MESSAGE_CLOSED};
            return 1;
        }
        uint64_t now = clock_monotonic_ms();
        if (wait_ms == 0 || (wait_ms > 0 && now >= until))
            return 0;
        struct pollfd fds[] = {{.fd = socket->wire->fd, .events = POLLIN},
                               {.fd = socket->client->patience.cancel_fd, .events = POLLIN}};
        int ready = poll(fds, fds[1].fd >= 0 ? 2 : 1, wait_ms < 0 ? -1 : (int)(until - now));
        if (ready < 0 && errno != EINTR)
            return client_fail_sys(err, BURROW_LOCAL, "wait for the server");
        if (ready > 0 && fds[1].fd >= 0 && fds[1].revents)
            return client_fail(err, BURROW_CANCELLED, "interrupted");
    }
}
