/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/pattern.c and src/base/pattern_parse.c. */
#include "base/clock.h"
#include "base/pattern.h"
#include "test.h"

static bool matches_as(const char *text, enum pattern_kind kind, bool ignores_case,
                       const char *subject)
{
    autoptr(pattern) pattern = NULL;
    struct error err = {0};

    if (pattern_new(text, kind, ignores_case, &pattern, &err) < 0) {
        printf("# '%s': %s\n", text, err.text);
        return false;
    }
    return pattern_matches(pattern, subject, strlen(subject));
}

static bool matches(const char *expression, const char *subject)
{
    return matches_as(expression, PATTERN_EXPRESSION, false, subject);
}

static bool globs(const char *glob, const char *path)
{
    return matches_as(glob, PATTERN_GLOB, false, path);
}

TEST(expressions_match_what_posix_says)
{
    static const struct {
        const char *expression, *subject;
        bool is_match;
    } rows[] = {
        {"abc", "xxabcxx", true},
        {"abc", "ab", false},
        {"^abc$", "abc", true},
        {"^abc$", "xabc", false},
        {"a.c", "abc", true},
        {"a.c", "ac", false},
        {"^a.c$",
         "a\xc3\xa4"
         "c",
         true},
        {"^a..c$",
         "a\xc3\xa4"
         "c",
         false},
        {"a*b", "b", true},
        {"^a+b$", "aaab", true},
        {"^a+b$", "b", false},
        {"^(ab)?c$", "c", true},
        {"^(ab)?c$", "abc", true},
        {"^(a|bc|)d$", "bcd", true},
        {"^(a|bc|)d$", "d", true},
        {"^(a|bc)d$", "d", false},
        {"^a{2,3}$", "a", false},
        {"^a{2,3}$", "aa", true},
        {"^a{2,3}$", "aaa", true},
        {"^a{2,3}$", "aaaa", false},
        {"^a{2,}$", "aaaaaa", true},
        {"^a{0}b$", "b", true},
        {"^(ab){2}$", "abab", true},
        {"^(a{2}b){2}$", "aabaab", true},
        {"[a-c]x", "bx", true},
        {"[^a-c]x", "bx", false},
        {"[^a-c]x", "dx", true},
        {"^[^a]x$", "\xc3\xa4x", true},
        {"[]a]", "]", true},
        {"[a-]", "-", true},
        {"[[:digit:]]+z", "12z", true},
        {"^[[:alpha:]_]+$", "a_b", true},
        {"\\bfoo\\b", "a foo b", true},
        {"\\bfoo\\b", "afoo", false},
        {"\\<is\\>", "this is", true},
        {"\\<is\\>", "this", false},
        {"\\Boo\\b", "foo", true},
        {"^\\w+\\s\\d+$", "ab 12", true},
        {"^\\S+$", "a b", false},
        {"\\.c$", "x.c", true},
        {"\\.c$", "xxc", false},
        {"a|b|c", "c", true},
        {"(a*)*b", "aaab", true},
        {"(a|a)*c", "aaac", true},
        {"foo{", "foo{ bar", true},
        {"^$", "", true},
        {"^$", "x", false},
        {"x*", "", true},
        {"(?:ab)+", "abab", true},
        {"a\\|b", "a|b", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool is_match = matches(rows[i].expression, rows[i].subject);
        if (is_match != rows[i].is_match)
            printf("# '%s' and '%s'\n", rows[i].expression, rows[i].subject);
        CHECK(is_match == rows[i].is_match);
    }
}

TEST(globs_match_whole_paths)
{
    static const struct {
        const char *glob, *path;
        bool is_match;
    } rows[] = {
        {"*.c", "a.c", true},
        {"*.c", "x/a.c", false},
        {"**/*.c", "a.c", true},
        {"**/*.c", "x/y/a.c", true},
        {"src/**", "src/a/b", true},
        {"src/**", "srcs", false},
        {"src/**/b.c", "src/b.c", true},
        {"src/**/b.c", "src/x/y/b.c", true},
        {"src/**/b.c", "src/xb.c", false},
        {"?.c", "\xc3\xa4.c", true},
        {"?", "/", false},
        {"*.{ts,tsx}", "a.tsx", true},
        {"*.{ts,tsx}", "a.js", false},
        {"{a,b/**}/c", "b/x/y/c", true},
        {"[a-c]*", "box", true},
        {"[!a-c]*", "box", false},
        {"\\*", "*", true},
        {"\\*", "x", false},
        {"*", ".hidden", true},
        {"a,b", "a,b", true},
        {"a+(b)", "a+(b)", true},
        {"*", "two\nlines", true},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool is_match = globs(rows[i].glob, rows[i].path);
        if (is_match != rows[i].is_match)
            printf("# '%s' and '%s'\n", rows[i].glob, rows[i].path);
        CHECK(is_match == rows[i].is_match);
    }
}

TEST(what_cannot_match_any_more_is_known_by_its_beginning)
{
    autoptr(pattern) pattern = NULL;
    struct error err = {0};

    CHECK_OK(pattern_new("src/*/a.c", PATTERN_GLOB, false, &pattern, &err), err);
    CHECK(pattern_may_begin(pattern, "src/", 4));
    CHECK(pattern_may_begin(pattern, "src/x/", 6));
    CHECK(!pattern_may_begin(pattern, "lib/", 4));
    CHECK(!pattern_may_begin(pattern, "src/x/y/", 8));
}

TEST(fixed_texts_and_case)
{
    CHECK(matches_as("a.c(", PATTERN_FIXED, false, "xa.c(y"));
    CHECK(!matches_as("a.c", PATTERN_FIXED, false, "abc"));
    CHECK(matches_as("HeLLo", PATTERN_FIXED, true, "say hEllO"));
    CHECK(matches_as("[^a]b", PATTERN_EXPRESSION, true, "cB"));
    CHECK(!matches_as("[^a]b", PATTERN_EXPRESSION, true, "Ab"));
}

TEST(wrong_patterns_say_what_is_wrong)
{
    static const struct {
        const char *text, *why;
        enum pattern_kind kind;
    } rows[] = {
        {"", "the pattern is empty", PATTERN_FIXED},
        {"a(b", "the pattern is wrong at byte 4: ')' is missing", PATTERN_EXPRESSION},
        {"a)b", "the pattern is wrong at byte 2: ')' without a '('", PATTERN_EXPRESSION},
        {"*a", "the pattern is wrong at byte 1: there is nothing to repeat", PATTERN_EXPRESSION},
        {"[a", "the pattern is wrong at byte 3: ']' is missing", PATTERN_EXPRESSION},
        {"[b-a]", "the pattern is wrong at byte 5: the range in brackets goes backwards",
         PATTERN_EXPRESSION},
        {"[[:nope:]]", "the pattern is wrong at byte 2: there is no such class of characters",
         PATTERN_EXPRESSION},
        {"(a)\\1", "the pattern is wrong at byte 4: references to groups are not supported",
         PATTERN_EXPRESSION},
        {"a{3,2}",
         "the pattern is wrong at byte 6: the second number in '{}' is smaller than the first",
         PATTERN_EXPRESSION},
        {"a{2000}", "the pattern is wrong at byte 6: nothing is repeated more than 1000 times",
         PATTERN_EXPRESSION},
        {"((a{100}){100}){100}", "the pattern is too large: it repeats too much",
         PATTERN_EXPRESSION},
        {"a\\", "the pattern is wrong at byte 2: nothing follows the last '\\'",
         PATTERN_EXPRESSION},
        {"{a,b", "the pattern is wrong at byte 5: '}' is missing", PATTERN_GLOB},
    };

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(pattern) pattern = NULL;
        struct error err = {0};
        CHECK(pattern_new(rows[i].text, rows[i].kind, false, &pattern, &err) < 0);
        CHECK_STR(err.text, rows[i].why);
        CHECK_INT(err.reason, ERROR_INVALID);
    }
}

