/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox uses at this moment, and used lately.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"

struct sandboxes;

struct sandbox_gauge {
    int64_t now;          // on the wall clock, in ms
    int64_t cpu_us;       // since its box was made
    double cpu_percent;   // of one processor, over a moment, or since the one before
    int64_t memory_bytes; // 0 with no box, like those before
    int64_t disk_bytes;   // that its files take
    int64_t egress_bytes; // sent since its box was made; not among those of the past
};

/* Looks once: cpu_percent is 0. ERROR_NOT_FOUND, ERROR_ENDED, noun "sandbox". */
int sandbox_gauge_once(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                       struct sandbox_gauge *out, struct error *err);
/* Looks twice, a moment apart, for the use of processors. Fails as the one before does. */
int sandbox_gauge(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                  struct sandbox_gauge *out, struct error *err);

struct sandbox_gauges {
    struct sandbox_gauge *items;
    size_t count;
};
void sandbox_gauges_clear(struct sandbox_gauges *gauges);
/* Those of the past that this server still has, oldest first: of times when something ran in it, some seconds apart (gauge_history.h). */
int sandbox_gauges(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct sandbox_gauges *out, struct error *err);
