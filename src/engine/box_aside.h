/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leaves a box its processor. A box of fewer processors than the machine has is bound to them, and nobody else is kept off: what was just started in
 * it would wait there until the thread that asked for it has nothing more to do.
 * Threads: any; both calls speak of the calling thread.
 */
#pragma once
#include <sched.h>
#include <stdbool.h>

struct box;

struct box_aside {
    bool is_moved;
    cpu_set_t before; // where the thread could run
};

/* Where the thread is on a processor that the box is bound to, moves it to the others that it may use, if there are any. Does not block, and never fails. The caller holds the box. */
void box_step_aside(const struct box *box, struct box_aside *aside);

/* The thread may run again where it could before. Not needed twice. */
void box_aside_end(struct box_aside *aside);
