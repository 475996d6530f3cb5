/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves a box its processor. A box of fewer processors than the machine has is bound to them, and nobody else is kept off: what was just started in
 * it would wait there until the thread that asked for it has nothing more to do.
 * Threads: any; box_step_aside and box_aside_end speak of the calling thread.
 */
#pragma once
#include <sched.h>
#include <stdbool.h>

struct box;

struct box_aside {
    bool is_moved;
    // Where the thread may run again: what it chose itself (taskset(1)), else all there are and will be.
    cpu_set_t after;
};

/* Which processors a box is bound to; false: it is not known. Does not block. The caller holds the box. */
bool box_processors(const struct box *box, cpu_set_t *out);

/*
 * Where the thread is on one of these processors, moves it to the others that it may use, if there are any. Never fails. May wait until one of the
 * others is free, so the caller holds no lock. Until box_aside_end it starts neither threads nor boxes: they would be kept to the others for good.
 */
void box_step_aside(const cpu_set_t *bound, struct box_aside *aside);

/* The thread may run again where it could before; does nothing where it was not moved. */
void box_aside_end(struct box_aside *aside);
