/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/data/json.c, and src/data/json_writer.c where it gives back what was read. */
#include "base/auto.h"
#include "data/json.h"
#include "data/json_writer.h"
#include "test.h"

struct text {
    const char *bytes;
    size_t length;
};
#define T(literal)                                                                                 \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }

/* Reads and writes again; the result is in `to`. */
static int round_trip(const char *text, size_t length, struct buffer *to, struct error *err)
{
    autoptr(data_document) document = NULL;
    struct json_writer writer;

    buffer_clear(to);
    if (json_read("", text, length, NULL, &document, err) < 0)
        return -1;
    json_writer_init(&writer, to);
    json_value(&writer, document->root);
    return json_writer_finish(&writer, err);
}

TEST(valid_texts_come_back_as_written)
{
    static const struct text same[] = {
        T("null"),
        T("true"),
        T("false"),
        T("0"),
        T("-0"),
        T("\"\""),
        T("[]"),
        T("{}"),
        T("42"),
        T("[[]]"),
        T("[null,1,\"1\",{}]"),
        T("{\"a\":[]}"),
        T("{\"\":0}"),
        T("{\"a\":1,\"b\":{\"a\":2}}"),
        T("123e65"),
        T("0e+1"),
        T("0e1"),
        T("-1"),
        T("-123"),
        T("1E22"),
        T("1E-2"),
        T("1E+2"),
        T("123e45"),
        T("123.456e78"),
        T("1e-2"),
        T("1e+2"),
        T("123.456789"),
        T("-0.0000000000000000000000000000000000001"),
        T("1e9999"),
        T("-1e-9999"),
        T("0.1000"),
        T("100000000000000000000000000000000000000000000000001"),
        T("9007199254740993"),
        T("-9223372036854775809"),
        T("18446744073709551616"),
        T("\"gr\xc3\xbc\xc3\x9f\""),
        T("\"\xf0\x9f\x8c\x8d\""),
        T("\"\xe2\x80\xa8\""),
        T("\"\xef\xbf\xbf\""),
        T("\"\xf4\x8f\xbf\xbf\""),
        T("\"\\u0000\""),
        T("\"\\\"\\\\\\b\\f\\n\\r\\t\""),
        T("\"a/b\""),
        T("\"\\ud800\""),
        T("\"\\udfff\""),
        T("\"\\ud83d!\""),
        T("\"\\udc00\\ud800\""),
        T("\"\\ud800\\ud800\""),
        T("{\"\\ud800\":\"\\udc00\"}"),
    };
    autobuffer to = {0};
    for (size_t i = 0; i < ARRAY_SIZE(same); i++) {
        struct error err = {0};
        CHECK_OK(round_trip(same[i].bytes, same[i].length, &to, &err), err);
        CHECK_STR(to.data, same[i].bytes);
    }
}

TEST(other_spellings_of_the_same_value_are_understood)
{
    static const struct {
        struct text text;
        const char *same;
    } rows[] = {
        {T(" \t\r\n[ \n1 , 2\t]\r\n "), "[1,2]"},
        {T("{ \"a\" : 1 }"), "{\"a\":1}"},
        {T("\"\\u0061\\/\""), "\"a/\""},
        {T("\"\\u00e9\\u00E9\""), "\"\xc3\xa9\xc3\xa9\""},
        {T("\"\\ud83c\\udf0d\""), "\"\xf0\x9f\x8c\x8d\""},
        {T("\"\\uDBFF\\uDFFF\""), "\"\xf4\x8f\xbf\xbf\""},
        {T("\"\\u2028\\uffff\\u007f\""), "\"\xe2\x80\xa8\xef\xbf\xbf\x7f\""},
        {T("\"\\ud800\\u0041\""), "\"\\ud800A\""},
        {T("\"\\u001F\""), "\"\\u001f\""},
    };
    autobuffer to = {0};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        CHECK_OK(round_trip(rows[i].text.bytes, rows[i].text.length, &to, &err), err);
        CHECK_STR(to.data, rows[i].same);
    }
}

