/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of one connection become requests: llhttp inside a stricter frame (CRLF only, no folded
 * headers, one length, one Host), because what two parsers read differently is how requests are
 * smuggled. No socket, no time.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "net/request.h"

#include <llhttp.h>
#include <stdint.h>

#define HTTP1_MAX_HEADERS 128
struct http1_limits {
    size_t head_bytes;
    size_t target_bytes;
    size_t headers; // up to HTTP1_MAX_HEADERS
};

/* The status to answer with and why, as a sentence's rest. */
struct http1_fault {
    int status;
    const char *text;
};

#define HTTP1_HOLD 1

struct http1_events {
    /* A head is complete. Takes the request. -1 with *fault filled in refuses the rest; HTTP1_HOLD
     * ends the feed behind it, where there is a body. */
    int (*on_head)(void *owner, struct http_request *request, struct http1_fault *fault);
    /* Bytes of its body. -1 with *fault filled in refuses more. */
    int (*on_body)(void *owner, const char *data, size_t length, struct http1_fault *fault);
    /* The request is complete. */
    void (*on_end)(void *owner);
    /* A head is complete, as bytes. True: it is for somebody else. The feed ends behind it, and http->head has it. NULL: never. */
    bool (*is_elsewhere)(void *owner, const char *head, size_t length);
};

/* Which part of a request comes next. */
enum http1_part { HTTP1_START, HTTP1_HEAD, HTTP1_BODY, HTTP1_TRAILER, HTTP1_DEAD };

struct http1_head; // see http1_head.h

struct http1 {
    const struct http1_limits *limits;
    const struct http1_events *events;
    void *owner;
    enum http1_part part;
    unsigned line_length;       // of the line that is being scanned, without its end
    unsigned lines;             // that are complete
    unsigned line_bytes;        // of a chunk's extensions, or of all trailers
    bool has_cr;                // the last byte scanned was a CR
    struct buffer head;         // so far
    bool is_ended;              // the request was complete within this feed
    bool is_held;               // on_head said so within this feed
    bool is_left;               // is_elsewhere did: no more can be read
    struct http1_head *reading; // while llhttp reads a head
    struct http1_fault fault;
    llhttp_t parser;
};

void http1_init(struct http1 *http, const struct http1_limits *limits,
                const struct http1_events *events, void *owner);
void http1_clear(struct http1 *http);

/*
 * Reads up to the end of one request at most; returns the number of bytes used. -1: malformed, see
 * *fault; no more can be read from this connection. An on_head or on_end may have come before.
 */
ssize_t http1_feed(struct http1 *http, const char *data, size_t length, struct http1_fault *fault);
