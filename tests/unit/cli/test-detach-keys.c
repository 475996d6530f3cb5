/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/detach_keys.c: the keys that leave are found in what is typed, and no other key is lost or held for good. */
#include "base/auto.h"
#include "cli/detach_keys.h"
#include "test.h"

/* In one piece and byte by byte; true: they were typed. */
static bool check_taken(const struct detach_keys *keys, const char *typed, const char *want)
{
    bool has_left[2] = {false, false};

    for (unsigned one = 0; one < 2; one++) {
        struct detach_keys now = *keys;
        char to[200];
        size_t used = 0, length = strlen(typed), step = one ? 1 : length;
        for (size_t at = 0; at < length && !has_left[one]; at += step) {
            size_t got = 0;
            has_left[one] = detach_keys_take(&now, typed + at, step, to + used, &got);
            used += got;
        }
        if (!has_left[one])
            used += detach_keys_hand_on(&now, to + used);
        to[used] = '\0';
        CHECK_STR(to, want);
    }
    CHECK(has_left[0] == has_left[1]);
    return has_left[0];
}

TEST(the_usual_keys_leave)
{
    struct detach_keys keys;

    detach_keys_init(&keys);
    CHECK(check_taken(&keys, "ls\020\021lost", "ls"));
    CHECK(check_taken(&keys, "\020\020\021", "\020"));
    CHECK(!check_taken(&keys, "\020a\021\020", "\020a\021\020"));
    CHECK(!check_taken(&keys, "\021\020", "\021\020"));
}

TEST(a_key_that_may_be_the_first_is_held_until_it_is_handed_on)
{
    char to[DETACH_KEYS_MOST + 1];
    struct detach_keys keys;
    size_t length = 1;

    detach_keys_init(&keys);
    CHECK(!detach_keys_take(&keys, "\020", 1, to, &length));
    CHECK_INT(length, 0);
    CHECK_INT(keys.n_held, 1);
    CHECK_INT(detach_keys_hand_on(&keys, to), 1);
    CHECK_INT(to[0], 020);
    CHECK(!detach_keys_take(&keys, "\021", 1, to, &length));
    CHECK_INT(length, 1);
}

TEST(keys_that_repeat_are_found_behind_a_false_beginning)
{
    struct detach_keys keys = {.keys = "aab", .count = 3};

    CHECK(check_taken(&keys, "aaab", "a"));
    CHECK(check_taken(&keys, "aacaab", "aac"));
    CHECK(!check_taken(&keys, "aaca", "aaca"));
}
