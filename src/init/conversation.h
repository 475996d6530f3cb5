/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts a thread of PID 1 for each conversation about files.
 * Threads: one thread; PID 1's loop.
 */
#pragma once
#include <stdbool.h>

/* Takes the socket. `base` is what relative paths start from ("": the user's home). Refusal closes the socket. */
void conversation_start(int sock, const char *user, const char *base, bool drops_set_ids);
