/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/clock.c. */
#include "base/auto.h"
#include "base/clock.h"
#include "test.h"

#include <time.h>

TEST(the_monotonic_clock_never_goes_back)
{
    uint64_t before = clock_monotonic_us();
    for (int i = 0; i < 1000; i++) {
        uint64_t now = clock_monotonic_us();
        CHECK(now >= before);
        before = now;
    }
    CHECK(clock_monotonic_ms() >= before / 1000);
}

TEST(the_wall_clock_agrees_with_the_c_library)
{
    uint64_t low = (uint64_t)time(NULL) - 1; // time() may read a coarser clock
    uint64_t ms = clock_wall_ms();
    uint64_t high = clock_wall_us() / 1000;
    CHECK(ms / 1000 >= low && ms <= high);
}

TEST(moments_are_written_as_rfc_3339)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {
        {0, "1970-01-01T00:00:00.000Z"},
        {1767323045678ULL, "2026-01-02T03:04:05.678Z"},
        {951782400000ULL, "2000-02-29T00:00:00.000Z"},
        {253402300799999ULL, "9999-12-31T23:59:59.999Z"},
        {UINT64_MAX, "9999-12-31T23:59:59.999Z"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[CLOCK_TEXT];
        CHECK_STR(clock_format(rows[i].ms, text), rows[i].text);
    }
}
