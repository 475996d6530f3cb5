/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of a sandbox; see limits.h. */
#include "base/limits.h"

#include "base/auto.h"
#include "base/options.h"

#include <assert.h>

#define ROW(member, name, letter, type, argument, variable, least, usual, most, help, ceiling,     \
            ...)                                                                                   \
    {                                                                                              \
        name, ceiling, type, offsetof(struct limits, member), least                                \
    }
static const struct {
    const char *name, *ceiling;
    enum option_type type;
    size_t offset;
    int64_t least;
} rows[] = {LIMITS_ROWS(ROW)};
static_assert(ARRAY_SIZE(rows) * sizeof(int64_t) == sizeof(struct limits), "a row for each limit");

static int64_t value_at(const struct limits *limits, size_t offset)
{
    return *(const int64_t *)((const char *)limits + offset);
}

int limits_check(const struct limits *limits, struct error *err)
{
    char text[DURATION_TEXT];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t asked = value_at(limits, rows[i].offset);
        if (asked != 0 && asked < rows[i].least)
            return error_refuse(err, ERROR_INVALID, rows[i].name, "%s: a sandbox needs at least %s",
                                rows[i].name, option_number(rows[i].type, rows[i].least, text));
    }
    return 0;
}

/* Whole processors as people ask for them. */
static const char *spell(enum option_type type, int64_t number, char text[DURATION_TEXT])
{
    bool is_whole = type == OPTION_CPU && number % 1000 == 0;
    return option_number(is_whole ? OPTION_INTEGER : type, is_whole ? number / 1000 : number, text);
}

int limits_check_most(const struct limits *limits, const struct limits *ceilings, const char *giver,
                      bool has_settings, struct error *err)
{
    char wanted[DURATION_TEXT];
    char most[DURATION_TEXT];

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t asked = value_at(limits, rows[i].offset);
        int64_t ceiling = value_at(ceilings, rows[i].offset);
        if (ceiling == 0 || asked <= ceiling)
            continue;
        return error_refuse(err, ERROR_INVALID, rows[i].name,
                            "%s %s is more than %s gives one sandbox (%s): ask for less%s%s",
                            rows[i].name, spell(rows[i].type, asked, wanted), giver,
                            spell(rows[i].type, ceiling, most), has_settings ? " or raise --" : "",
                            has_settings ? rows[i].ceiling : "");
    }
    return 0;
}

struct limits limits_lower_to(const struct limits *limits, const struct limits *ceilings)
{
    struct limits lowered = *limits;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t ceiling = value_at(ceilings, rows[i].offset);
        if (ceiling != 0 && value_at(limits, rows[i].offset) > ceiling)
            *(int64_t *)((char *)&lowered + rows[i].offset) = ceiling;
    }
    return lowered;
}

struct limits limits_or_default(const struct limits *asked, const struct limits *usual)
{
    struct limits limits = *usual;

    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        int64_t value = value_at(asked, rows[i].offset);
        if (value != 0)
            *(int64_t *)((char *)&limits + rows[i].offset) = value;
    }
    return limits;
}

bool limits_has_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
        if (strcmp(rows[i].name, name) == 0)
            return true;
    return false;
}
