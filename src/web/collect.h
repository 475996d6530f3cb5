/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's body as one whole in an unnamed file, however slowly it comes; no thread waits for it.
 * Threads: any; on_collected comes on a worker.
 */
#pragma once
#include "web/waiting_call.h"

struct collected {
    int fd; // closed after the call
    uint64_t size;
};

/* Called once, on a worker of the slow lane. `err` is NULL when the body is whole. */
typedef void (*on_collected)(void *data, struct collected *body, const struct error *err);

/*
 * The waiting call is borrowed until then. Past `maximum` bytes: ERROR_TOO_LARGE; no byte for a minute:
 * ERROR_INVALID; more than a minute and a second for each 16 KiB: ERROR_SLOW; ERROR_GONE when the client went away. Any thread.
 */
void collect_start(const struct waiting_call *waiting, uint64_t maximum, on_collected fn,
                   void *data);
