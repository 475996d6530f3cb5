/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/utf8.c and src/base/quote.c. */
#include "base/auto.h"
#include "base/quote.h"
#include "base/utf8.h"
#include "test.h"

TEST(every_character_is_encoded_and_recognised)
{
    for (uint32_t code = 0; code <= 0x10ffff; code++) {
        char text[UTF8_MAX];
        size_t size = utf8_encode(code, text);
        bool is_surrogate = code >= 0xd800 && code <= 0xdfff;
        CHECK_INT(utf8_length(text, size), is_surrogate ? 0 : size);
        if (is_surrogate)
            continue;
        for (size_t cut = 1; cut < size; cut++) {
            CHECK_INT(utf8_length(text, cut), 0);
            CHECK(utf8_is_partial(text, cut));
        }
        CHECK(!utf8_is_partial(text, size));
    }
}

/* By Unicode's own wording: a second opinion for all strings of three bytes. */
static bool is_well_formed(const unsigned char *b, size_t n)
{
    if (b[0] < 0x80)
        return true;
    if (n < 2 || (b[1] & 0xc0) != 0x80)
        return false;
    if (b[0] >= 0xc2 && b[0] <= 0xdf)
        return true;
    if (n < 3 || (b[2] & 0xc0) != 0x80 || (b[0] & 0xf0) != 0xe0)
        return false;
    unsigned code = (b[0] & 0xfu) << 12 | (b[1] & 0x3fu) << 6 | (b[2] & 0x3fu);
    return code >= 0x800 && !(code >= 0xd800 && code <= 0xdfff);
}

TEST(all_three_byte_strings_are_judged_rightly)
{
    for (unsigned n = 0; n < 1u << 24; n++) {
        unsigned char b[3] = {(unsigned char)(n >> 16), (unsigned char)(n >> 8), (unsigned char)n};
        if ((utf8_length((char *)b, 3) != 0) != is_well_formed(b, 3))
            test_fail(__FILE__, __LINE__, "%02x %02x %02x", b[0], b[1], b[2]);
    }
}

static const char *quoted(struct buffer *to, const char *text, size_t length)
{
    struct error err = {0};
    buffer_clear(to);
    CHECK_OK(quote_json(to, text, length, &err), err);
    return to->data;
}

TEST(quoted_text_is_a_json_string)
{
    autobuffer to = {0};
    CHECK_STR(quoted(&to, "", 0), "\"\"");
    CHECK_STR(quoted(&to, "plain", 5), "\"plain\"");
    CHECK_STR(quoted(&to, "\"\\/\b\f\n\r\t", 8), "\"\\\"\\\\/\\b\\f\\n\\r\\t\"");
    CHECK_STR(quoted(&to, "a\0b", 3), "\"a\\u0000b\"");
    CHECK_STR(quoted(&to, "\x1b[31m\x7f", 6), "\"\\u001b[31m\\u007f\"");
    CHECK_STR(quoted(&to, "gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8d", 11),
              "\"gr\xc3\xbc\xc3\x9f \xf0\x9f\x8c\x8d\"");
}

TEST(bytes_that_are_no_utf8_become_replacement_characters)
{
    static const struct {
        const char *bytes;
        const char *text;
    } rows[] = {
        {"\xff", "\"\xef\xbf\xbd\""},
        {"a\x80z", "\"a\xef\xbf\xbdz\""},
        {"\xc0\xaf", "\"\xef\xbf\xbd\xef\xbf\xbd\""}, // overlong slash
        {"\xe2\x82", "\"\xef\xbf\xbd\""},             // cut off: one for the whole start
        {"\xf0\x9f\x92z", "\"\xef\xbf\xbdz\""},
        {"\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""}, // surrogate
        {"\xf4\x90\x80\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
    };
    autobuffer to = {0};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        CHECK_STR(quoted(&to, rows[i].bytes, strlen(rows[i].bytes)), rows[i].text);
}

TEST(an_exact_quote_keeps_lone_surrogates)
{
    autobuffer to = {0};
    struct error err = {0};
    CHECK_OK(quote_json_exact(&to, "\xed\xa0\xbd!\xed\xbf\xbf", 7, &err), err);
    CHECK_STR(to.data, "\\ud83d!\\udfff");
}

TEST(a_strangers_text_stays_one_line_that_no_terminal_acts_on)
{
    char text[] = "a\n\x1b[2J\x7f\t\xc3\xa9 b\xc2\x9b"
                  "2J\xc2\xa0\xc2";

    quote_scrub(text);
    CHECK_STR(text, "a??[2J??\xc3\xa9 b??2J\xc2\xa0?");
}

TEST(a_strangers_text_has_no_bytes_that_are_no_character)
{
    char text[] = "\x9b"
                  "31m \xc1\x9b \xe0\x80\x9b \xed\xa0\x80 \xf0\x9f\x98\x80 \xe6\x9c\xac";

    quote_scrub(text);
    CHECK_STR(text, "?31m ?? ??? ??? \xf0\x9f\x98\x80 \xe6\x9c\xac");
}

TEST(a_strangers_text_is_read_in_the_order_it_has)
{
    char text[] = "a\xe2\x80\xae"
                  "fdp.exe \xe2\x81\xa6 \xe2\x80\x94 \xe2\x81\xaa";

    quote_scrub(text);
    CHECK_STR(text, "a???fdp.exe ??? \xe2\x80\x94 \xe2\x81\xaa");
}

TEST(a_quote_has_no_control_character_as_it_is)
{
    autobuffer to = {0};

    CHECK_STR(quoted(&to, "\xc2\x80\xc2\x9b\xc2\xa0\x7f", 7), "\"\\u0080\\u009b\xc2\xa0\\u007f\"");
}