TEST(what_is_not_json_is_refused)
{
    static const struct text bad[] = {
        T(""),
        T(" "),
        T("\n"),
        T("\0"),
        T("nul"),
        T("nulll"),
        T("True"),
        T("NULL"),
        T("NaN"),
        T("Infinity"),
        T("-Infinity"),
        T("undefined"),
        T("'a'"),
        T("a"),
        T("\xef\xbb\xbf{}"),
        T("\xff\xfe[\0]\0"),
        T("[1]\0"),
        T("// x\n1"),
        T("/* */1"),
        T("1 2"),
        T("[]]"),
        T("{}}"),
        T("[][]"),
        T("{}#"),
        T("[1]x"),
        T("["),
        T("]"),
        T("[,]"),
        T("[1,]"),
        T("[,1]"),
        T("[1,,2]"),
        T("[1 2]"),
        T("[1;2]"),
        T("[1"),
        T("[1,"),
        T("[\"a\""),
        T("[\"\": 1]"),
        T("[1}"),
        T("[[]"),
        T("[\v1]"),
        T("[\f]"),
        T("[\xc2\xa0]"),
        T("[\xe2\x81\xa0]"),
        T("{"),
        T("}"),
        T("{,}"),
        T("{\"a\"}"),
        T("{\"a\":}"),
        T("{\"a\" 1}"),
        T("{\"a\"::1}"),
        T("{a:1}"),
        T("{1:1}"),
        T("{'a':1}"),
        T("{\"a\":1,}"),
        T("{\"a\":1,,\"b\":2}"),
        T("{\"a\":1 \"b\":2}"),
        T("{\"a\":1"),
        T("{\"a\":"),
        T("{\"a"),
        T("{null:1}"),
        T("{\"a\":1]"),
        T("{[]:1}"),
        T("{\"a\":/*x*/1}"),
        T("-"),
        T("+1"),
        T("--1"),
        T("01"),
        T("-01"),
        T("00"),
        T("1."),
        T(".1"),
        T("-.1"),
        T("1.e1"),
        T("1e"),
        T("1e+"),
        T("1ee1"),
        T("1e1.5"),
        T("0x1"),
        T("1_000"),
        T("1,000"),
        T("1 000.0"),
        T("0.1.2"),
        T("0e"),
        T("1e\xef\xbc\x91"),
        T("- 1"),
        T("\xef\xbc\x91"),
        T("1a"),
        T("0\0"),
        T("[-]"),
        T("[1.]"),
        T("[1e-]"),
        T("-a"),
        T("\""),
        T("\"a"),
        T("\"\\"),
        T("\"\\\""),
        T("\"\\a\""),
        T("\"\\x00\""),
        T("\"\\\0\""),
        T("\"\\u\""),
        T("\"\\u12\""),
        T("\"\\u123\""),
        T("\"\\u123g\""),
        T("\"\\u 123\""),
        T("\"\\u-123\""),
        T("\"\\U0041\""),
        T("\"\\'\""),
        T("\"\\\xf0\x9f\x8c\x8d\""),
        T("\"\n\""),
        T("\"\t\""),
        T("\"\0\""),
        T("\"\x1f\""),
        T("\"a\rb\""),
        T("\"\xff\""),
        T("\"\x80\""),
        T("\"\xc0\xaf\""),
        T("\"\xe0\x80\xaf\""),
        T("\"\xc3\""),
        T("\"\xe2\x82\""),
        T("\"\xf0\x9f\x8c"),
        T("\"\xed\xa0\x80\""),
        T("\"\xf4\x90\x80\x80\""),
        T("\"\xf8\x88\x80\x80\x80\""),
        T("\"\\\xe5\""),
        T("\"\\ud800\\u\""),
        T("\"\\ud800\\ud8\""),
        T("{\"a\":1,\"a\":1}"),
        T("{\"b\":1,\"a\":2,\"\\u0062\":3}"),
        T("{\"\":1,\"\":2}"),
        T("{\"x\":{\"a\":1,\"c\":3,\"a\":null}}"),
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        autoptr(data_document) document = NULL;
        struct error err = {0};
        // an own copy without a NUL behind it, so that a reader going too far is seen by the
        // sanitizers
        autofree char *copy = malloc(bad[i].length + 1);
        memcpy(copy, bad[i].bytes, bad[i].length + 1);
        char *exact = realloc(copy, bad[i].length ? bad[i].length : 1);
        copy = exact;
        if (json_read("", exact, bad[i].length, NULL, &document, &err) == 0)
            test_fail(__FILE__, __LINE__, "row %zu was taken for JSON: %s", i, bad[i].bytes);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK(document == NULL);
    }
}

