/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of WebSocket (RFC 6455), the server's side: bytes of a client become messages, and heads are made for what is sent. No
 * socket, no time. Whatever two readers could take differently is refused: reserved bits, lengths not written in their shortest form.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum websocket_opcode {
    WEBSOCKET_CONTINUATION = 0,
    WEBSOCKET_TEXT = 1,
    WEBSOCKET_BINARY = 2,
    WEBSOCKET_CLOSE = 8,
    WEBSOCKET_PING = 9,
    WEBSOCKET_PONG = 10,
};

/* Why a connection is closed (RFC 6455, section 7.4.1). */
enum websocket_code {
    WEBSOCKET_NORMAL = 1000,
    WEBSOCKET_GOING_AWAY = 1001,
    WEBSOCKET_PROTOCOL = 1002,
    WEBSOCKET_NO_CODE = 1005, // a close without one; never sent
    WEBSOCKET_LOST = 1006,    // the connection broke; never sent
    WEBSOCKET_NOT_TEXT = 1007,
    WEBSOCKET_POLICY = 1008,
    WEBSOCKET_TOO_LARGE = 1009,
    WEBSOCKET_FAILED = 1011,
};

#define WEBSOCKET_CONTROL 125 // bytes that a ping, a pong or a close holds at most

struct websocket_limits {
    uint64_t message_bytes; // of a binary message, which is told in pieces
    size_t text_bytes;      // of a text, which is told as a whole
    unsigned fragments;     // of one message
    uint64_t
        ping_ms; // between two pings; a client of which nothing was heard from one to the next is gone
};

/* Each returns whether to go on: after false nothing more is read until the next feed. Bytes are the parser's, for the time of the call. */
struct frames_events {
    /* Bytes of a binary message, in order; both flags may be set, and length may be 0. */
    bool (*on_binary)(void *owner, const char *data, size_t length, bool is_first, bool is_last);
    bool (*on_text)(void *owner, const char *text, size_t length); // UTF-8
    bool (*on_ping)(void *owner, const char *data, size_t length);
    bool (*on_pong)(void *owner);
    bool (*on_close)(void *owner, unsigned code); // WEBSOCKET_NO_CODE: it gave none
};

struct frames_fault {
    enum websocket_code code;
    const char *text;
};

struct frames {
    const struct websocket_limits *limits;
    const struct frames_events *events;
    void *owner;
    uint8_t head[14]; // of the frame that is being read
    unsigned head_length;
    bool is_payload; // its head is complete
    bool is_dead;
    uint64_t left;           // of its payload
    unsigned mask_at;        // how far the mask was used
    unsigned message;        // opcode of the message that is under way; 0: none
    uint64_t message_length; // so far, with the frame under way
    unsigned fragments;
    bool is_begun; // a piece of the message was told
    struct buffer text;
    char control[WEBSOCKET_CONTROL];
    unsigned control_length;
};

void frames_init(struct frames *frames, const struct websocket_limits *limits,
                 const struct frames_events *events, void *owner);
void frames_clear(struct frames *frames);

/* Reads `data`, which is unmasked in place. Returns how many bytes were used: all, unless an event said not to go on. -1: see *fault;
 * nothing more can be read. */
ssize_t frames_feed(struct frames *frames, char *data, size_t length, struct frames_fault *fault);

/* The head of a whole message from the server; returns its length. */
#define FRAMES_HEAD 10
size_t frames_head(enum websocket_opcode opcode, uint64_t length, uint8_t head[FRAMES_HEAD]);
