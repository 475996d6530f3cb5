/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes have used, added up.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

struct usage_total {
    int64_t executions;
    int64_t cpu_ms;
    int64_t memory_mib_ms; // MiB × ms
    int64_t egress_bytes;
};
