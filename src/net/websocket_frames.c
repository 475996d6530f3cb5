/* SPDX-License-Identifier: Apache-2.0 */
/* Frames: heads, payloads and the messages they are parts of; see websocket_frames.h. */
#include "net/websocket_frames.h"

#include "base/utf8.h"

#include <string.h>

#define FINAL 0x80u
#define RESERVED 0x70u
#define MASKED 0x80u
#define MASK_BYTES 4u

void frames_init(struct frames *frames, const struct websocket_limits *limits,
                 const struct frames_events *events, void *owner)
{
    *frames = (struct frames){.limits = limits, .events = events, .owner = owner};
    buffer_init(&frames->text, limits->text_bytes);
}

void frames_clear(struct frames *frames)
{
    buffer_clear(&frames->text);
}

static int fail(struct frames_fault *fault, enum websocket_code code, const char *text)
{
    *fault = (struct frames_fault){code, text};
    return -1;
}

static unsigned opcode_of(const struct frames *frames)
{
    return frames->head[0] & 0x0fu;
}

static bool is_final(const struct frames *frames)
{
    return frames->head[0] & FINAL;
}

static bool is_control(unsigned opcode)
{
    return opcode >= WEBSOCKET_CLOSE;
}

/* How many bytes its head takes, as far as that can be said by now. */
static unsigned head_size(const struct frames *frames)
{
    if (frames->head_length < 2)
        return 2;
    unsigned length = frames->head[1] & 0x7fu;
    return 2 + (length == 126 ? 2 : length == 127 ? 8 : 0) + MASK_BYTES;
}

/* What the first two bytes say, before anything more is waited for. */
static int check_start(const struct frames *frames, struct frames_fault *fault)
{
    unsigned opcode = opcode_of(frames), length = frames->head[1] & 0x7fu;

    if (frames->head[0] & RESERVED)
        return fail(fault, WEBSOCKET_PROTOCOL, "reserved bits are set");
    if (!(frames->head[1] & MASKED))
        return fail(fault, WEBSOCKET_PROTOCOL, "a client's frames are masked");
    if (is_control(opcode)) {
        if (opcode > WEBSOCKET_PONG)
            return fail(fault, WEBSOCKET_PROTOCOL, "there is no such opcode");
        if (!is_final(frames) || length > WEBSOCKET_CONTROL)
            return fail(fault, WEBSOCKET_PROTOCOL, "a control frame is short and whole");
        return 0;
    }
    if (opcode > WEBSOCKET_BINARY)
        return fail(fault, WEBSOCKET_PROTOCOL, "there is no such opcode");
    if ((opcode == WEBSOCKET_CONTINUATION) != (frames->message != 0))
        return fail(fault, WEBSOCKET_PROTOCOL,
                    frames->message ? "a message began inside another one"
                                    : "there is no message to continue");
    return 0;
}

/* False: it is not written as short as can be, or has its highest bit set. */
static bool read_length(const struct frames *frames, uint64_t *out)
{
    unsigned shown = frames->head[1] & 0x7fu;
    unsigned bytes = shown == 126 ? 2 : shown == 127 ? 8 : 0;
    uint64_t length = 0;

    for (unsigned i = 0; i < bytes; i++)
        length = length << 8 | frames->head[2 + i];
    *out = bytes ? length : shown;
    if (bytes == 2)
        return length > 125;
    return bytes == 0 || (length > 0xffff && !(length >> 63));
}

/* Counts the frame to its message. */
static int join_message(struct frames *frames, struct frames_fault *fault)
{
    if (!frames->message) {
        frames->message = opcode_of(frames);
        frames->message_length = 0;
        frames->fragments = 0;
        frames->is_begun = false;
    }
    uint64_t most = frames->message == WEBSOCKET_TEXT ? frames->limits->text_bytes
                                                      : frames->limits->message_bytes;
    if (frames->left > most || frames->message_length > most - frames->left)
        return fail(fault, WEBSOCKET_TOO_LARGE, "the message is too large");
    frames->message_length += frames->left;
    if (++frames->fragments > frames->limits->fragments)
        return fail(fault, WEBSOCKET_POLICY, "the message comes in too many pieces");
    return 0;
}

static int finish_head(struct frames *frames, struct frames_fault *fault)
{
    if (!read_length(frames, &frames->left))
        return fail(fault, WEBSOCKET_PROTOCOL, "a length is not written in its shortest form");
    frames->is_payload = true;
    frames->mask_at = 0;
    frames->control_length = 0;
    return is_control(opcode_of(frames)) ? 0 : join_message(frames, fault);
}

static int feed_head(struct frames *frames, const char *data, size_t length, size_t *used,
                     struct frames_fault *fault)
{
    unsigned want = head_size(frames) - frames->head_length;
    size_t part = length < want ? length : want;

    memcpy(frames->head + frames->head_length, data, part);
    frames->head_length += (unsigned)part;
    *used += part;
    if (part < want)
        return 0;
    if (frames->head_length == 2) // more is wanted now
        return check_start(frames, fault);
    return finish_head(frames, fault);
}

