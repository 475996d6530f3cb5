/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Heads of HTTP/1 requests and answers, read strictly: what two readers could understand differently is refused, since a second request that only the server
 * sees would be judged by nobody.
 * Threads: plain values.
 */
#pragma once
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HTTP_HEAD_MAX (32u << 10)

enum http_head_state { HTTP_HEAD_MORE, HTTP_HEAD_READ, HTTP_HEAD_BAD };
struct http_head {
    size_t length;                 // of the head, with its empty line
    char name[POLICY_NAME_LENGTH]; // the host it says, folded; "": none, or an address
    uint32_t address;              // where it says an address; in the machine's order
    bool has_bad_name;             // it says a host that is none
    bool is_upgrade;               // it asks for another protocol behind it
    bool is_chunked;
    uint64_t content_length;
    unsigned status;     // of an answer
    const char *problem; // of HTTP_HEAD_BAD: a literal
};
enum http_head_state http_head_read(const char *bytes, size_t length, struct http_head *out);
/* The head of an answer; of it only length and status are read. */
enum http_head_state http_status_read(const char *bytes, size_t length, struct http_head *out);

/* Where a body that comes in chunks ends. */
struct http_chunks {
    unsigned state;
    uint64_t left;
    unsigned digits, line;
};
/* How many of these bytes belong to the body, and whether it ends there; -1: damaged. */
ptrdiff_t http_chunks_take(struct http_chunks *chunks, const char *bytes, size_t length,
                           bool *is_end);

/* The value of a header, by its name in any case; NULL: none. Not NUL-terminated. */
const char *http_header_find(const char *head, size_t length, const char *name,
                             size_t *value_length);
