/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The text in front of an answer's body.
 * Threads: plain values.
 */
#pragma once
#include "net/output.h"

/* Whether an answer with this status has a body at all. */
bool response_status_has_body(int status);

/* "Not Found". */
const char *response_status_reason(int status);

struct response_head {
    int status;
    const struct http_header *headers;      // NULL: none
    const struct http_header *more_headers; // NULL: none
    uint64_t length;                        // RESPONSE_LENGTH_UNKNOWN: none is told
    bool is_chunked;
};

/* Status line, Date, framing and headers, without the Connection line and the blank line behind
 * them. Control characters in headers become blanks. */
struct segment *response_head_new(const struct response_head *head);
