/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a sandbox: what it gets when nothing is asked for, and the least it can be given. The same for `burrow run` and for the
 * server.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdint.h>

/* 0 is no limit, or in a request: the server's default. */
struct limits {
    int64_t memory_bytes;
    int64_t cpu_millicores;
    int64_t disk_bytes;
    int64_t max_processes;
};

#define LIMITS_MEMORY_BYTES (INT64_C(512) << 20)
#define LIMITS_CPU_MILLICORES 1000
#define LIMITS_DISK_BYTES (INT64_C(2) << 30)
#define LIMITS_PROCESSES 512
#define LIMITS_OUTPUT_BYTES (INT64_C(64) << 20) // kept of each output of a command

/* ERROR_INVALID, naming the limit and the least it can be, for one that no sandbox could start with. 0 asks for none and is fine. */
int limits_check(const struct limits *limits, struct error *err);

/* What was asked for, and where nothing was, the default. */
struct limits limits_or_default(const struct limits *asked, const struct limits *usual);
