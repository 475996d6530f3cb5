/* SPDX-License-Identifier: Apache-2.0 */
/* The first blocks of memory of program burrow: each is used once, and the allocator gives the rest. */
#include "test.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MORE 4096 // blocks of 64 bytes: more than there is room for

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void __wrap_free(void *block);

static _Atomic unsigned n_given, n_taken_back; // by the allocator behind it

void *__real_malloc(size_t size)
{
    n_given++;
    return malloc(size);
}

void *__real_calloc(size_t count, size_t size)
{
    n_given++;
    return calloc(count, size);
}

void *__real_realloc(void *block, size_t size)
{
    return realloc(block, size);
}

void __real_free(void *block)
{
    n_taken_back += block != NULL;
    free(block);
}

static bool is_all(const char *block, size_t size, char byte)
{
    for (size_t i = 0; i < size; i++) {
        if (block[i] != byte)
            return false;
    }
    return true;
}

// The tests run in this order, in one process: the room is used up by the second.

TEST(a_block_is_aligned_zeroed_and_never_given_twice)
{
    char *first = __wrap_malloc(100);

    CHECK((uintptr_t)first % 16 == 0);
    (void)memset(first, 'a', 100);
    __wrap_free(first);
    char *second = __wrap_calloc(10, 10);
    CHECK(second != first);
    CHECK(is_all(second, 100, 0));
    CHECK(is_all(first, 100, 'a')); // nobody else has it
    char *large = __wrap_malloc(64 << 10);
    (void)memset(large, 'b', 64 << 10);
    CHECK(is_all(second, 100, 0));
    CHECK(n_given == 0);
    __wrap_free(NULL);
    CHECK(n_taken_back == 0);
    CHECK(__wrap_calloc(SIZE_MAX / 2, 3) == NULL);
    n_given = 0;
}

static void *take_many(void *data)
{
    char **blocks = data;

    for (unsigned i = 0; i < MORE; i++) {
        blocks[i] = __wrap_malloc(64);
        (void)memset(blocks[i], (char)i, 64);
    }
    return NULL;
}

TEST(threads_share_no_block_and_what_is_too_much_comes_from_the_allocator)
{
    static char *blocks[2][MORE];
    pthread_t threads[2];
    unsigned n_foreign = 0;

    for (unsigned t = 0; t < 2; t++)
        CHECK(pthread_create(&threads[t], NULL, take_many, blocks[t]) == 0);
    for (unsigned t = 0; t < 2; t++)
        (void)pthread_join(threads[t], NULL);
    for (unsigned t = 0; t < 2; t++) {
        for (unsigned i = 0; i < MORE; i++)
            n_foreign += !is_all(blocks[t][i], 64, (char)i);
    }
    CHECK(n_foreign == 0);
    CHECK(n_given > MORE && n_given < 2 * MORE);
    for (unsigned t = 0; t < 2; t++) {
        for (unsigned i = 0; i < MORE; i++)
            __wrap_free(blocks[t][i]);
    }
    CHECK(n_taken_back == n_given); // those of the room are not the allocator's
}

TEST(a_block_that_grows_keeps_its_bytes_on_the_way_to_the_allocator)
{
    char *block =
        __wrap_realloc(NULL, 20 << 10); // of the half for large ones, where there is some room left
    unsigned before = n_given;

    CHECK(before == n_taken_back);
    (void)memset(block, 'x', 20 << 10);
    CHECK(__wrap_realloc(block, 10) == block); // smaller
    block = __wrap_realloc(block, 200 << 10);
    CHECK(n_given == before + 1);
    CHECK(is_all(block, 20 << 10, 'x'));
    block = __wrap_realloc(block, 400 << 10);
    CHECK(is_all(block, 20 << 10, 'x'));
    __wrap_free(block);
    CHECK(n_taken_back == n_given);
}
