/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up every right a process can give up, for good: ids, groups, capabilities, namespaces, the file system, new
 * files and programs, all system calls but a few. Needs root.
 * Threads: one thread; the whole program.
 */
#pragma once
#include "base/error.h"
#include "base/filter.h"

#include <stdint.h>

/* What is left. */
struct confinement {
    uint64_t memory_bytes; // of address space, libraries and all
    uint64_t cpu_seconds;
    uint64_t file_bytes; // of a file that it writes
    uint64_t max_files;  // numbers that it may still be handed; 0: none
    const struct filter_rule *rules;
    size_t n_rules;
};

/* Closes all files but 0 to 2 first. On failure some rights may be gone and others not: exit. */
int confine(const struct confinement *left, struct error *err);
