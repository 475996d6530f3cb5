/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A head that llhttp has cut into pieces becomes a request, or is refused for what llhttp lets
 * pass.
 * Threads: one per object.
 */
#pragma once
#include "net/http1.h"

struct http1_piece {
    char *at;
    size_t length;
};

struct http1_head {
    char *text; // the whole head; pieces point into it
    size_t length;
    struct http1_piece target;
    struct http1_piece *names;
    struct http1_piece *values;
    size_t count;
};

/* Takes head->text. NULL: refused, see *fault. */
struct http_request *http1_head_request(struct http1_head *head, const llhttp_t *parser,
                                        const struct http1_limits *limits,
                                        struct http1_fault *fault);

/* Why llhttp refused a head. */
void http1_head_fault(const struct http1_head *head, llhttp_errno_t code,
                      struct http1_fault *fault);
