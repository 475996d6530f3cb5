/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/suggest.c. */
#include "base/auto.h"
#include "base/suggest.h"
#include "test.h"

static const char *nearest(const char *wanted)
{
    static const char *const known[] = {"run", "runtime", "doctor", "help", "version"};
    struct suggestion near = {.wanted = wanted};
    for (size_t i = 0; i < ARRAY_SIZE(known); i++)
        suggestion_consider(&near, known[i]);
    return near.nearest;
}

TEST(misspelled_words_find_the_nearest_known_one)
{
    CHECK_STR(nearest("rnu"), "run");
    CHECK_STR(nearest("rum"), "run");
    CHECK_STR(nearest("runtimes"), "runtime");
    CHECK_STR(nearest("docter"), "doctor");
    CHECK_STR(nearest("verison"), "version");
}

TEST(words_that_resemble_nothing_get_no_suggestion)
{
    CHECK(nearest("") == NULL);
    CHECK(nearest("x") == NULL);
    CHECK(nearest("kubernetes") == NULL);
    CHECK(nearest("a-word-that-is-much-longer-than-any-command-could-ever-be") == NULL);
}
