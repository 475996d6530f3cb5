/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kind of thread is calling: its name for people, whether others go first, and whether it runs a loop, which never waits. Each
 * speaks of the calling thread.
 * Threads: any.
 */
#pragma once
#include <stdbool.h>

/* What ps -L, top -H and debuggers show; cut to 15 bytes. Not for the main thread, whose name is the program's. */
void thread_set_name(const char *name);

/*
 * From here on whoever wakes beside it has the processor at once, and not when its turn is over; it gets no less of it for that. For work that
 * nobody waits for. Best effort: kernels before 6.12 know no turns of their own.
 */
void thread_give_way(void);

/* From here on, or no longer, this thread runs a loop: what waits for a disk or a lock may assert(!thread_is_loop()). */
void thread_mark_loop(bool is_loop);
bool thread_is_loop(void);
