/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes use: processor time, and memory over time. Private to the core.
 * Threads: any but loops; measure_tick: the monitor.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"
#include "store/usage.h"

/* Measures when it is time to; does not block. On the monitor. */
void measure_tick(struct sandbox *sandbox, int64_t now);

/* The last time, before the box goes. The caller has its box_lock. *out is for measure_put. */
struct measure {
    struct usage_total more;
    int64_t counted_cpu_ms;
    int64_t now;
};
int measure_take(struct sandbox *sandbox, struct measure *out, struct error *err);
int measure_put(struct sandbox *sandbox, const struct measure *measure, struct error *err);
