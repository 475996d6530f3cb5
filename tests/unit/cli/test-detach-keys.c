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
        char to[2 * DETACH_KEYS_HELD];
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

static struct detach_keys usual(void)
{
    struct detach_keys keys = {0};
    struct error err = {0};

    CHECK_OK(detach_keys_parse(DETACH_KEYS_USUAL, &keys, &err), err);
    return keys;
}

TEST(the_usual_keys_leave)
{
    struct detach_keys keys = usual();

    CHECK(check_taken(&keys, "ls\020\021lost", "ls"));
    CHECK(check_taken(&keys, "\020\020\021", "\020"));
    CHECK(!check_taken(&keys, "\020a\021\020", "\020a\021\020"));
    CHECK(!check_taken(&keys, "\021\020", "\021\020"));
}

TEST(a_key_that_may_be_the_first_is_held_until_it_is_handed_on)
{
    char to[DETACH_KEYS_HELD];
    struct detach_keys keys = usual();
    size_t length = 1;

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

/* In one piece, as terminals send them. */
static bool check_spelled(const char *typed, const char *want)
{
    struct detach_keys keys = usual();
    char to[2 * DETACH_KEYS_HELD];
    size_t used;
    bool has_left = detach_keys_take(&keys, typed, strlen(typed), to, &used);

    if (!has_left)
        used += detach_keys_hand_on(&keys, to + used);
    to[used] = '\0';
    CHECK_STR(to, want);
    return has_left;
}

TEST(keys_leave_however_a_terminal_spells_them)
{
    CHECK(check_spelled("ls\033[112;5u\033[113;5ulost", "ls"));
    CHECK(check_spelled("\033[27;5;112~\033[27;5;113~", ""));
    CHECK(check_spelled("\020\033[113;5u", ""));
    CHECK(check_spelled("\033[112:80;133:1u\033[112;133:3u\033[113;197u",
                        "")); // with locks, and released
    CHECK(
        check_spelled("\033[112;5u\033[57442;1:3u\033[57442;5u\033[113;5u", "")); // and Ctrl again
    CHECK(!check_spelled("\033[112;5u\033[112;5:3ux", "\033[112;5u\033[112;5:3ux"));
    CHECK(!check_spelled("\033[112;5ux\033[113;5u", "\033[112;5ux\033[113;5u"));
    CHECK(!check_spelled("\033[112;6u\033[113;5u", "\033[112;6u\033[113;5u"));
    CHECK(!check_spelled("\033[112;3u\033[3~\033[27;5~\033[", "\033[112;3u\033[3~\033[27;5~\033["));
    CHECK(check_spelled("\033[112;5u\033[112;5u\033[113;5u", "\033[112;5u"));
}

static void check_read(const char *text, const char *keys, const char *name)
{
    struct detach_keys got = {0};
    struct error err = {0};
    char named[DETACH_KEYS_TEXT];

    CHECK_OK(detach_keys_parse(text, &got, &err), err);
    CHECK_INT(got.count, strlen(keys));
    CHECK(memcmp(got.keys, keys, got.count) == 0);
    CHECK_STR(detach_keys_name(&got, named), name);
}

TEST(keys_are_written_as_docker_has_them)
{
    check_read("ctrl-p,ctrl-q", "\020\021", "Ctrl-P Ctrl-Q");
    check_read("ctrl-]", "\035", "Ctrl-]");
    check_read("Ctrl-A,d", "\001d", "Ctrl-A d");
    check_read("~,.", "~.", "~ .");
    check_read("ctrl-[,ctrl-\\,ctrl-^,ctrl-_", "\033\034\036\037", "Ctrl-[ Ctrl-\\ Ctrl-^ Ctrl-_");
    check_read("a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,ctrl-z", "abcdefghijklmno\032",
               "a b c d e f g h i j k l m n o Ctrl-Z");
}

TEST(what_is_no_key_is_refused_with_the_way_to_write_it)
{
    static const char *const wrong[] = {"",
                                        ",",
                                        "a,",
                                        ",a",
                                        "ab",
                                        "ctrl-",
                                        "ctrl-aa",
                                        "ctrl-1",
                                        "ctrl- ",
                                        "ctrl p",
                                        "\x10",
                                        "\xc3\xa4",
                                        "a b",
                                        "strl-a",
                                        "ctrl-,",
                                        "a,,b",
                                        "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q"};

    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
        struct detach_keys keys = {.count = 1};
        struct error err = {0};
        CHECK(detach_keys_parse(wrong[i], &keys, &err) < 0);
        CHECK(keys.count == 1 &&
              (strstr(err.text, "ctrl-p,ctrl-q") || strstr(err.text, "at most 16")));
    }
}
