/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A response that goes to no connection but to the program itself: for requests that one protocol makes of another's routes. The whole
 * answer is gathered in memory, up to a limit, and handed over once.
 * Threads: any; on_answer runs on a worker.
 */
#pragma once
#include "base/auto.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/request.h"
#include "net/response.h"

struct inner_response;

struct inner_answer {
    int status;       // 500 where nobody has answered
    const char *head; // status line and headers as they would be sent; see inner_answer_header
    size_t head_length;
    const char *body;
    size_t length;
    bool is_cut; // it was longer than the limit, or broke off
};

/* Copies the value of a header into `value`, cut to its size; false: there is none. */
bool inner_answer_header(const struct inner_answer *answer, const char *name, char *value,
                         size_t size);

struct inner_settings {
    struct loop *loop;
    struct workers *workers;
    size_t limit; // of the answer's body, in bytes
    /* On a worker, exactly once. */
    void (*on_answer)(void *data, const struct inner_answer *answer);
    void *data;
};

/* A reference for the caller; *response is one for whoever answers. */
struct inner_response *inner_response_new(const struct inner_settings *settings,
                                          struct response **response);

/* Whoever asked does not wait any more: those who answer are told as if a client had gone away. on_answer is called all the same. */
void inner_response_give_up(struct inner_response *inner);
void inner_response_free(struct inner_response *inner); // gives up one reference
DEFINE_AUTOPTR(inner_response)

/* A request as if it had come from `peer`; texts are copied. `headers` ends with an empty one. The body is `length` bytes; `is_stream` gives them as a
 * stream to be read on `loop`. */
struct inner_request {
    const char *method, *target; // a path, with or without a query
    const struct http_header *headers;
    const char *host; // NULL: none
    const char *body;
    size_t length;
    const struct peer *peer;
};
struct http_request *inner_request_new(const struct inner_request *from, struct loop *loop,
                                       bool is_stream);
