/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes a request's body as it comes, on workers of the slow lane, one piece after the other; while nothing comes, no thread
 * waits for it.
 * Threads: any; the sink is called on workers.
 */
#pragma once
#include "base/error.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/body.h"

#include <stddef.h>
#include <stdint.h>

/* Both are called on workers, never at once. */
struct drain_sink {
    /* Failing ends it. */
    int (*on_bytes)(void *data, const void *bytes, size_t length, struct error *err);
    /* The last of all, exactly once. `err` is NULL at the end of the body; else what on_bytes said, or why no more comes, as
     * body_read tells it (ERROR_GONE also once the request has been answered). */
    void (*on_end)(void *data, const struct error *err);
};

struct drain_request {
    struct loop *loop; // of the body
    struct workers *workers;
    struct turns_owner owner; // whose turns these are
    struct body *body;        // borrowed; held until on_end
    const struct drain_sink *sink;
    void *data;
    /* How long to wait for the next byte before it fails; and for all of them, beside a second for each 16 KiB (ERROR_SLOW). 0: for
     * ever. */
    uint64_t patience_ms;
};

/* Any thread. Ends by itself; to end it early, answer the request. */
void drain_start(const struct drain_request *request);
