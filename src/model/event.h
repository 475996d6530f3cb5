/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which events of a sandbox are wanted.
 * Threads: plain values.
 */
#pragma once
#include "model/page.h"

#include <stdbool.h>
#include <stdint.h>

struct event_filter {
    const char *sandbox_id;
    int64_t after; // only higher numbers
    bool is_descending;
    struct page page;
};
