/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One HTTP request as it was sent: plain data.
 * Nothing in it is decoded: a path may hold %2F and %00.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "net/gather.h"
#include "net/peer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct body;

struct http_header {
    const char *name; // NULL ends a list
    const char *value;
};

struct http_request {
    const char *method; // "GET"; always in capitals
    const char *path;   // up to the '?', at least "/"; "*" for OPTIONS *
    const char *query;  // behind the '?'; NULL when there is none
    const char *host;   // the Host header, or the authority of an absolute target; NULL in HTTP/1.0
    uint8_t minor;      // HTTP/1.minor: 0 or 1
    bool is_head;       // HEAD: answered as GET, and no body is sent
    bool keeps_alive;   // the client would send another on this connection
    bool has_body;      // a length other than 0, or chunks
    bool is_chunked;
    bool expects_continue;
    uint64_t body_length;        // as declared; 0 when chunked
    struct http_header *headers; // names as sent; duplicates stay apart
    size_t header_count;
    struct buffer body;  // the whole of it when it was gathered
    struct body *stream; // owned; the body as it comes when it is streamed, else NULL
    struct peer peer;
    struct gather_charge charge; // the memory that its body takes, and what is made of it
    uint64_t body_here;          // bytes behind its head that came with it
    bool is_body_refused;        // its body was thrown away: nothing but a refusal can come of it
    char *head;                  // owned: the bytes that all strings above point into
};

/* The first header of this name (any case), or NULL. */
const char *http_request_header(const struct http_request *request, const char *name);

void http_request_free(struct http_request *request);
DEFINE_AUTOPTR(http_request)
