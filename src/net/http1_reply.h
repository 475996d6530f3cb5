/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of a server's connection become answers: llhttp behind a bound for heads, with one length at most. What comes is a guest's and may
 * be anything. No socket, no time.
 * Threads: one per object.
 */
#pragma once
#include "net/request.h"

#include <llhttp.h>

#define REPLY_MAX_HEADERS 128
#define REPLY_HEAD_BYTES (64u << 10)
#define REPLY_MALFORMED (-1)

struct http1_reply_head {
    int status;
    const char *reason; // "" where there is none
    uint8_t minor;
    const struct http_header *headers; // names as sent
    size_t header_count;
    bool has_length; // else it is in chunks, or ends with the connection
    uint64_t length;
    bool is_bodiless; // whatever it says of a length: an answer to HEAD, 204, 304, 1xx
    bool keeps_alive;
};

struct http1_reply_events {
    /* One with a status below 200 is followed by another, but for 101, behind which nothing is read. */
    void (*on_head)(void *owner, const struct http1_reply_head *head);
    void (*on_body)(void *owner, const char *data, size_t length);
    void (*on_end)(void *owner);
};

struct http1_reply {
    const struct http1_reply_events *events;
    void *owner;
    bool is_to_head; // the request was HEAD: nothing follows the head
    bool is_reading; // a head is complete, and more may come
    bool is_ended, is_dead, is_upgrade, is_interim;
    struct buffer head;
    size_t scanned; // of the head, for its end
    size_t reason_length;
    size_t extra_bytes; // of chunk extensions and trailers
    struct http1_reply_head told;
    struct http_header headers[REPLY_MAX_HEADERS];
    size_t lengths[REPLY_MAX_HEADERS]; // of the values, while they are read
    llhttp_t parser;
};

void http1_reply_init(struct http1_reply *reply, const struct http1_reply_events *events,
                      void *owner);
void http1_reply_clear(struct http1_reply *reply);
/* The next answer is to a request with this method. */
void http1_reply_expect(struct http1_reply *reply, bool is_to_head);

/* Reads up to the end of one answer; how many bytes were used, or REPLY_MALFORMED. */
ssize_t http1_reply_feed(struct http1_reply *reply, const char *data, size_t length);
/* No more comes. Whether what came is whole, on_end then having been called. */
bool http1_reply_finish(struct http1_reply *reply);
