/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A bounded pool of threads for work that blocks, in two lanes with threads of their own, so that
 * long work never keeps a short read waiting.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <limits.h>
#include <stddef.h>

enum workers_lane {
    WORKERS_QUICK, // reads, small writes: milliseconds
    WORKERS_SLOW,  // builds, uploads, anything that takes as long as it takes
    WORKERS_LANES
};

#define WORKERS_UNBOUNDED UINT_MAX

struct workers_settings {
    struct {
        unsigned threads;
        unsigned queue;   // how many may wait, beside those that run; WORKERS_UNBOUNDED: any number
        const char *name; // of its threads, which are numbered where there are several; a literal
    } lane[WORKERS_LANES];
};

struct workers;

/* Starts all threads, with all signals blocked. */
int workers_new(const struct workers_settings *settings, struct workers **out, struct error *err);

/* Queues fn(data); in a lane, work starts in the order it came. A full queue is ERROR_LIMIT, reason
 * "full", at once: data stays the caller's then. */
int workers_submit(struct workers *workers, enum workers_lane lane, void (*fn)(void *data),
                   void *data, struct error *err);

/* The same in a lane without a bound, where it cannot fail. */
void workers_run(struct workers *workers, enum workers_lane lane, void (*fn)(void *data),
                 void *data);

/* How many wait in a lane now. */
size_t workers_waiting(struct workers *workers, enum workers_lane lane);

/* Finishes what is queued, including what that queues, then ends the threads. Never from a worker.
 */
void workers_free(struct workers *workers);
DEFINE_AUTOPTR(workers)
