/* SPDX-License-Identifier: Apache-2.0 */
/* What sandboxes use: processor time, and memory over time. Private to the core. */
#pragma once
#include "core/sandbox/live.h"
#include "store/usage.h"

/* Measures when it is time to; does not block. On the keeper. */
void measure_look_after(struct live *live, int64_t now);

/* The last time, before the box goes. The caller has its box_lock. *out is for measure_put. */
struct measure {
    struct usage_total more;
    int64_t counted_cpu_ms;
    int64_t now;
};
int measure_take(struct live *live, struct measure *out, struct error *err);
int measure_put(struct live *live, const struct measure *measure, struct error *err);
