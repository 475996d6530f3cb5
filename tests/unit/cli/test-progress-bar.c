/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/cli/progress_bar.c: how fast something is, and how long it takes. */
#include "base/auto.h"
#include "cli/progress_bar.h"
#include "test.h"

#include <stdlib.h>

static void check_pace(unsigned from, unsigned permille, uint64_t taken_ms, const char *wanted)
{
    autofree char *pace = progress_pace(from, permille, taken_ms);
    CHECK_STR(pace, wanted);
}

TEST(rate_and_time_left_are_told_of_what_is_known_in_thousandths)
{
    check_pace(0, 420, 20000, " 42%  2.1%/s  27s left");
    check_pace(0, 10, 60000, "  1%  0.0%/s  1h 39m left");
    check_pace(0, 1000, 5000, "100%  20.0%/s  0ms left");
    check_pace(600, 800, 10000, " 80%  2.0%/s  10s left"); // where somebody else began it
    check_pace(600, 600, 10000, " 60%");
}

TEST(nothing_is_guessed_in_the_first_second_or_before_something_is_done)
{
    check_pace(0, 420, 999, " 42%");
    check_pace(0, 0, 60000, "  0%");
    check_pace(0, 0, 0, "  0%");
}
