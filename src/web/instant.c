/* SPDX-License-Identifier: Apache-2.0 */
/* Points in time; see instant.h. */
#include "web/instant.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* Exactly `digits` digits; NULL else. */
static const char *scan_number(const char *at, unsigned digits, int *out)
{
    int number = 0;

    for (; at && digits > 0; digits--, at++) {
        if (*at < '0' || *at > '9')
            return NULL;
        number = number * 10 + (*at - '0');
    }
    *out = number;
    return at;
}

static const char *scan_mark(const char *at, char mark)
{
    return at && *at == mark ? at + 1 : NULL;
}

/* ".678": digits behind the third are not looked at. */
static const char *scan_fraction(const char *at, int *ms)
{
    int unit = 100;

    if (*at != '.')
        return at;
    size_t digits = strspn(++at, "0123456789");
    for (size_t i = 0; i < digits; i++, unit /= 10)
        *ms += (at[i] - '0') * unit;
    return digits ? at + digits : NULL;
}

/* "Z", "+02:00", or nothing */
static const char *scan_zone(const char *at, int *minutes)
{
    int hours = 0, rest = 0;
    bool is_behind = *at == '-';

    if (*at == 'Z' || *at == '\0')
        return at + (*at == 'Z');
    if (*at != '+' && *at != '-')
        return NULL;
    at = scan_number(scan_mark(scan_number(at + 1, 2, &hours), ':'), 2, &rest);
    *minutes = (hours * 60 + rest) * (is_behind ? -1 : 1);
    return hours < 24 && rest < 60 ? at : NULL;
}

static const char *scan_clock(const char *at, struct tm *time, int *ms, int *zone)
{
    at = scan_number(at + 1, 2, &time->tm_hour);
    at = scan_number(scan_mark(at, ':'), 2, &time->tm_min);
    if (at && *at == ':')
        at = scan_number(at + 1, 2, &time->tm_sec);
    at = at ? scan_fraction(at, ms) : NULL;
    return at ? scan_zone(at, zone) : NULL;
}

static bool is_sane(const struct tm *time)
{
    return time->tm_mon >= 0 && time->tm_mon < 12 && time->tm_mday >= 1 && time->tm_mday <= 31 &&
           time->tm_hour < 24 && time->tm_min < 60 && time->tm_sec <= 60;
}

int instant_parse(const char *text, const char *what, int64_t *out_ms, struct error *err)
{
    struct tm time = {0};
    int year = 0, month = 0, ms = 0, zone = 0;
    const char *at = scan_number(text, 4, &year);

    at = scan_number(scan_mark(at, '-'), 2, &month);
    at = scan_number(scan_mark(at, '-'), 2, &time.tm_mday);
    if (at && (*at == 'T' || *at == ' '))
        at = scan_clock(at, &time, &ms, &zone);
    time.tm_year = year - 1900;
    time.tm_mon = month - 1;
    if (!at || *at || !is_sane(&time))
        return error_set(err, ERROR_INVALID, "%s: '%.64s' is not a time like 2026-01-02T03:04:05Z",
                         what, text);
    *out_ms = ((int64_t)timegm(&time) - (int64_t)zone * 60) * 1000 + ms;
    return 0;
}
