/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows an execution over one response: what it writes on stdout and stderr, as it comes, and then how it ended, in frames that a front
 * spells. Costs memory and no thread.
 * Threads: any; the callbacks say theirs.
 */
#pragma once
#include "web/output_sides.h"
#include "web/waiting_call.h"

/* Bytes that have come on one side. */
struct output_piece {
    unsigned side;
    const char *bytes;
    size_t length;
    bool is_last;                     // nothing comes on this side behind them
    const struct output_sides *sides; // how far both are, without these bytes
};

/* How a protocol spells it. All get the front's data; buffers are added to. */
struct output_frames {
    /* The first frame, before any output. Where the follower is started. NULL: none. */
    void (*start)(void *data, const struct execution_info *info, const struct output_sides *sides,
                  struct buffer *out);
    /* How many of the bytes are in the frame; 0: more have to come first, and nothing was added. On the loop. */
    size_t (*piece)(void *data, const struct output_piece *piece, struct buffer *out);
    /* The last frame. False: is_quick, and it has to block. On the loop, or a worker. */
    bool (*end)(void *data, const struct waiting_call *waiting, const struct execution_info *info,
                bool is_quick, struct buffer *out);
    void (*keep_alive)(void *data, struct buffer *out); // on the loop
    void (*late)(void *data,
                 struct buffer *out); // the last frame of one whose deadline has come; on the loop
    void (*gone)(
        void *data,
        struct core *core);   // the client went before the end; on the loop. NULL: nothing to do
    void (*free)(void *data); // NULL: nothing to do. Any thread
};

struct output_frames_request {
    const struct execution_info *info;
    const struct output_frames *frames;
    void *data;                        // taken, also by a failure
    const struct http_header *headers; // of the answer; must stay
    bool is_left_out[OUTPUT_SIDES];
    uint64_t offsets
        [OUTPUT_SIDES]; // of the first byte that is wanted; OUTPUT_FROM_NOW: the next that comes
    uint64_t keep_alive_ms;
    uint64_t deadline_ms; // of the following, not of what is followed; 0: none
    // ends with what there is when it begins; behind it the last frame where the execution is over
    bool is_now;
};

/*
 * Answers the call. ERROR_INVALID, about the stream's name, for an offset past what there is. When the server stops, the client gets what is
 * there and no last chunk.
 */
int output_frames_start(struct call *call, const struct output_frames_request *request,
                        struct error *err);
