/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/base/duration.c. */
#include "base/auto.h"
#include "base/duration.h"
#include "test.h"

TEST(durations_read_as_people_write_them)
{
    static const struct {
        const char *text;
        uint64_t ms;
    } rows[] = {
        {"0", 0},
        {"0s", 0},
        {"30s", 30000},
        {"5m", 300000},
        {"1h30m", 5400000},
        {"250ms", 250},
        {"1.5s", 1500},
        {"10m0s", 600000},
        {"1h", 3600000},
        {"1m1m", 120000},
        {"1ns", 1},
        {"0ns", 0},
        {"999999ns", 1},
        {"1000001ns", 2},
        {"1us", 1},
        {"2000us", 2},
        {"2000\xc2\xb5s", 2},
        {"2000\xce\xbcs", 2},
        {"0.5h", 1800000},
        {"1d", 86400000},
        {"1d12h", 129600000},
        {"36500d", DURATION_MAX_MS},
        {"1s1ms", 1001},
        {"876000h", DURATION_MAX_MS},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct error err = {0};
        uint64_t ms = 7;
        CHECK_OK(duration_parse(rows[i].text, "timeout", &ms, &err), err);
        if (ms != rows[i].ms)
            test_fail(__FILE__, __LINE__, "'%s' is %llu ms", rows[i].text, (unsigned long long)ms);
    }
}

TEST(what_is_no_duration_is_refused)
{
    static const char *const texts[] = {
        "",
        " ",
        "s",
        "30",
        "-1s",
        "+1s",
        "1 s",
        " 1s",
        "1s ",
        "1h 30m",
        "1w",
        "1D",
        "36501d1x",
        "1S",
        "1.s",
        ".5s",
        "1e3s",
        "00",
        "1h30",
        "1hm",
        "1msms1",
        "1µ",
        "1\xc2s",
        "1\xb5s",
        "ms",
        "infinity",
        "99999999999999999999s",
        "5124095576030431h",
        "1000000h",
        "876000h1ns",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct error err = {0};
        uint64_t ms = 7;
        if (duration_parse(texts[i], "timeout", &ms, &err) == 0)
            test_fail(__FILE__, __LINE__, "'%s' was taken for a duration", texts[i]);
        CHECK_INT(error_kind(&err), ERROR_INVALID);
        CHECK_INT(ms, 7);
    }
}

TEST(a_refused_duration_names_the_thing_and_the_way_out)
{
    struct error err = {0};
    uint64_t ms = 0;
    CHECK(duration_parse("soon", "timeout", &ms, &err) < 0);
    CHECK_STR(err.text, "timeout 'soon' is not a duration: use numbers with d, h, m, s, ms, us, "
                        "ns (for example 30s, 1h30m or 7d)");
    CHECK(duration_parse("1000000h", "timeout", &ms, &err) < 0);
    CHECK_STR(err.text, "timeout '1000000h' is longer than a hundred years");
}

TEST(a_formatted_duration_reads_back)
{
    static const struct {
        uint64_t ms;
        const char *text;
    } rows[] = {{0, "0s"},
                {1, "1ms"},
                {30000, "30s"},
                {5400000, "1h30m"},
                {90500, "1m30s500ms"},
                {DURATION_MAX_MS, "876000h"}};
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[DURATION_TEXT];
        struct error err = {0};
        uint64_t back = 7;
        CHECK_STR(duration_format(rows[i].ms, text), rows[i].text);
        CHECK_OK(duration_parse(text, "timeout", &back, &err), err);
        CHECK(back == rows[i].ms);
    }
}
