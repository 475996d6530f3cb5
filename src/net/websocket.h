/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection that has become a WebSocket: messages both ways, pings, the handshake that ends it. Costs memory and no thread. What
 * waits for the client is bounded as a response's output is; while the owner holds what came, the client is not read from.
 * Threads: the loop; so are all callbacks.
 */
#pragma once
#include "loop/loop.h"
#include "net/response.h"
#include "net/websocket_frames.h"

struct websocket;

/* What came returns whether to go on: after false nothing more is told until websocket_resume. */
struct websocket_events {
    /* Bytes of a binary message as they come; both flags may be set. */
    bool (*on_binary)(void *data, const char *bytes, size_t length, bool is_first, bool is_last);
    bool (*on_text)(void *data, const char *text, size_t length); // whole, UTF-8
    /* There is room again after RESPONSE_FULL. */
    void (*on_room)(void *data);
    /* The last of all, exactly once: the websocket is gone, and nothing of a file that was sent is touched any more. */
    void (*on_end)(void *data);
};

struct websocket_request {
    struct loop *loop;
    struct response *response;             // borrowed; must not be watched by anybody else
    const struct http_header *headers;     // of the 101, but for Connection and Upgrade
    const struct websocket_limits *limits; // must stay
    const struct websocket_events *events; // must stay
    void *data;
};

/* Answers 101. It is its own until on_end. NULL: somebody else has answered, or the client is gone; no event will come. */
struct websocket *websocket_open(const struct websocket_request *request);

/* A whole message; `prefix` (at most WEBSOCKET_PREFIX bytes) goes in front of the data. RESPONSE_GONE once it is being closed. */
#define WEBSOCKET_PREFIX 16
struct websocket_message {
    enum websocket_opcode opcode; // text or binary
    const void *prefix;
    size_t prefix_length;
};
enum response_room websocket_send(struct websocket *socket, const struct websocket_message *message,
                                  const void *data, size_t length);
/* The same, the data being a part of a file. */
enum response_room websocket_send_file(struct websocket *socket,
                                       const struct websocket_message *message,
                                       const struct file_range *range);
/* Whether all that was sent so far has gone to the socket. */
bool websocket_is_drained(const struct websocket *socket);

/* Goes on telling what came. */
void websocket_resume(struct websocket *socket);

/* Says why it ends, behind what was sent, and ends it; on_end comes when that is out. `reason`: at most 123 bytes of UTF-8. */
void websocket_close(struct websocket *socket, enum websocket_code code, const char *reason);
