/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WebSocket frames as a client reads and writes them (RFC 6455): messages come whole, from one frame or several. Pure: no descriptor, no
 * waiting. The server is a stranger: frames must not be masked, reserved bits must be 0, a message has at most FRAME_MESSAGE_MAX bytes.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FRAME_MESSAGE_MAX ((size_t)16 << 20)

enum frame_kind {
    FRAME_CONTINUED = 0,
    FRAME_TEXT = 1,
    FRAME_BINARY = 2,
    FRAME_CLOSE = 8,
    FRAME_PING = 9,
    FRAME_PONG = 10,
};

struct frame_reader {
    unsigned char head[10];
    size_t head_length;
    bool has_head, is_final;
    unsigned opcode;    // of this frame
    uint64_t left;      // of this frame
    unsigned message;   // opcode of the message that is coming; 0: none
    struct buffer data; // of the message
    struct buffer control;
    bool is_ready; // the last call gave a message, which goes at the next
};

void frame_reader_init(struct frame_reader *reader);
void frame_reader_clear(struct frame_reader *reader);

/*
 * Takes from `data`, *used bytes of it. 1: *kind is a whole message (or control frame), whose bytes *out live until the next call; 0: more is
 * needed; -1 where it is no WebSocket.
 */
int frame_reader_take(struct frame_reader *reader, const void *data, size_t length, size_t *used,
                      enum frame_kind *kind, const struct buffer **out, struct error *err);

/* Adds one whole frame, masked as a client's must be, to `to`. */
int frame_add(struct buffer *to, enum frame_kind kind, const void *data, size_t length,
              uint32_t mask, struct error *err);
