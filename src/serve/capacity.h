/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many sandboxes the limits of this process and this machine allow.
 * Threads: any; capacity_raise changes the process.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Raises the limit of open files as far as it may be. One that is set to less than a thousand is meant so. */
void capacity_raise(void);

enum capacity_limit {
    CAPACITY_OPEN_FILES,
    CAPACITY_PROCESSES,
    CAPACITY_MEMORY,
    CAPACITY_NAMESPACES,
    CAPACITY_PLACES, // slots: ranges of user ids
    CAPACITY_LIMITS
};

struct capacity {
    uint64_t allowed[CAPACITY_LIMITS]; // sandboxes, by each
    enum capacity_limit least;
};

/* Of what all sandboxes together may have (0: what the machine has). A limit that cannot be read allows any number. */
void capacity_measure(uint64_t boxes_memory_bytes, uint64_t boxes_processes, struct capacity *out);

/* Logs it: a warning, with a remedy, when more are asked for than there can be, and `is_asked`. */
void capacity_log(const struct capacity *capacity, uint64_t wanted, bool is_asked);
