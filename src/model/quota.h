/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much there may be of what costs something, for one key or one organisation.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

/* As a bound, 0 is none. */
struct quota {
    int64_t sandboxes;    // alive at once
    int64_t memory_bytes; // these four: the limits of living sandboxes, added up
    int64_t cpu_millicores;
    int64_t disk_bytes; // and what snapshots and checkpoints take
    int64_t processes;
    int64_t runs_per_day; // commands and runs of code since midnight UTC
};
