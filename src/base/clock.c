/* SPDX-License-Identifier: Apache-2.0 */
/* What time it is; see clock.h. */
#include "base/clock.h"

#include <stdio.h>
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

const char *clock_format(uint64_t wall_ms, char text[CLOCK_TEXT])
{
    static const uint64_t last_ms = 253402300799999ULL; // 9999-12-31T23:59:59.999Z
    struct tm day;

    if (wall_ms > last_ms)
        wall_ms = last_ms;
    time_t seconds = (time_t)(wall_ms / 1000);
    (void)gmtime_r(&seconds, &day);
    (void)snprintf(text, CLOCK_TEXT, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ",
                   ((unsigned)day.tm_year + 1900) % 10000, ((unsigned)day.tm_mon + 1) % 100,
                   (unsigned)day.tm_mday % 100, (unsigned)day.tm_hour % 100,
                   (unsigned)day.tm_min % 100, (unsigned)day.tm_sec % 100,
                   (unsigned)(wall_ms % 1000));
    return text;
}
