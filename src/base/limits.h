/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a sandbox may take of the machine.
 * Threads: plain values.
 */
#pragma once
#include <stdint.h>

/* 0 is no limit, or in a request: the server's default. */
struct limits {
    int64_t memory_bytes;
    int64_t cpu_millicores;
    int64_t disk_bytes;
    int64_t max_processes;
};
