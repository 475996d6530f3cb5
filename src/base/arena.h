/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is taken piece by piece and given back all at once: for what lives as long as a request or a document.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"

#include <stddef.h>

struct arena {
    struct arena_block *blocks; // NULL: nothing was taken yet
    size_t used;                // bytes taken so far
};

/* Zeroed, aligned for anything; cannot fail. */
void *arena_alloc(struct arena *arena, size_t size);
/* A copy of these bytes, with a NUL behind them. */
char *arena_copy(struct arena *arena, const char *text, size_t length);
/* Gives everything back; the arena can be used again. */
void arena_clear(struct arena *arena);
#define autoarena __attribute__((cleanup(arena_clear))) struct arena
