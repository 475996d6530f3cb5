/* SPDX-License-Identifier: Apache-2.0 */
/* Bounded growing bytes; see buffer.h. */
#include "base/buffer.h"

#include "base/mem.h"

#include <assert.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void buffer_init(struct buffer *buffer, size_t maximum)
{
    *buffer = (struct buffer){.maximum = maximum};
}

void buffer_clear(struct buffer *buffer)
{
    free(buffer->data);
    *buffer = (struct buffer){.maximum = buffer->maximum};
}

int buffer_reserve(struct buffer *buffer, size_t length, struct error *err)
{
    size_t limit = buffer->maximum ? buffer->maximum : SIZE_MAX / 4;
    if (length > limit || buffer->length > limit - length)
        return error_set(err, ERROR_LIMIT, "more than %zu bytes", limit);
    size_t need = buffer->length + length + 1;
    if (need <= buffer->capacity)
        return 0;
    size_t capacity = buffer->capacity ? buffer->capacity : 64;
    while (capacity < need)
        capacity *= 2;
    buffer->data = xrealloc(buffer->data, capacity, 1);
    buffer->capacity = capacity;
    buffer->data[buffer->length] = '\0';
    return 0;
}

void buffer_grew(struct buffer *buffer, size_t length)
{
    assert(buffer->length + length < buffer->capacity);
    buffer->length += length;
    buffer->data[buffer->length] = '\0';
}

int buffer_addf(struct buffer *buffer, struct error *err, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int length = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (length < 0)
        return error_set(err, ERROR_SYSTEM, "format text");
    if (buffer_reserve(buffer, (size_t)length, err) < 0)
        return -1;
    va_start(args, format);
    (void)vsnprintf(buffer->data + buffer->length, (size_t)length + 1, format, args);
    va_end(args);
    buffer_grew(buffer, (size_t)length);
    return 0;
}
