/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of sizes and processor shares; see size.h. */
#include "base/size.h"

#include "base/decimal.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *suffix;
    uint64_t unit;
} units[] = {
    {"", 1},
    {"k", 1000ULL},
    {"M", 1000000ULL},
    {"G", 1000000000ULL},
    {"T", 1000000000000ULL},
    {"P", 1000000000000000ULL},
    {"E", 1000000000000000000ULL},
    {"Ki", 1ULL << 10},
    {"Mi", 1ULL << 20},
    {"Gi", 1ULL << 30},
    {"Ti", 1ULL << 40},
    {"Pi", 1ULL << 50},
    {"Ei", 1ULL << 60},
};
enum { UNITS = sizeof units / sizeof *units };

static uint64_t unit_of(const char *suffix)
{
    for (int i = 0; i < UNITS; i++) {
        if (strcmp(suffix, units[i].suffix) == 0)
            return units[i].unit;
    }
    return 0;
}

int size_parse(const char *text, const char *what, uint64_t *out_bytes, struct error *err)
{
    struct decimal number;
    const char *suffix = decimal_scan(text, &number);
    uint64_t unit = suffix ? unit_of(suffix) : 0;

    if (!unit || (unit == 1 && number.has_point) || !decimal_times(&number, unit, out_bytes))
        return error_set(
            err, ERROR_INVALID,
            "%s '%.80s' is not a size: use a number with Ki, Mi, Gi (for example 256Mi)", what,
            text);
    return 0;
}

int cpu_parse(const char *text, const char *what, uint32_t *out_millis, struct error *err)
{
    struct decimal number;
    uint64_t millis = 0;
    const char *suffix = decimal_scan(text, &number);
    uint64_t unit = !suffix ? 0 : *suffix == '\0' ? 1000 : strcmp(suffix, "m") == 0 ? 1 : 0;

    if (!unit || (unit == 1 && number.has_point) || !decimal_times(&number, unit, &millis) ||
        millis > UINT32_MAX)
        return error_set(err, ERROR_INVALID,
                         "%s '%.80s' is not a number of processors: use for example 500m, 0.5 or 2",
                         what, text);
    *out_millis = (uint32_t)millis;
    return 0;
}

const char *size_format(uint64_t bytes, char text[SIZE_TEXT])
{
    int best = 0;
    for (int i = 1; i < UNITS; i++) {
        if (units[i].suffix[1] == 'i' && bytes && bytes % units[i].unit == 0)
            best = i;
    }
    (void)snprintf(text, SIZE_TEXT, "%llu%s", (unsigned long long)(bytes / units[best].unit),
                   units[best].suffix);
    return text;
}
