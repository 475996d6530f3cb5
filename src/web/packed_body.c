/* SPDX-License-Identifier: Apache-2.0 */
/* Compressed bodies; see packed_body.h. */
#include "web/packed_body.h"

#include "base/mem.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <zlib.h>

#define PIECE (64u << 10)

struct packed_body {
    z_stream stream;
    uint64_t maximum, told;
    packed_body_bytes fn;
    void *data;
    bool is_between; // of two members, or behind the last
    bool is_begun;
    unsigned char piece[PIECE];
};

struct packed_body *packed_body_new(uint64_t maximum, packed_body_bytes fn, void *data)
{
    struct packed_body *packed_body = xnew(struct packed_body);

    packed_body->maximum = maximum;
    packed_body->fn = fn;
    packed_body->data = data;
    packed_body->is_between = true;
    if (inflateInit2(&packed_body->stream, 15 + 16) != Z_OK) // gzip alone
        abort();                                             // there is no memory
    return packed_body;
}

void packed_body_free(struct packed_body *packed_body)
{
    if (!packed_body)
        return;
    (void)inflateEnd(&packed_body->stream);
    free(packed_body);
}

static int tell(struct packed_body *packed_body, struct error *err)
{
    size_t length = PIECE - packed_body->stream.avail_out;

    if (length > packed_body->maximum - packed_body->told)
        return error_set(err, ERROR_TOO_LARGE, "the body is more than %" PRIu64 " bytes unpacked",
                         packed_body->maximum);
    packed_body->told += length;
    return length ? packed_body->fn(packed_body->data, packed_body->piece, length, err) : 0;
}

int packed_body_feed(struct packed_body *packed_body, const void *bytes, size_t length,
                     struct error *err)
{
    z_stream *stream = &packed_body->stream;

    stream->next_in = (unsigned char *)(uintptr_t)bytes; // only read
    stream->avail_in = (unsigned)length;
    do {
        if (packed_body->is_between && stream->avail_in == 0)
            return 0;
        if (packed_body->is_between && packed_body->is_begun)
            (void)inflateReset(stream);
        packed_body->is_between = false;
        packed_body->is_begun = true;
        stream->next_out = packed_body->piece;
        stream->avail_out = PIECE;
        int status = inflate(stream, Z_NO_FLUSH);
        if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR)
            return error_set(err, ERROR_INVALID, "the body is not gzip: %s",
                             stream->msg ? stream->msg : "it is damaged");
        if (tell(packed_body, err) < 0)
            return -1;
        packed_body->is_between = status == Z_STREAM_END;
    } while (stream->avail_in > 0 || stream->avail_out == 0);
    return 0;
}

int packed_body_finish(struct packed_body *packed_body, struct error *err)
{
    if (packed_body->is_between && packed_body->is_begun)
        return 0;
    return error_set(err, ERROR_INVALID, "the gzip in the body is cut off");
}
