/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded pool of threads for work that blocks, in lanes with threads of their own, so that long
 * work never keeps a short read waiting, and neither of them what ends it. Within a lane all who ask
 * get their turns (loop/turns.h), however much one of them asks for.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "loop/turns.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

enum workers_lane {
    WORKERS_QUICK,   // reads, small writes: milliseconds
    WORKERS_SLOW,    // builds, uploads, anything that takes as long as it takes
    WORKERS_CONTROL, // what ends, stops or looks at things: nothing long, so that it is never full
    WORKERS_LANES
};

#define WORKERS_UNBOUNDED UINT_MAX

struct workers_settings {
    struct {
        unsigned threads;
        unsigned queue;   // how many may wait, beside those that run; WORKERS_UNBOUNDED: any number
        const char *name; // of its threads, which are numbered where there are several; a literal
        unsigned per_who, per_what, heavy; // that run at once, as turns.h has it; 0: any number
        unsigned queue_per_who;            // of those that wait; 0: any number
        bool gives_way;                    // thread_give_way
    } lane[WORKERS_LANES];
};

struct workers;

/* Starts all threads, with all signals blocked. */
int workers_new(const struct workers_settings *settings, struct workers **out, struct error *err);

/* Queues fn(data); in a lane, work of one owner starts in the order it came. NULL: nobody's in
 * particular. A full queue is ERROR_LIMIT, reason "full", at once: data stays the caller's then. */
int workers_submit_for(struct workers *workers, enum workers_lane lane,
                       const struct turns_owner *owner, void (*fn)(void *data), void *data,
                       struct error *err);
int workers_submit(struct workers *workers, enum workers_lane lane, void (*fn)(void *data),
                   void *data, struct error *err);

/* The same in a lane without a bound, where it cannot fail. */
void workers_run(struct workers *workers, enum workers_lane lane, void (*fn)(void *data),
                 void *data);

/* How many wait in a lane now. */
size_t workers_waiting(struct workers *workers, enum workers_lane lane);

/* Finishes what is queued, including what that queues, then ends the threads; from then on all work is refused. Never from a worker.
 * Where a loop may submit, workers are stopped first and go after the loop: what is left on it may still ask for one. */
void workers_stop(struct workers *workers);
void workers_free(struct workers *workers);
DEFINE_AUTOPTR(workers)
