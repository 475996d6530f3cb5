/* SPDX-License-Identifier: Apache-2.0 */
/* Output in answers and records of burrow's own API: what is text, and where a reader goes on. */
#include "front/api/execution_answer.h"
#include "front/api/output_follow.h"
#include "test.h"

#include <string.h>

static void check_text(const char *bytes, size_t length, size_t want)
{
    CHECK_INT(output_text_length(bytes, length), want);
}

TEST(text_ends_before_a_character_that_is_cut)
{
    check_text("", 0, 0);
    check_text("abc", 3, 3);
    check_text("a\0b", 3, 3);
    check_text("\xc3\xa4", 2, 2);
    check_text("x\xc3", 2, 1);
    check_text("\xf0\x9f\x98", 3, 0);
    check_text("x\xf0\x9f\x98\x80y", 6, 6);
}

TEST(what_is_not_utf8_is_no_text)
{
    check_text("\xff", 1, NO_TEXT);
    check_text("a\x80", 2, NO_TEXT);
    check_text("\xc3x", 2, NO_TEXT);        // the rest of it never comes
    check_text("\xed\xa0\x80", 3, NO_TEXT); // half of a surrogate pair
    check_text("\xc0\x80", 2, NO_TEXT);     // overlong
}

TEST(ids_of_records_are_two_numbers)
{
    static const char *const bad[] = {"",     ".",     "1",    "1.",   ".1",
                                      "1.2.", "1.2.3", "-1.2", "1.-2", " 1.2",
                                      "1.2 ", "a.b",   "+1.2", "1,2",  "99999999999999999999.1",
                                      "1.0x1"};
    uint64_t offsets[OUTPUT_SIDES] = {0};

    CHECK(output_follow_read_id("0.0", offsets) && offsets[0] == 0 && offsets[1] == 0);
    CHECK(output_follow_read_id("1024.17", offsets) && offsets[0] == 1024 && offsets[1] == 17);
    CHECK(output_follow_read_id("18446744073709551615.1", offsets) && offsets[0] == UINT64_MAX);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        CHECK(!output_follow_read_id(bad[i], offsets));
}
