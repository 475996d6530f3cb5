/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of a program that has given up its rights: those of its own table, and those that every program needs for its memory and its end. All
 * others kill it.
 * Threads: one thread; the whole program.
 */
#pragma once
#include <stddef.h>

enum filter_condition {
    FILTER_ALWAYS,
    FILTER_FIRST_IS,    // argument 0 equals `value`
    FILTER_SECOND_IS,   // argument 1 does
    FILTER_THIRD_LACKS, // argument 2 has no bit of `value`
    FILTER_REFUSED,     // fails with the errno `value`: what a library tries and can do without
};

/* Of one call there may be several with FILTER_FIRST_IS or FILTER_SECOND_IS, one behind the other: any of them will do. */
struct filter_rule {
    unsigned number;
    enum filter_condition condition;
    unsigned value;
};

#define FILTER_RULES 64 // at most

/* For good; no_new_privs must be set. 0, or -1 with errno. */
int filter_load(const struct filter_rule *rules, size_t count);
