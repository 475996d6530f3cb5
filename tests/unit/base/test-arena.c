/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include "test.h"

#include <stdint.h>
#include <string.h>

static bool is_zero(const unsigned char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        if (bytes[i])
            return false;
    }
    return true;
}

TEST(pieces_are_zeroed_aligned_and_do_not_touch_each_other)
{
    autoarena arena = {0};
    unsigned char *pieces[400];

    for (size_t i = 0; i < 400; i++) {
        pieces[i] = arena_alloc(&arena, i);
        CHECK((uintptr_t)pieces[i] % 16 == 0);
        CHECK(is_zero(pieces[i], i));
        memset(pieces[i], (int)(i % 255 + 1), i);
    }
    for (size_t i = 0; i < 400; i++) {
        for (size_t at = 0; at < i; at++)
            CHECK_INT(pieces[i][at], i % 255 + 1);
    }
    CHECK(arena.used >= 400 * 399 / 2);
}

TEST(a_large_piece_has_its_room_and_small_ones_follow)
{
    autoarena arena = {0};
    unsigned char *large = arena_alloc(&arena, 1 << 20);

    memset(large, 0xff, 1 << 20);
    CHECK_STR(arena_copy(&arena, "sandboxes", 7), "sandbox");
    CHECK_INT(large[(1 << 20) - 1], 0xff);
}

TEST(a_cleared_arena_can_be_used_again)
{
    autoarena arena = {0};

    (void)arena_alloc(&arena, 100);
    arena_clear(&arena);
    CHECK_INT(arena.used, 0);
    CHECK_STR(arena_copy(&arena, "again", 5), "again");
}
