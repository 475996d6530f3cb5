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

/* A MiB for a millisecond is 1048.576 bytes for a second. */
static inline int64_t usage_byte_seconds(int64_t mib_ms)
{
    return (int64_t)((double)mib_ms * 1048.576);
}

/* What usage is told by. */
enum usage_group {
    USAGE_BY_DAY,
    USAGE_BY_SANDBOX, // "" where it is so old that sandboxes were added up
    USAGE_BY_KEY,     // "": no key
    USAGE_BY_LABEL,   // a set of labels as its sandboxes have them; "": none
    USAGE_GROUPS,
};

/* What one of them used. */
struct usage_group_total {
    char *id;       // NULL with USAGE_BY_DAY
    int64_t day_at; // the first day it used something
    struct usage_total used;
    int64_t disk_bytes; // the most there was at once
};
