/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing bytes with a maximum: the place for anything whose size a stranger chooses.
 * Threads: one per object.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

struct buffer {
    char *data; // always NUL-terminated behind length once anything was added
    size_t length;
    size_t capacity;
    size_t maximum; // 0: no maximum of its own
};

void buffer_init(struct buffer *buffer, size_t maximum);
void buffer_clear(struct buffer *buffer);

/* ERROR_LIMIT once the maximum would be passed; the buffer is unchanged then. */
static inline int buffer_add(struct buffer *buffer, const void *data, size_t length,
                             struct error *err);
static inline int buffer_add_text(struct buffer *buffer, const char *text, struct error *err);
int buffer_addf(struct buffer *buffer, struct error *err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Room for `length` more bytes at data + length, not counted until buffer_grew. */
int buffer_reserve(struct buffer *buffer, size_t length, struct error *err);
void buffer_grew(struct buffer *buffer, size_t length);

static inline void buffer_clearp(struct buffer *buffer)
{
    buffer_clear(buffer);
}

/* Where it is inlined, adding a short text is a few instructions: answers and log lines are made of hundreds of them. */
static inline int buffer_add(struct buffer *buffer, const void *data, size_t length,
                             struct error *err)
{
    bool has_room = length < buffer->capacity - buffer->length &&
                    (!buffer->maximum || buffer->length + length <= buffer->maximum);

    if (!has_room && buffer_reserve(buffer, length, err) < 0)
        return -1;
    if (length)
        memcpy(buffer->data + buffer->length, data, length);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
    return 0;
}

static inline int buffer_add_text(struct buffer *buffer, const char *text, struct error *err)
{
    return buffer_add(buffer, text, strlen(text), err);
}

#define autobuffer __attribute__((cleanup(buffer_clearp))) struct buffer
