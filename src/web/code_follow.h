/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers a call with what a run of code tells, in the words of a front: line by line as it comes, or all of it at the end. A client that goes away, and a time that is over,
 * interrupt the code. What an interpreter sends is a guest's: every line is read as JSON before a front sees it, and all of it is bounded. Costs memory and no thread.
 * Threads: any; a format's functions are called by one thread at a time.
 */
#pragma once
#include "base/buffer.h"
#include "core/code/code.h"
#include "data/value.h"
#include "web/call.h"

#define CODE_FOLLOW_BYTES (16u << 20) // of an answer that is given at the end

struct code_format {
    const struct http_header *headers; // of an answer that is given bit by bit
    bool is_whole;                     // else the answer is given once, by finish
    /* A line: a map with a text "type". Adds what the client gets. ERROR_LIMIT: no more is kept of it. */
    int (*add)(void *state, const struct data_value *line, const char *text, size_t length,
               struct buffer *out, struct error *err);
    /* Nothing was told for a while. NULL: nothing is sent then. */
    int (*keep_alive)(void *state, struct buffer *out, struct error *err);
    /* All was told. What is added is the last. */
    int (*finish)(void *state, const struct context_info *context, struct buffer *out,
                  struct error *err);
    void (*free)(void *state);
};

/* Takes the run and the state. `timeout_ms` 0: none. */
void code_follow_start(struct call *call, struct code_run *run, int64_t timeout_ms,
                       const struct code_format *format, void *state);
