/* SPDX-License-Identifier: Apache-2.0 */
/* The Range header. */
#include "web/range.h"
#include "test.h"

#include <stdint.h>

TEST(parts_of_a_thing_are_cut_to_what_is_there)
{
    static const struct {
        const char *text;
        uint64_t size;
        enum range range;
        uint64_t first, length;
    } rows[] = {
        {"bytes=0-", 10, RANGE_PART, 0, 10},
        {"bytes=4-", 10, RANGE_PART, 4, 6},
        {"bytes=9-", 10, RANGE_PART, 9, 1},
        {"bytes=2-4", 10, RANGE_PART, 2, 3},
        {"Bytes=2-2", 10, RANGE_PART, 2, 1},
        {"bytes=2-400", 10, RANGE_PART, 2, 8},
        {"bytes=2-18446744073709551615", 10, RANGE_PART, 2, 8},
        {"bytes=2-99999999999999999999999", 10, RANGE_PART, 2, 8},
        {"bytes=-3", 10, RANGE_PART, 7, 3},
        {"bytes=-30", 10, RANGE_PART, 0, 10},
        {"bytes=10-", 10, RANGE_OUTSIDE, 0, 0},
        {"bytes=99999999999999999999-", 10, RANGE_OUTSIDE, 0, 0},
        {"bytes=0-", 0, RANGE_OUTSIDE, 0, 0},
        {"bytes=-0", 10, RANGE_OUTSIDE, 0, 0},
        {"bytes=-5", 0, RANGE_OUTSIDE, 0, 0},
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        uint64_t first = 0, length = 0;
        CHECK_INT(range_read(rows[i].text, rows[i].size, &first, &length), rows[i].range);
        CHECK_INT(first, rows[i].first);
        CHECK_INT(length, rows[i].length);
    }
}

TEST(what_is_no_single_range_means_the_whole)
{
    static const char *const texts[] = {"",           "bytes",      "bytes=",        "bytes=-",
                                        "bytes=4",    "bytes=4-2",  "bytes=0-1,4-5", "bytes= 0-1",
                                        "bytes=a-b",  "lines=0-1",  "bytes=0-1 ",    "bytes=0--1",
                                        "bytes=+1-2", "bytes=0x1-2"};
    uint64_t first = 0, length = 0;

    CHECK_INT(range_read(NULL, 10, &first, &length), RANGE_NONE);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK_INT(range_read(texts[i], 10, &first, &length), RANGE_NONE);
}
