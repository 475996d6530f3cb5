/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events are wanted.
 * Threads: plain values.
 */
#pragma once
#include "model/owner.h"
#include "model/page.h"

#include <stdbool.h>
#include <stdint.h>

/* Of one sandbox. */
struct event_filter {
    const char *sandbox_id;
    int64_t after; // only higher numbers
    bool is_descending;
    struct page page;
};

/* Which of all events are wanted. */
struct event_scan {
    struct owner owner;     // who may see them
    const char *sandbox_id; // NULL: of all, and of none
    int64_t after;          // only higher serials
    int64_t scanned;        // so many are looked at
};
