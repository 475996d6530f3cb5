/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/front/aionis/wide.c, canonical.c and summary.c: text and JSON as JavaScript has them. */
#include "data/json.h"
#include "front/aionis/canonical.h"
#include "front/aionis/summary.h"
#include "front/aionis/wide.h"
#include "test.h"

#define WORLD "\xf0\x9f\x8c\x8d" // two units
#define HIGH "\xed\xa0\xbc"      // its first half

static struct wide_text wide(const char *text)
{
    return (struct wide_text){text, strlen(text)};
}

TEST(units_are_those_of_utf16)
{
    CHECK_INT(wide_units(wide("")), 0);
    CHECK_INT(wide_units(wide("a\xc3\xa9\xe2\x82\xac")), 3);
    CHECK_INT(wide_units(wide(WORLD)), 2);
    CHECK_INT(wide_units(wide(HIGH "a")), 2);
}

static void check_trim(const char *text, const char *want)
{
    struct wide_text trimmed = wide_trim(wide(text));

    CHECK_INT(trimmed.length, strlen(want));
    CHECK(memcmp(trimmed.text, want, trimmed.length) == 0);
}

TEST(white_space_is_javascripts)
{
    check_trim("", "");
    check_trim(" \t\n\v\f\r", "");
    check_trim("\xc2\xa0 a b \xe3\x80\x80\xef\xbb\xbf", "a b");
    check_trim("\xe2\x80\x8a\xe2\x80\xa8\xe2\x80\xa9\xe2\x80\xaf\xe2\x81\x9f\xe1\x9a\x80x", "x");
    check_trim("\xe2\x80\x8bx\xe2\x80\x8b", "\xe2\x80\x8bx\xe2\x80\x8b"); // zero width is none
    check_trim("\x1cx\xc2\x85", "\x1cx\xc2\x85");
    CHECK(wide_is_blank(wide("\xef\xbb\xbf")));
}

static void check_squeeze(const char *text, size_t units, const char *want)
{
    autobuffer out = {0};

    wide_squeeze(wide(text), units, &out);
    CHECK_STR(out.data ? out.data : "", want);
}

TEST(runs_of_white_space_become_one_blank_and_what_is_too_long_is_cut)
{
    check_squeeze("", 5, "");
    check_squeeze("  a \n\n b\t", 5, "a b");
    check_squeeze("abcde", 5, "abcde");
    check_squeeze("abcdef", 5, "abcd...");
    check_squeeze("abc    def", 5, "abc...");
    check_squeeze("abc" WORLD, 5, "abc" WORLD);
    check_squeeze("abc" WORLD "x", 5, "abc" HIGH "...");
    check_squeeze("ab" WORLD "xx", 5, "ab" WORLD "...");
    check_squeeze("     abcde     ", 5, "abcde");
    check_squeeze("a                         b", 5, "a b");
}

static void check_decode(const char *bytes, size_t length, const char *want)
{
    autobuffer out = {0};

    wide_decode(bytes, length, &out);
    CHECK_INT(out.length, strlen(want));
    CHECK_STR(out.data ? out.data : "", want);
}

