/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of sizes and processor shares; see size.h. */
#include "base/size.h"

#include "base/decimal.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *suffix;
    uint64_t unit;
} units[] = {
    {"", 1},
    {"k", 1000ULL},
    {"K", 1000ULL},
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

/* "m", "MB", "MiB", "mi": the unit's capital letter, or 0 where it is no such spelling. */
static char loose_unit(const char *suffix)
{
    char letter = (char)toupper((unsigned char)*suffix);

    if (!letter || !strchr("KMGTPE", letter))
        return 0;
    suffix++;
    suffix += *suffix == 'i' || *suffix == 'I';
    suffix += *suffix == 'b' || *suffix == 'B';
    return *suffix ? 0 : letter;
}

static int refuse(const char *text, const char *what, const char *suffix, struct error *err)
{
    char letter = suffix ? loose_unit(suffix) : 0;
    int digits = suffix ? (int)(suffix - text) : 0;

    if (letter && !unit_of(suffix) && digits <= 40)
        return error_set(err, ERROR_INVALID,
                         "%s '%.80s' is not a size: write %.*s%ci (powers of 1024) or %.*s%c "
                         "(powers of 1000)",
                         what, text, digits, text, letter, digits, text, letter);
    return error_set(err, ERROR_INVALID,
                     "%s '%.80s' is not a size: use bytes, or a number with Ki, Mi, Gi, Ti, Pi, Ei "
                     "(powers of 1024) or k, M, G, T, P, E (powers of 1000) (for example 256Mi)",
                     what, text);
}

int size_parse(const char *text, const char *what, uint64_t *out_bytes, struct error *err)
{
    struct decimal number;
    const char *suffix = decimal_scan(text, &number);
    uint64_t unit = suffix ? unit_of(suffix) : 0;

    if (!unit || (unit == 1 && number.has_point) || !decimal_times(&number, unit, out_bytes))
        return refuse(text, what, suffix, err);
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
