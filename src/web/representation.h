/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a JSON answer looks on the wire: with an ETag by which a client can ask whether it has changed (304), and compressed where the client
 * takes that.
 * Threads: one per object.
 */
#pragma once
#include "net/request.h"
#include "net/response.h"

#include <stdbool.h>

#define REPRESENTATION_GZIP_FROM 1024       // bytes: shorter ones are sent as they are
#define REPRESENTATION_GZIP_LOOP (64 << 10) // on a loop, longer ones too: it must not be kept busy
#define REPRESENTATION_GZIP_MOST (8 << 20)
#define REPRESENTATION_HEADERS 8
#define REPRESENTATION_TAG 32

/* What the request says about it, and room for the headers of the answer; goes with the response. */
struct representation {
    bool is_get;
    bool takes_gzip;
    char *if_none_match; // NULL: not said
    char tag[REPRESENTATION_TAG];
    struct http_header headers[REPRESENTATION_HEADERS];
};
void representation_init(struct representation *representation, const struct http_request *request);
void representation_clear(struct representation *representation);

/* Changes an answer of type application/json that was well: adds ETag, where it has none of its own, and Vary, makes it 304 or compresses it. Leaves all others alone. */
void representation_apply(struct representation *representation, struct response_answer *answer);

/* Whether the value of Accept-Encoding takes gzip. */
bool representation_takes_gzip(const char *accept);
/* Whether a list of tags, or '*', has this one; what a coding added to a tag does not count. */
bool representation_has_tag(const char *list, const char *tag);