TEST(expressions_that_explode_elsewhere_end_here)
{
    static const char *const expressions[] = {"(a*)*$b", "(a|aa)+$b", "(.*)(.*)(.*)(.*)x$",
                                              "(a{0,30}){0,30}b", "((a+)+)+b"};
    char text[20001];

    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(expressions); i++)
        CHECK(!matches(expressions[i], text)); // others would take longer than the universe lasts
}

TEST(a_line_in_pieces_is_a_line)
{
    autoptr(pattern) pattern = NULL;
    struct error err = {0};
    size_t used = 0, start = 0;

    CHECK_OK(pattern_new("wor[kl]d$", PATTERN_EXPRESSION, false, &pattern, &err), err);
    pattern_begin(pattern);
    CHECK(!pattern_feed(pattern, "hello wo", 8, &used));
    CHECK(!pattern_feed(pattern, "rld", 3, &used));
    CHECK(pattern_end(pattern));
    pattern_begin(pattern);
    CHECK(!pattern_feed(pattern, "world!", 6, &used));
    CHECK(!pattern_end(pattern));
    CHECK(pattern_locate(pattern, "hello world", 11, &start));
    CHECK_INT(start, 6);
}

/* More states than are kept: they are forgotten and met again. */
TEST(patterns_of_many_states_stay_right)
{
    autoptr(pattern) pattern = NULL;
    struct error err = {0};
    char text[5000];
    unsigned seed = 1;

    CHECK_OK(pattern_new("^(a|b)*a(a|b){12}$", PATTERN_EXPRESSION, false, &pattern, &err), err);
    for (int round = 0; round < 20; round++) {
        for (size_t i = 0; i < sizeof text; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = seed >> 20 & 1 ? 'a' : 'b';
        }
        CHECK(pattern_matches(pattern, text, sizeof text) == (text[sizeof text - 13] == 'a'));
    }
}
