/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kind of thread is calling: its name for people, and whether it runs a loop, which never waits. Each speaks of the calling
 * thread.
 * Threads: any.
 */
#pragma once
#include <stdbool.h>

/* What ps -L, top -H and debuggers show; cut to 15 bytes. Not for the main thread, whose name is the program's. */
void thread_set_name(const char *name);

/* From here on, or no longer, this thread runs a loop: what waits for a disk or a lock may assert(!thread_is_loop()). */
void thread_mark_loop(bool is_loop);
bool thread_is_loop(void);
