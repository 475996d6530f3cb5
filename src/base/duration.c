/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of durations; see duration.h. */
#include "base/duration.h"

#include "base/decimal.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define NS_PER_MS 1000000ULL

static const struct {
    const char *suffix;
    uint64_t unit_ns;
} units[] = {
    {"ns", 1},
    {"us", 1000ULL},
    {"\xc2\xb5s", 1000ULL}, // micro sign
    {"\xce\xbcs", 1000ULL}, // greek mu, which keyboards give as well
    {"ms", NS_PER_MS},      // before "m"
    {"s", 1000000000ULL},
    {"m", 60 * 1000000000ULL},
    {"h", 3600 * 1000000000ULL},
    {"d", 24 * 3600 * 1000000000ULL},
};
enum { UNITS = sizeof units / sizeof *units };

static int refuse(const char *text, const char *what, struct error *err)
{
    return error_set(
        err, ERROR_INVALID,
        "%s '%.80s' is not a duration: use numbers with d, h, m, s, ms, us, ns (for example 30s, "
        "1h30m or 7d)",
        what, text);
}

/* One number with its unit is added to `total_ns`; what follows it, or NULL. */
static const char *scan_part(const char *at, uint64_t *total_ns)
{
    struct decimal number;
    uint64_t part_ns = 0;

    at = decimal_scan(at, &number);
    for (int i = 0; at && i < UNITS; i++) {
        size_t length = strlen(units[i].suffix);
        if (strncmp(at, units[i].suffix, length) != 0)
            continue;
        if (!decimal_times(&number, units[i].unit_ns, &part_ns) ||
            __builtin_add_overflow(*total_ns, part_ns, total_ns))
            return NULL;
        return at + length;
    }
    return NULL;
}

int duration_parse(const char *text, const char *what, uint64_t *out_ms, struct error *err)
{
    uint64_t total_ns = 0;
    const char *at = text;

    if (strcmp(text, "0") == 0) {
        *out_ms = 0;
        return 0;
    }
    do {
        at = scan_part(at, &total_ns);
    } while (at && *at);
    if (!at)
        return refuse(text, what, err);
    if (total_ns > DURATION_MAX_MS * NS_PER_MS)
        return error_set(err, ERROR_INVALID, "%s '%.80s' is longer than a hundred years", what,
                         text);
    *out_ms = total_ns / NS_PER_MS + (total_ns % NS_PER_MS != 0);
    return 0;
}

const char *duration_format(uint64_t ms, char text[DURATION_TEXT])
{
    unsigned long long hours = ms / 3600000;
    unsigned minutes = (unsigned)(ms / 60000 % 60);
    unsigned seconds = (unsigned)(ms / 1000 % 60);
    unsigned millis = (unsigned)(ms % 1000);
    int used = 0;

    if (hours)
        used += snprintf(text, DURATION_TEXT, "%lluh", hours);
    if (minutes)
        used += snprintf(text + used, DURATION_TEXT - (size_t)used, "%um", minutes);
    if (seconds)
        used += snprintf(text + used, DURATION_TEXT - (size_t)used, "%us", seconds);
    if (millis)
        used += snprintf(text + used, DURATION_TEXT - (size_t)used, "%ums", millis);
    if (used == 0)
        (void)snprintf(text, DURATION_TEXT, "0s");
    return text;
}
