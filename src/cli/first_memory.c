/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first blocks of memory of program burrow, from its own .bss. musl's allocator maps pages for each new size of block and unmaps them with the
 * last one; a command like `list` lives for less than a millisecond, a third of which that took. So blocks come from here until the room is used up,
 * each once and never again, and from the allocator afterwards: what runs for long has all its blocks from there.
 * The linker puts these in the place of malloc and its like (--wrap, src/meson.build). Any thread may call.
 */
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ROOM ((size_t)192 << 10)
#define LARGE                                                                                      \
    ((size_t)16                                                                                    \
     << 10) // from this size on blocks come from the room's end: what is small stays on few pages
#define LARGEST ((size_t)80 << 10) // below half of the room
#define HEAD ((size_t)16)          // in front of a block: its size

// The names are the linker's.
void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

static _Alignas(16) char room[ROOM];
static _Atomic size_t n_small,
    n_large; // bytes that were asked for from the beginning, and from the end

/* Zeroed, as it was never used; NULL where there is no room. */
static void *take_room(size_t size)
{
    size_t whole = (size + HEAD + 15) & ~(size_t)15;
    char *head = NULL;

    if (size > LARGEST)
        return NULL;
    // Each has its half, so that no two counters have to be looked at at once; where one is used up, its counter grows on all the same.
    if (size < LARGE) {
        size_t at = atomic_fetch_add(&n_small, whole);
        head = at <= ROOM / 2 - whole ? room + at : NULL;
    } else {
        size_t at = atomic_fetch_add(&n_large, whole);
        head = at <= ROOM / 2 - whole ? room + ROOM - whole - at : NULL;
    }
    if (!head)
        return NULL;
    memcpy(head, &size, sizeof size);
    return head + HEAD;
}

static int is_of_room(const void *block)
{
    return (uintptr_t)block - (uintptr_t)room < ROOM;
}

void *__wrap_malloc(size_t size)
{
    void *block = take_room(size);

    return block ? block : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    size_t bytes = 0;
    void *block = __builtin_mul_overflow(count, size, &bytes) ? NULL : take_room(bytes);

    return block ? block : __real_calloc(count, size);
}

void *__wrap_realloc(void *block, size_t size)
{
    size_t before;

    if (!block)
        return __wrap_malloc(size);
    if (!is_of_room(block))
        return __real_realloc(block, size);
    memcpy(&before, (char *)block - HEAD, sizeof before);
    if (size <= before)
        return block;
    void *larger = __wrap_malloc(size);
    return larger ? memcpy(larger, block, before) : NULL;
}

void __wrap_free(void *block)
{
    if (!is_of_room(block))
        __real_free(block);
}