static void unmask(struct frames *frames, char *data, size_t length)
{
    const uint8_t *mask = frames->head + frames->head_length - MASK_BYTES;

    for (size_t i = 0; i < length; i++)
        data[i] = (char)((uint8_t)data[i] ^ mask[(frames->mask_at + i) % MASK_BYTES]);
    frames->mask_at = (unsigned)((frames->mask_at + length) % MASK_BYTES);
}

/* Codes that may be sent: those of the protocol, of libraries and of applications. */
static bool is_code(unsigned code)
{
    return (code >= 1000 && code <= 1003) || (code >= 1007 && code <= 1014) ||
           (code >= 3000 && code <= 4999);
}

/* 1: go on; 0: not. */
static int end_close(struct frames *frames, struct frames_fault *fault)
{
    const char *data = frames->control;
    unsigned length = frames->control_length;

    if (length == 0)
        return frames->events->on_close(frames->owner, WEBSOCKET_NO_CODE);
    unsigned code = length < 2 ? 0 : (unsigned)((uint8_t)data[0] << 8 | (uint8_t)data[1]);
    if (!is_code(code))
        return fail(fault, WEBSOCKET_PROTOCOL, "there is no such code to close with");
    if (!utf8_is_valid(data + 2, length - 2))
        return fail(fault, WEBSOCKET_NOT_TEXT, "the reason of a close is not UTF-8");
    return frames->events->on_close(frames->owner, code);
}

static int end_control(struct frames *frames, struct frames_fault *fault)
{
    const struct frames_events *events = frames->events;

    switch (opcode_of(frames)) {
    case WEBSOCKET_PING:
        return events->on_ping(frames->owner, frames->control, frames->control_length);
    case WEBSOCKET_PONG:
        return events->on_pong(frames->owner);
    default:
        return end_close(frames, fault);
    }
}

static int end_text(struct frames *frames, struct frames_fault *fault)
{
    struct buffer *text = &frames->text;

    if (!utf8_is_valid(text->data ? text->data : "", text->length))
        return fail(fault, WEBSOCKET_NOT_TEXT, "a text is not UTF-8");
    int status = frames->events->on_text(frames->owner, text->data ? text->data : "", text->length);
    buffer_clear(text);
    buffer_init(text, frames->limits->text_bytes);
    return status;
}

/* A frame is complete. 1: go on; 0: not. */
static int end_frame(struct frames *frames, struct frames_fault *fault)
{
    frames->is_payload = false;
    if (is_control(opcode_of(frames)))
        return end_control(frames, fault);
    if (!is_final(frames))
        return 1;
    unsigned message = frames->message;
    frames->message = 0;
    return message == WEBSOCKET_TEXT ? end_text(frames, fault) : 1;
}

/* A part of the payload. 1: go on; 0: not. */
static int take_part(struct frames *frames, const char *data, size_t length,
                     struct frames_fault *fault)
{
    struct error err;

    if (is_control(opcode_of(frames))) {
        memcpy(frames->control + frames->control_length, data, length);
        frames->control_length += (unsigned)length;
        return 1;
    }
    if (frames->message == WEBSOCKET_TEXT)
        return buffer_add(&frames->text, data, length, &err) < 0
                   ? fail(fault, WEBSOCKET_TOO_LARGE, "the message is too large")
                   : 1;
    bool is_first = !frames->is_begun, is_last = is_final(frames) && frames->left == 0;
    if (length == 0 && !is_last)
        return 1; // an empty piece in the middle tells nothing
    frames->is_begun = true;
    return frames->events->on_binary(frames->owner, data, length, is_first, is_last);
}

static int feed_payload(struct frames *frames, char *data, size_t length, size_t *used,
                        struct frames_fault *fault)
{
    size_t part = length < frames->left ? length : (size_t)frames->left;

    unmask(frames, data, part);
    *used += part;
    frames->left -= part;
    bool is_whole = frames->left == 0;
    int status = take_part(frames, data, part, fault);
    if (!is_whole || status < 0)
        return status;
    frames->head_length = 0;
    int ended = end_frame(frames, fault);
    return ended < 0 ? -1 : status && ended;
}

ssize_t frames_feed(struct frames *frames, char *data, size_t length, struct frames_fault *fault)
{
    size_t used = 0;
    int status = 1;

    if (frames->is_dead)
        return fail(fault, WEBSOCKET_PROTOCOL, "the connection has failed");
    while (status == 1 && (used < length || (frames->is_payload && frames->left == 0))) {
        if (frames->is_payload)
            status = feed_payload(frames, data + used, length - used, &used, fault);
        else
            status = feed_head(frames, data + used, length - used, &used, fault) < 0 ? -1 : 1;
    }
    frames->is_dead = status < 0;
    return status < 0 ? -1 : (ssize_t)used;
}

size_t frames_head(enum websocket_opcode opcode, uint64_t length, uint8_t head[FRAMES_HEAD])
{
    unsigned bytes = length > 0xffff ? 8 : length > 125 ? 2 : 0;

    head[0] = (uint8_t)(FINAL | opcode);
    head[1] = (uint8_t)(bytes == 8 ? 127 : bytes == 2 ? 126 : length);
    for (unsigned i = 0; i < bytes; i++)
        head[2 + i] = (uint8_t)(length >> (8 * (bytes - 1 - i)));
    return 2 + bytes;
}
