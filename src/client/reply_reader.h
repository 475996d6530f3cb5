/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the answer to a request of HTTP/1.1, as bytes come: status and headers first, then pieces of the body. Pure: no descriptor, no
 * waiting. Whoever answers is a stranger: the head is at most REPLY_HEAD_MAX bytes, chunk sizes are bounded, and what is not HTTP is
 * refused with a sentence.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLY_HEAD_MAX ((size_t)64 << 10)

enum reply_state {
    REPLY_HEAD,
    REPLY_LENGTH,     // so many bytes
    REPLY_CHUNK_SIZE, // a line
    REPLY_CHUNK,
    REPLY_CHUNK_END, // CRLF behind a chunk
    REPLY_TRAILER,
    REPLY_UNTIL_CLOSE,
    REPLY_SWITCHED, // 101: what follows is another protocol
    REPLY_DONE,
};

struct reply_reader {
    enum reply_state state;
    struct buffer head; // from the status line to the empty line, then for header()
    char line[64];      // of a chunk's size, or of a trailer
    size_t line_length;
    int status;
    bool is_last;     // the connection ends behind it
    bool has_no_body; // the request was HEAD
    bool may_switch;  // the request asked for another protocol, which 101 is about
    bool has_length;
    uint64_t left;   // of the body, or of a chunk
    uint64_t length; // of the whole body, where has_length
    size_t trailer_bytes;
    unsigned n_early; // 100 Continue and the like, which came before it
};

void reply_reader_init(struct reply_reader *reader, bool is_head_request);
void reply_reader_clear(struct reply_reader *reader);

/*
 * Takes from `data`: *used bytes of it were read, and *body (borrowed from data) has *body_length of the body; call again with the rest until
 * nothing is used or it is done. ERROR_INVALID where it is not HTTP.
 */
int reply_reader_take(struct reply_reader *reader, const char *data, size_t length, size_t *used,
                      const char **body, size_t *body_length, struct error *err);

/* The connection ended: an error unless that is how the body ends, or it is done. One that was cut, and not closed, ends no body. */
int reply_reader_end(struct reply_reader *reader, bool is_cut, struct error *err);

/* The value of a header, in `text`; NULL where there is none. Once the head is read. */
const char *reply_reader_header(const struct reply_reader *reader, const char *name, char *text,
                                size_t size);
