/* SPDX-License-Identifier: Apache-2.0 */
/* Frames of WebSockets for clients; see frame_reader.h. */
#include "client/frame_reader.h"

#include <string.h>

#define CONTROL_MAX 125

void frame_reader_init(struct frame_reader *reader)
{
    *reader = (struct frame_reader){0};
    buffer_init(&reader->data, FRAME_MESSAGE_MAX);
    buffer_init(&reader->control, CONTROL_MAX);
}

void frame_reader_clear(struct frame_reader *reader)
{
    buffer_clear(&reader->data);
    buffer_clear(&reader->control);
}

static int refuse(struct error *err, const char *what)
{
    return error_set(err, ERROR_INVALID, "the server does not speak WebSocket: %s", what);
}

static size_t head_size(const struct frame_reader *reader)
{
    unsigned length = reader->head_length > 1 ? reader->head[1] & 127u : 0;

    return length == 127 ? 10 : length == 126 ? 4 : 2;
}

static bool is_control(unsigned opcode)
{
    return opcode >= FRAME_CLOSE;
}

static int check_head(struct frame_reader *reader, struct error *err)
{
    unsigned opcode = reader->opcode;

    if (reader->head[0] & 0x70 || reader->head[1] & 0x80)
        return refuse(err, "bits that nobody asked for");
    if (is_control(opcode)) {
        if (opcode > FRAME_PONG || !reader->is_final || reader->left > CONTROL_MAX)
            return refuse(err, "a control frame that cannot be");
        return 0;
    }
    if (opcode > FRAME_BINARY || (opcode == FRAME_CONTINUED) != (reader->message != 0))
        return refuse(err, "a frame out of its order");
    if (reader->left > FRAME_MESSAGE_MAX - reader->data.length)
        return refuse(err, "a message of more than 16 MiB");
    if (opcode)
        reader->message = opcode;
    return 0;
}

static int read_head(struct frame_reader *reader, struct error *err)
{
    const unsigned char *head = reader->head;
    size_t size = reader->head_length;

    reader->is_final = head[0] & 0x80;
    reader->opcode = head[0] & 15u;
    reader->left = head[1] & 127u;
    if (size > 2) {
        reader->left = 0;
        for (size_t i = 2; i < size; i++)
            reader->left = reader->left << 8 | head[i];
    }
    reader->has_head = true;
    return check_head(reader, err);
}

/* 1: a message or control frame is whole. */
static int end_frame(struct frame_reader *reader, enum frame_kind *kind, const struct buffer **out)
{
    reader->has_head = false;
    reader->head_length = 0;
    if (is_control(reader->opcode)) {
        *kind = reader->opcode;
        *out = &reader->control;
        reader->is_ready = true;
        return 1;
    }
    if (!reader->is_final)
        return 0;
    *kind = reader->message;
    *out = &reader->data;
    reader->is_ready = true;
    reader->message = 0;
    return 1;
}

static void forget(struct frame_reader *reader)
{
    if (!reader->is_ready)
        return;
    reader->is_ready = false;
    if (is_control(reader->opcode))
        reader->control.length = 0;
    else
        reader->data.length = 0;
}

int frame_reader_take(struct frame_reader *reader, const void *data, size_t length, size_t *used,
                      enum frame_kind *kind, const struct buffer **out, struct error *err)
{
    const char *bytes = data;

    *used = 0;
    forget(reader);
    while (*used < length) {
        if (!reader->has_head) {
            reader->head[reader->head_length++] = (unsigned char)bytes[(*used)++];
            if (reader->head_length < 2 || reader->head_length < head_size(reader))
                continue;
            if (read_head(reader, err) < 0)
                return -1;
        }
        size_t rest = length - *used;
        size_t part = rest < reader->left ? rest : (size_t)reader->left;
        struct buffer *to = is_control(reader->opcode) ? &reader->control : &reader->data;
        if (buffer_add(to, bytes + *used, part, err) < 0)
            return -1;
        *used += part;
        reader->left -= part;
        if (reader->left == 0 && end_frame(reader, kind, out) == 1)
            return 1;
    }
    return 0;
}

int frame_add(struct buffer *to, enum frame_kind kind, const void *data, size_t length,
              uint32_t mask, struct error *err)
{
    unsigned char head[14] = {(unsigned char)(0x80 | kind)};
    unsigned char key[4];
    size_t at = 2;

    memcpy(key, &mask, sizeof key);
    if (length < 126) {
        head[1] = (unsigned char)(0x80 | length);
    } else if (length < 65536) {
        head[1] = 0x80 | 126;
        head[at++] = (unsigned char)(length >> 8);
        head[at++] = (unsigned char)length;
    } else {
        head[1] = 0x80 | 127;
        for (int shift = 56; shift >= 0; shift -= 8)
            head[at++] = (unsigned char)((uint64_t)length >> shift);
    }
    memcpy(head + at, key, sizeof key);
    at += sizeof key;
    if (buffer_add(to, head, at, err) < 0 || buffer_reserve(to, length, err) < 0)
        return -1;
    char *place = to->data + to->length;
    for (size_t i = 0; i < length; i++)
        place[i] = (char)(((const unsigned char *)data)[i] ^ key[i % 4]);
    buffer_grew(to, length);
    return 0;
}
