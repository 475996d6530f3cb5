/* SPDX-License-Identifier: Apache-2.0 */
/* Memory given back all at once; see arena.h. */
#include "base/arena.h"

#include "base/mem.h"

#include <string.h>

#define FIRST_SIZE 960 // of what most calls need; the C library keeps blocks of up to 1 KiB at hand
#define BLOCK_SIZE 8000
#define LARGE_USE ((size_t)1 << 20)   // from here on blocks are so large that the C library
#define LARGE_BLOCK ((size_t)2 << 20) // maps each by itself, and unmaps it when it is freed

struct arena_block {
    struct arena_block *next;
    size_t used, size;
    _Alignas(16) char data[];
};

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t rounded = (size + 15) & ~(size_t)15;
    struct arena_block *block = arena->blocks;

    if (!block || block->size - block->used < rounded) {
        size_t usual = !block ? FIRST_SIZE : arena->used < LARGE_USE ? BLOCK_SIZE : LARGE_BLOCK;
        size_t room = rounded > usual ? rounded : usual;
        block = xcalloc(1, sizeof *block + room);
        block->size = room;
        block->next = arena->blocks;
        arena->blocks = block;
    }
    void *memory = block->data + block->used;
    block->used += rounded;
    arena->used += rounded;
    return memory;
}

char *arena_copy(struct arena *arena, const char *text, size_t length)
{
    char *copy = arena_alloc(arena, length + 1);

    memcpy(copy, text, length);
    return copy;
}

void arena_clear(struct arena *arena)
{
    while (arena->blocks) {
        struct arena_block *block = arena->blocks;
        arena->blocks = block->next;
        free(block);
    }
    arena->used = 0;
}
