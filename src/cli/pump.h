/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves the bytes of one direction from one fd to another, without loss and without waiting: what a
 * relay is made of. Pages are spliced where both ends allow it, else bytes are copied. The flags of
 * fds shared with others (our own stdin, stdout, stderr) are never changed. SIGPIPE must be ignored
 * or blocked.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum pump_shape {
    PUMP_PLAIN,
    PUMP_STAMPED,  // each line begins with the time its first byte came
    PUMP_CAPTURED, // kept in `held`; `to` is -1
    PUMP_DROPPED,  // read and forgotten
};

struct pump {
    int from;
    int to;
    bool owns_from, owns_to; // closes them at the end; an owned fd must be non-blocking
    enum pump_shape shape;
    uint64_t cap_bytes;     // what comes after that many is dropped; 0: nothing is
    const char *what;       // for errors: "standard output"
    const char *last_words; // written when `from` ends, before `to` is closed; or NULL

    uint64_t bytes;     // taken from `from` so far
    bool is_truncated;  // some were dropped for the cap
    bool is_done;       // nothing more will be moved
    struct buffer held; // read but not yet written, from held_at on; all of it when captured

    /* The pump's own. */
    size_t held_at;
    uint64_t left;
    int reopened; // `to` once more, non-blocking, where it is a terminal; or -1
    bool can_read, can_write, has_ended, is_finishing, is_mid_line, is_large;
    bool from_pipe, from_device, to_socket, to_file, to_device, can_splice;
};

/* Prepares it to move from `from` to `to`; fill in the caller's fields afterwards. from = -1:
 * nothing to do. */
void pump_init(struct pump *pump, int from, int to, const char *what);
void pump_clear(struct pump *pump);

/* What to poll for now: false means not to. After poll, tell it what became ready. */
bool pump_wants_input(const struct pump *pump);
bool pump_wants_output(const struct pump *pump);
void pump_ready(struct pump *pump, bool input, bool output);
/* Whether it can go on without polling. */
bool pump_is_eager(const struct pump *pump);

/*
 * Moves what can be moved now. A `to` whose reader has gone ends the pump (so whoever writes into
 * `from` meets a broken pipe); any other failure does so too and is told, once.
 */
int pump_move(struct pump *pump, struct error *err);

/* Whoever wrote into `from` is gone: moves what is in it at this moment, but waits for no more. */
void pump_finish(struct pump *pump);

/* Whether the end of `from` after pump_finish is not known, so that a short wait is needed
 * (terminals). */
bool pump_is_lingering(const struct pump *pump);

/* Drops what is not moved yet and lets go of both fds. */
void pump_stop(struct pump *pump);
