/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The log of a sandbox: what all its commands and jobs wrote, one after the other in the order they were started, of each stdout and then stderr. What terminals
 * show is not in it.
 * Threads: any but loops.
 */
#pragma once
#include "base/buffer.h"
#include "base/id.h"
#include "core/account/actor.h"
#include "model/execution.h"

struct executions;

enum log_side { LOG_STDOUT, LOG_STDERR, LOG_SIDES };

/* A place in it: so much of this execution was read, and all that was started before. All zero is the beginning. */
struct log_place {
    int64_t number; // of the execution in its sandbox
    uint64_t offsets[LOG_SIDES];
};

struct log_piece {
    char execution_id[ID_TEXT];
    enum execution_kind kind;
    enum log_side side;
    uint64_t offset;      // in the stream
    size_t start, length; // in the log's bytes
    int64_t started_at;
};

/* One that has not ended: so much of it was read, and there it goes on. */
struct log_open {
    struct log_place place;
    char streams[LOG_SIDES][ID_TEXT]; // "": none
};

struct execution_log {
    struct log_piece *pieces;
    size_t count;
    struct buffer bytes;
    struct log_place next; // behind all that is here
    int64_t unread;        // number of the first execution that was not read, or only in part
    bool is_cut;           // there is more now
    struct log_open *open; // of those that were read
    size_t n_open;
};
void execution_log_clear(struct execution_log *log);

struct log_request {
    const char *sandbox_id;
    struct log_place from;
    const enum log_side *side; // NULL: both
    size_t maximum;            // bytes
    bool is_one;               // nothing behind that execution
    size_t max_open;           // stops before there are more; 0: any number
};

/*
 * What there is from a place on, at most `maximum` bytes and LOG_PIECES pieces; a character of UTF-8 is not cut in two where more follows. Output that is no longer kept is
 * passed over, and so is what a command writes that was started before the place. ERROR_NOT_FOUND, noun "sandbox".
 */
#define LOG_PIECES 200
int execution_log_read(struct executions *executions, const struct actor *actor,
                       const struct log_request *request, struct execution_log *out,
                       struct error *err);
