/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The loop's timers, the earliest first: a binary heap whose entries know their place.
 * Threads: the loop.
 */
#pragma once
#include "loop/loop.h"

struct timer_heap {
    struct loop_timer **at; // from 1
    size_t count;
    size_t capacity;
};

/* The earliest, or NULL. */
struct loop_timer *timer_heap_first(const struct timer_heap *heap);

/* Puts it in, or to where its when_ms belongs now. */
void timer_heap_put(struct timer_heap *heap, struct loop_timer *timer);
void timer_heap_remove(struct timer_heap *heap, struct loop_timer *timer);
void timer_heap_clear(struct timer_heap *heap);
