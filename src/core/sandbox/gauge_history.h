/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes have used lately, as it was measured while something ran in them: in memory alone, and bounded for each and for all. Those that were measured
 * longest ago make room for others. Private to the core.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"

#include <stddef.h>
#include <stdint.h>

#define GAUGES_EACH 256  // samples of a sandbox: of twenty minutes
#define GAUGES_ALL 65536 // there is room for, of all: 2 MiB

struct gauge_sample {
    int64_t at;           // on the wall clock, in ms
    int64_t cpu_us;       // since its box was made
    int64_t memory_bytes; // in use then
    int64_t disk_bytes;   // that its files take; when it is added, 0: as before
};

/* Of one sandbox; all zero: nothing is known. Only the functions here look into it. */
struct gauge_history {
    struct gauge_history *newer, *older;
    struct gauge_sample *samples; // a ring
    size_t room, first, count;
};

struct gauge_histories;
struct gauge_histories *gauge_histories_new(void);
void gauge_histories_free(
    struct gauge_histories *histories); // after all that are in it were forgotten
DEFINE_AUTOPTR(gauge_histories)

void gauge_history_add(struct gauge_histories *histories, struct gauge_history *history,
                       const struct gauge_sample *sample);
/* Before it goes. Any number of times. */
void gauge_history_forget(struct gauge_histories *histories, struct gauge_history *history);
/* A copy, oldest first; the caller frees it. */
size_t gauge_history_copy(struct gauge_histories *histories, const struct gauge_history *history,
                          struct gauge_sample **out);
