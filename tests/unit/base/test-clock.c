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

/* Each day of 800 years, at another second of it each. */
TEST(days_are_those_of_the_c_library)
{
    for (int64_t day = 0; day < (int64_t)365 * 800; day++) {
        time_t seconds = (time_t)(day * 86400 + day % 86400);
        char text[CLOCK_TEXT], http[CLOCK_HTTP_TEXT], expected[CLOCK_HTTP_TEXT];
        struct tm utc;

        CHECK(gmtime_r(&seconds, &utc) != NULL);
        (void)strftime(expected, sizeof expected, "%Y-%m-%dT%H:%M:%S.000Z", &utc);
        CHECK_STR(clock_format((uint64_t)seconds * 1000, text), expected);
        (void)strftime(expected, sizeof expected, "%a, %d %b %Y %H:%M:%S GMT", &utc);
        CHECK_STR(clock_format_http((uint64_t)seconds * 1000 + 999, http), expected);
    }
}