TEST(what_is_no_utf8_is_replaced)
{
    check_decode("a\xff", 2, "a\xef\xbf\xbd");
    check_decode("\xe2\x82", 2, "\xef\xbf\xbd");
    check_decode("\xe2\x82z", 3, "\xef\xbf\xbdz");
    check_decode("\xed\xa0\x80", 3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
    check_decode(WORLD, 4, WORLD);
}

TEST(a_tail_counts_bytes_and_replaces_each_that_is_stray)
{
    static const struct {
        size_t bytes;
        const char *want;
    } cases[] = {{0, ""},    {1, "\xef\xbf\xbd"}, {3, "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},
                 {4, WORLD}, {5, "a" WORLD},      {9, "a" WORLD}};

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        autobuffer out = {0};
        wide_tail(wide("a" WORLD), cases[i].bytes, &out);
        CHECK_STR(out.data ? out.data : "", cases[i].want);
    }
}

TEST(a_character_that_is_cut_at_the_end_goes)
{
    CHECK_INT(wide_whole("abc", 3), 3);
    for (size_t i = 1; i < 4; i++)
        CHECK_INT(wide_whole("a" WORLD, 1 + i), 1);
    CHECK_INT(wide_whole("a" WORLD, 5), 5);
    CHECK_INT(wide_whole("\x80\x80\x80\x80", 4), 4); // none at all: replaced, not dropped
    CHECK_INT(wide_whole("", 0), 0);
}

TEST(halves_of_pairs_are_not_handed_to_others)
{
    autobuffer out = {0};

    wide_well_formed(wide("a" HIGH WORLD), &out);
    CHECK_STR(out.data, "a\xef\xbf\xbd" WORLD);
}

TEST(numbers_are_written_as_javascript_writes_them)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"0", "0"},
        {"-0", "0"},
        {"-0.0e5", "0"},
        {"1.0", "1"},
        {"2.50", "2.5"},
        {"-1.5E3", "-1500"},
        {"1e21", "1e+21"},
        {"1e20", "100000000000000000000"},
        {"123456789012345678901234567890", "1.2345678901234568e+29"},
        {"12345678901234567890", "12345678901234567000"},
        {"9007199254740993", "9007199254740992"},
        {"0.1", "0.1"},
        {"0.30000000000000004", "0.30000000000000004"},
        {"0.000001", "0.000001"},
        {"0.0000001", "1e-7"},
        {"0.00000012345", "1.2345e-7"},
        {"1.7976931348623157e308", "1.7976931348623157e+308"},
        {"5e-324", "5e-324"},
        {"1e-999", "0"},
        {"1e999", "null"},
        {"-1e999", "null"},
        {"4.35", "4.35"},
        {"100", "100"},
        {"1e2", "100"},
    };
    char out[CANONICAL_NUMBER];

    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        CHECK_STR(canonical_number(cases[i].text, out), cases[i].want);
}

static void check_canonical(const char *text, const char *want)
{
    static const struct json_limits limits = {.takes_last = true};
    autoptr(data_document) document = NULL;
    autobuffer out = {0};
    struct error err = {0};

    CHECK_OK(json_read("", text, strlen(text), &limits, &document, &err), err);
    CHECK_OK(canonical_write(document->root, &out, &err), err);
    CHECK_STR(out.data, want);
}

TEST(objects_are_written_as_javascript_writes_them)
{
    check_canonical("{}", "{}");
    check_canonical(" { \"b\" : [ 1.0 , { } ] , \"a\" : null } ", "{\"b\":[1,{}],\"a\":null}");
    check_canonical("{\"b\":1,\"2\":2,\"10\":3,\"1\":4,\"01\":5,\"-1\":6,\"1.0\":7}",
                    "{\"1\":4,\"2\":2,\"10\":3,\"b\":1,\"01\":5,\"-1\":6,\"1.0\":7}");
    check_canonical("{\"4294967295\":1,\"4294967294\":2,\"99999999999\":3}",
                    "{\"4294967294\":2,\"4294967295\":1,\"99999999999\":3}");
    check_canonical("{\"a\":1,\"b\":2,\"a\":{\"c\":1,\"c\":2}}", "{\"a\":{\"c\":2},\"b\":2}");
    check_canonical("\"\\u007f\\u2028\\/\\u001F\\ud800\"", "\"\x7f\xe2\x80\xa8/\\u001f\\ud800\"");
}

static void check_preview(const char *result, const char *want)
{
    struct buffer text = {.data = (char *)(uintptr_t)result, .length = strlen(result)};
    const struct summary summary = {
        .standard_output = {"", 0}, .standard_error = {"", 0}, .result = &text, .exit_code = 0};
    autoptr(data_document) document = NULL;
    autobuffer out = {0};
    struct json_writer json;
    struct error err = {0};

    json_writer_init(&json, &out);
    summary_write(&json, &summary);
    CHECK_OK(json_writer_finish(&json, &err), err);
    CHECK_OK(json_read("", out.data, out.length, NULL, &document, &err), err);
    CHECK_STR(value_get(document->root, "result_preview")->text, want);
}

TEST(a_result_is_pruned_for_its_preview)
{
    check_preview("{}", "{}");
    check_preview("{\"f\":1,\"e\":2,\"d\":3,\"c\":4,\"b\":5,\"a\":6}",
                  "{\"a\":6,\"b\":5,\"c\":4,\"d\":3,\"e\":2}");
    check_preview("{\"a\":[1,2,3,4],\"b\":{\"c\":[1],\"d\":{\"e\":1}}}",
                  "{\"a\":[1,2,3],\"b\":{\"c\":\"[array(1)]\",\"d\":\"[object]\"}}");
    check_preview("{\"a\":[[1,2],{}],\"b\":\" x \\n y \"}",
                  "{\"a\":[\"[array(2)]\",\"[object]\"],\"b\":\"x y\"}");
}