TEST(errors_say_where_and_what)
{
    static const struct {
        const char *text, *sentence;
    } rows[] = {
        {"", "body: line 1, column 1: the text ends where a value should be"},
        {"{\"a\": 1,\n \"b\" 2}", "body: line 2, column 6: '2' stands where ':' should be"},
        {"[1,\n\n  2 3]", "body: line 3, column 5: '3' stands where ',' or ']' should be"},
        {"{\"a\": tru}", "body: line 1, column 7: 't' stands where a value should be"},
        {"[\"abc", "body: line 1, column 2: this string has no end"},
        {"[\"a\tb\"]", "body: line 1, column 4: byte 0x09 must be escaped in a string"},
        {"[\"a\xff\"]", "body: line 1, column 4: byte 0xff in a string is not UTF-8"},
        {"[\"\\u12x4\"]", "body: line 1, column 4: '\\u' needs four hexadecimal digits"},
        {"[\"\\q\"]", "body: line 1, column 4: 'q' stands where one of \" \\ / b f n r t u after "
                      "'\\' should be"},
        {"[1.]", "body: line 1, column 4: ']' stands where a digit should be"},
        {"{} x", "body: line 1, column 4: 'x' stands where the end should be"},
        {"{,}", "body: line 1, column 2: ',' stands where a key in quotes should be"},
        {"[\n {\"k\":1, \"k\":2}]", "body: line 2, column 2: the key 'k' is there twice"},
        {"\x01", "body: line 1, column 1: byte 0x01 stands where a value should be"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        autoptr(data_document) document = NULL;
        struct error err = {0};
        CHECK(json_read("body", rows[i].text, strlen(rows[i].text), NULL, &document, &err) < 0);
        CHECK_STR(err.text, rows[i].sentence);
    }
}

TEST(values_know_their_place)
{
    static const char text[] = "{\"list\": [1,\n  \"two\"], \"deep\": {\"x\": true}}";
    autoptr(data_document) document = NULL;
    struct error err = {0};

    CHECK_OK(json_read("", text, strlen(text), NULL, &document, &err), err);
    struct data_value *two = value_get(document->root, "list")->first->next;
    CHECK_STR(two->text, "two");
    CHECK_INT(two->line, 2);
    CHECK_INT(two->column, 3);
    struct data_value *truth = value_get(value_get(document->root, "deep"), "x");
    CHECK(truth->kind == VALUE_BOOL && truth->truth);
    CHECK_INT(document->root->count, 2);
}

TEST(strings_may_hold_nul_and_surrogates)
{
    static const char text[] = "[\"a\\u0000b\", \"\\ud800\"]";
    autoptr(data_document) document = NULL;
    struct error err = {0};

    CHECK_OK(json_read("", text, strlen(text), NULL, &document, &err), err);
    struct data_value *first = document->root->first;
    CHECK_INT(first->length, 3);
    CHECK(memcmp(first->text, "a\0b", 4) == 0);
    CHECK_INT(first->next->length, 3);
    CHECK_STR(first->next->text, "\xed\xa0\x80");
}

static void repeat(struct buffer *to, const char *text, size_t times)
{
    struct error err = {0};
    for (size_t i = 0; i < times; i++)
        CHECK_OK(buffer_add_text(to, text, &err), err);
}

TEST(depth_is_limited)
{
    autobuffer text = {0};
    struct error err = {0};
    autoptr(data_document) fits = NULL;
    autoptr(data_document) deep = NULL;

    repeat(&text, "[", JSON_MAX_DEPTH);
    repeat(&text, "]", JSON_MAX_DEPTH);
    CHECK_OK(json_read("", text.data, text.length, NULL, &fits, &err), err);
    buffer_clear(&text);
    repeat(&text, "[{\"a\":", 500000);
    CHECK(json_read("", text.data, text.length, NULL, &deep, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_STR(err.text, "line 1, column 193: more than 64 lists and maps in each other");
}

TEST(bytes_and_memory_are_limited)
{
    struct json_limits limits = {.bytes = 100, .memory = 4000};
    autobuffer text = {0};
    struct error err = {0};
    autoptr(data_document) document = NULL;

    repeat(&text, " ", 101);
    CHECK(json_read("body", text.data, text.length, &limits, &document, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_STR(err.text, "body: more than 100 bytes of JSON");
    buffer_clear(&text);
    repeat(&text, "[", 1);
    repeat(&text, "0,", 45);
    repeat(&text, "0]", 1);
    CHECK(json_read("", text.data, text.length, &limits, &document, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
}

struct allowance {
    size_t left, asked;
};

static bool may_take(void *data, size_t bytes)
{
    struct allowance *allowance = data;

    allowance->asked += bytes;
    if (bytes > allowance->left)
        return false;
    allowance->left -= bytes;
    return true;
}

TEST(memory_is_asked_for_as_the_tree_grows)
{
    struct allowance much = {.left = 64 << 20}, little = {.left = 512 << 10};
    struct json_limits limits = {.may_take = may_take};
    autobuffer text = {0};
    struct error err = {0};

    CHECK_OK(buffer_add_text(&text, "[0", &err), err);
    for (int i = 0; i < 50000; i++)
        CHECK_OK(buffer_add_text(&text, ",0", &err), err);
    CHECK_OK(buffer_add_text(&text, "]", &err), err);
    {
        autoptr(data_document) document = NULL;
        limits.data = &much;
        CHECK_OK(json_read("", text.data, text.length, &limits, &document, &err), err);
        CHECK(much.asked + JSON_FREE_MEMORY + JSON_MEMORY_STEP > document->arena.used);
        CHECK(much.asked < document->arena.used + JSON_MEMORY_STEP);
    }
    autoptr(data_document) none = NULL;
    limits.data = &little;
    CHECK(json_read("", text.data, text.length, &limits, &none, &err) < 0);
    CHECK(error_is(&err, ERROR_FULL) && !none);
}

TEST(many_keys_are_checked_without_quadratic_time)
{
    autobuffer text = {0};
    struct error err = {0};
    autoptr(data_document) document = NULL;
    autoptr(data_document) twice = NULL;

    repeat(&text, "{", 1);
    for (int i = 0; i < 100000; i++)
        CHECK_OK(buffer_addf(&text, &err, "\"k%d\":0,", i), err);
    size_t length = text.length;
    repeat(&text, "\"last\":0}", 1);
    CHECK_OK(json_read("", text.data, text.length, NULL, &document, &err), err);
    CHECK_INT(document->root->count, 100001);
    text.length = length;
    repeat(&text, "\"k77777\":0}", 1);
    CHECK(json_read("", text.data, text.length, NULL, &twice, &err) < 0);
    CHECK_STR(err.text, "line 1, column 1: the key 'k77777' is there twice");
}

/* Few are compared with each other, many are sorted. */
TEST(a_key_that_is_there_twice_is_found_among_few_and_among_many)
{
    static const int counts[] = {2, 3, 31, 32, 33, 34, 100};
    static const struct json_limits last = {.takes_last = true};

    for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
        autobuffer text = {0};
        struct error err = {0};
        autoptr(data_document) document = NULL;
        autoptr(data_document) twice = NULL;

        repeat(&text, "{", 1);
        for (int k = 0; k < counts[i] - 1; k++)
            CHECK_OK(buffer_addf(&text, &err, "\"k%d\":\"first\",", k), err);
        repeat(&text, "\"k\\u0030\":\"last\"}", 1); // k0 once more
        CHECK(json_read("", text.data, text.length, NULL, &twice, &err) < 0);
        CHECK_STR(err.text, "line 1, column 1: the key 'k0' is there twice");
        CHECK_OK(json_read("", text.data, text.length, &last, &document, &err), err);
        CHECK_INT(document->root->count, counts[i] - 1);
        CHECK_STR(document->root->first->key, "k0");
        CHECK_STR(document->root->first->text, "last");
    }
}
