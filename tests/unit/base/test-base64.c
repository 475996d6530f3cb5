/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include "test.h"

static void check_both(const char *data, size_t length, const char *text)
{
    char encoded[64], decoded[64];
    size_t bad = 0;

    base64_encode(data, length, encoded);
    CHECK_STR(encoded, text);
    CHECK_INT(strlen(encoded), base64_length(length));
    CHECK_INT(base64_decode(text, strlen(text), decoded, &bad), length);
    CHECK(memcmp(decoded, data, length) == 0);
    CHECK(base64_room(strlen(text)) >= length);
}

TEST(the_examples_of_the_rfc_are_read_and_written)
{
    check_both("", 0, "");
    check_both("f", 1, "Zg==");
    check_both("fo", 2, "Zm8=");
    check_both("foo", 3, "Zm9v");
    check_both("foob", 4, "Zm9vYg==");
    check_both("fooba", 5, "Zm9vYmE=");
    check_both("foobar", 6, "Zm9vYmFy");
    check_both("\xff\xff\xfe\0", 4, "///+AA==");
}

TEST(every_byte_comes_back_at_every_place)
{
    unsigned char data[1024], decoded[1024];
    char text[1400];
    size_t bad;

    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + i / 256);
    for (size_t length = 0; length < sizeof data; length++) {
        base64_encode(data, length, text);
        CHECK_INT(base64_decode(text, strlen(text), decoded, &bad), length);
        CHECK(memcmp(decoded, data, length) == 0);
    }
}

TEST(a_text_is_decoded_over_itself)
{
    char text[] = "Zm9vYmFyIGFuZCBtb3Jl";
    size_t bad;

    CHECK_INT(base64_decode(text, strlen(text), text, &bad), 15);
    CHECK(memcmp(text, "foobar and more", 15) == 0);
}

static long bad_of(const char *text)
{
    char out[64];
    size_t bad = 999;

    return base64_decode(text, strlen(text), out, &bad) < 0 ? (long)bad : -1;
}

TEST(what_is_not_in_the_alphabet_is_refused_where_it_stands)
{
    CHECK_INT(bad_of("Zm9v!mFy"), 4);
    CHECK_INT(bad_of("Zm9vYmF\n"), 7);
    CHECK_INT(bad_of("Zm9v YmFyZm9v"), 4);
    CHECK_INT(bad_of("Zm-_"), 2);
    CHECK_INT(bad_of("Zm9v\xc3\xa4=="), 4);
    CHECK_INT(bad_of("Zm=vYmFy"), 2); // padding before the end
}

TEST(wrong_length_padding_and_left_over_bits_are_refused)
{
    CHECK_INT(bad_of("Z"), 1);
    CHECK_INT(bad_of("Zg"), 2);
    CHECK_INT(bad_of("Zg="), 3);
    CHECK_INT(bad_of("===="), 4);
    CHECK_INT(bad_of("Z==="), 4);
    CHECK_INT(bad_of("Zh=="), 4);
    CHECK_INT(bad_of("Zm9="), 4);
    CHECK_INT(bad_of("Zm9vYmFyZ"), 9);
    CHECK_INT(bad_of("Zg=v"), 4);
}
