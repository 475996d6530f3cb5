/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a stream over a response: what is there, then what comes, until the stream is complete. Done on the loop from the
 * page cache, so ten thousand quiet readers cost memory and no thread, and a slow one delays nobody.
 * Threads: any.
 */
#pragma once
#include "core/event/hub.h"
#include "core/stream/stream.h"
#include "loop/loop.h"
#include "net/request.h"
#include "net/response.h"

#include <stdbool.h>
#include <stdint.h>

struct router;

struct follow_request {
    struct loop *loop;           // of the response
    const struct router *router; // a reader is let go when it drains; NULL: none
    struct hub *hub;
    struct stream *stream;     // borrowed, like all here; held for as long as it is read
    struct response *response; // must not be watched by anybody else
    const struct http_request *request;
    uint64_t offset;                   // of the first byte that is wanted
    bool is_now;                       // what is there now, whether it is complete or not
    uint64_t length;                   // of that, or of a complete one, at most so much; 0: all
    const struct http_header *headers; // beside its own, unless it is followed; NULL: none
};

#define FOLLOW_HEADERS 4 // at most

/*
 * Answers: 200 with everything from `offset`, with its length where the stream is complete, else in chunks as it comes (the head
 * at once). Past the end: 416. A Range is answered from what is there now and never waited for: 206 or 416; it counts where
 * offset is 0. What a terminal's stream has no longer is left out: it begins, or goes on for a client that is far behind, with the first byte
 * there is; Output-Offset says where it begins. HEAD gets the head alone. A client that goes away ends it. When the router drains, the client gets what is there,
 * and then no last chunk: so it can tell that from the end, and go on from there at the next server. Any thread.
 */
void follow_start(const struct follow_request *request);
