/* SPDX-License-Identifier: Apache-2.0 */
/* What time it is; see clock.h. */
#include "base/clock.h"

#include <string.h>
#include <time.h>

static uint64_t now_us(clockid_t which)
{
    struct timespec now;
    (void)clock_gettime(which, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t clock_monotonic_us(void)
{
    return now_us(CLOCK_MONOTONIC);
}

uint64_t clock_monotonic_ms(void)
{
    return clock_monotonic_us() / 1000;
}

uint64_t clock_wall_us(void)
{
    return now_us(CLOCK_REALTIME);
}

uint64_t clock_wall_ms(void)
{
    return clock_wall_us() / 1000;
}

int64_t clock_monotonic_at(int64_t wall_ms)
{
    return (int64_t)clock_monotonic_ms() + wall_ms - (int64_t)clock_wall_ms();
}

struct date {
    unsigned year, month, day, weekday; // from 1 each, but the weekday: 0 is Sunday
    unsigned hour, minute, second, millisecond;
};

/*
 * As gmtime_r, which takes the C library's lock on time zones each time. Years begin in March here, so that the day that is not always
 * there is the last one; 400 years have 146097 days; five months from March on have 153.
 */
static struct date split(uint64_t wall_ms)
{
    static const uint64_t last_ms = 253402300799999ULL; // 9999-12-31T23:59:59.999Z
    if (wall_ms > last_ms)
        wall_ms = last_ms;
    unsigned day_ms = (unsigned)(wall_ms % 86400000), days = (unsigned)(wall_ms / 86400000);
    unsigned since = days + 719468; // the first of March of year 0
    unsigned in_400 = since % 146097;
    unsigned years = (in_400 - in_400 / 1460 + in_400 / 36524 - in_400 / 146096) / 365;
    unsigned in_year = in_400 - (365 * years + years / 4 - years / 100);
    unsigned month = (5 * in_year + 2) / 153; // 0 is March

    return (struct date){
        .year = since / 146097 * 400 + years + (month >= 10),
        .month = month < 10 ? month + 3 : month - 9,
        .day = in_year - (153 * month + 2) / 5 + 1,
        .weekday = (days + 4) % 7,
        .hour = day_ms / 3600000,
        .minute = day_ms / 60000 % 60,
        .second = day_ms / 1000 % 60,
        .millisecond = day_ms % 1000,
    };
}

/* Over `at`, which has that many digits; what stands behind them. */
static char *put_digits(char *at, unsigned digits, unsigned number)
{
    for (unsigned i = digits; i > 0; i--, number /= 10)
        at[i - 1] = (char)('0' + number % 10);
    return at + digits;
}

/* Over "00:00:00". */
static char *put_time(char *at, const struct date *date)
{
    at = put_digits(at, 2, date->hour);
    at = put_digits(at + 1, 2, date->minute);
    return put_digits(at + 1, 2, date->second);
}

const char *clock_format(uint64_t wall_ms, char text[CLOCK_TEXT])
{
    struct date date = split(wall_ms);

    memcpy(text, "0000-00-00T00:00:00.000Z", CLOCK_TEXT);
    char *at = put_digits(text, 4, date.year);
    at = put_digits(at + 1, 2, date.month);
    at = put_digits(at + 1, 2, date.day);
    at = put_time(at + 1, &date);
    (void)put_digits(at + 1, 3, date.millisecond);
    return text;
}

const char *clock_format_http(uint64_t wall_ms, char text[CLOCK_HTTP_TEXT])
{
    static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
    static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                       "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
    struct date date = split(wall_ms);

    memcpy(text, "Sun, 00 Jan 0000 00:00:00 GMT", CLOCK_HTTP_TEXT);
    memcpy(text, days[date.weekday], 3);
    char *at = put_digits(text + 5, 2, date.day);
    memcpy(at + 1, months[date.month - 1], 3);
    at = put_digits(at + 5, 4, date.year);
    (void)put_time(at + 1, &date);
    return text;
}
