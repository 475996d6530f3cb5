/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the frames of WebSocket: the same bytes, whole and cut into pieces, must give the same messages or the same refusal; nothing
 * is told beyond the limits, and every text is UTF-8. */
#include "base/auto.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "net/websocket_frames.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct websocket_limits limits = {
    .message_bytes = 1000, .text_bytes = 300, .fragments = 5};

struct seen {
    uint64_t hash; // of all that was told
    uint64_t message;
    bool is_open; // a binary message
    int code;
};

static void add(struct seen *seen, const void *data, size_t length)
{
    for (size_t i = 0; i < length; i++)
        seen->hash = (seen->hash ^ ((const uint8_t *)data)[i]) * 0x100000001b3u;
}

static bool on_binary(void *owner, const char *data, size_t length, bool is_first, bool is_last)
{
    struct seen *seen = owner;

    if (is_first == seen->is_open)
        abort();
    if (is_first)
        seen->message = 0;
    seen->message += length;
    if (seen->message > limits.message_bytes)
        abort();
    add(seen, data, length);
    seen->is_open = !is_last;
    if (is_last)
        add(seen, "B", 1);
    return true;
}

static bool on_text(void *owner, const char *text, size_t length)
{
    if (length > limits.text_bytes || !utf8_is_valid(text, length) || text[length])
        abort();
    add(owner, text, length);
    add(owner, "T", 1);
    return true;
}

static bool on_ping(void *owner, const char *data, size_t length)
{
    if (length > WEBSOCKET_CONTROL)
        abort();
    // It may stand anywhere between the pieces of a message, which are not cut at the same places.
    (void)owner;
    (void)data;
    return true;
}

static bool on_pong(void *owner)
{
    (void)owner;
    return true;
}

static bool on_close(void *owner, unsigned code)
{
    if (code < 1000 || code > 4999)
        abort();
    add(owner, &code, sizeof code);
    return true;
}

static const struct frames_events events = {.on_binary = on_binary,
                                            .on_text = on_text,
                                            .on_ping = on_ping,
                                            .on_pong = on_pong,
                                            .on_close = on_close};

static void feed(const uint8_t *data, size_t size, size_t piece, struct seen *seen)
{
    struct frames frames;
    struct frames_fault fault = {0};
    autofree char *copy = xrealloc(NULL, 1, size + 1);

    memcpy(copy, data, size);
    frames_init(&frames, &limits, &events, seen);
    for (size_t at = 0; at < size && !seen->code;) {
        size_t part = size - at < piece ? size - at : piece;
        ssize_t used = frames_feed(&frames, copy + at, part, &fault);
        if (used >= 0 && (size_t)used != part)
            abort();
        seen->code = (int)fault.code;
        at += part;
    }
    frames_clear(&frames);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct seen whole = {0}, bytes = {0}, some = {0};

    feed(data, size, SIZE_MAX, &whole);
    feed(data, size, 1, &bytes);
    feed(data, size, 1 + size % 11, &some);
    // Pieces of a binary message may be told before a fault that comes with the rest of them.
    if (whole.code != bytes.code || whole.code != some.code)
        abort();
    if (!whole.code && (whole.hash != bytes.hash || whole.hash != some.hash))
        abort();
    return 0;
}
