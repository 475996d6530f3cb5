/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes use: processor time, and memory over time. Private to the core.
 * Threads: any but loops; measure_tick: the monitor.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"
#include "store/usage.h"

/*
 * Measures when it is time to; does not block. On the monitor. A sandbox in which nothing runs is measured once, soon after it was used: what
 * it uses from then on is the memory it has, and time.
 */
void measure_tick(struct sandbox *sandbox, int64_t now);
/* Whether all that has happened to it is measured, and nothing runs in it. */
bool measure_is_done(const struct sandbox *sandbox);

/* Memory over time since the last measure, as far as it is between two times of the wall clock (to 0: until now); in MiB times ms. */
int64_t measure_pending(const struct sandbox *sandbox, int64_t from, int64_t to);

/* The last time, before the box goes. The caller has its box_lock. *out is for measure_put. */
struct measure {
    struct usage_total more;
    int64_t counted_cpu_ms, counted_egress_bytes;
    int64_t since, now; // on the wall clock
    int64_t disk_bytes; // that its files take; 0: not looked at
};
int measure_take(struct sandbox *sandbox, struct measure *out, struct error *err);
int measure_put(struct sandbox *sandbox, const struct measure *measure, struct error *err);
