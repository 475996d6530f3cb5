/* SPDX-License-Identifier: Apache-2.0 */
/* Query strings; see query.h. */
#include "web/query.h"

#include "base/duration.h"
#include "base/size.h"
#include "base/suggest.h"
#include "web/percent.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct pair {
    const char *name;
    const char *value;
};

struct query {
    size_t count;
    struct pair pairs[];
};

static int read_pair(const char *text, size_t length, char *room, struct pair *out,
                     struct error *err)
{
    const char *equals = memchr(text, '=', length);
    size_t name_length = equals ? (size_t)(equals - text) : length;
    size_t used, value_used;

    if (percent_decode(text, name_length, true, "the query", room, &used, err) < 0)
        return -1;
    char *value = room + used + 1;
    *value = '\0';
    if (equals && percent_decode(equals + 1, length - name_length - 1, true, "the query", value,
                                 &value_used, err) < 0)
        return -1;
    *out = (struct pair){.name = room, .value = value};
    return 0;
}

static size_t count_pairs(const char *text)
{
    size_t count = *text != '\0';

    for (; *text; text++)
        count += *text == '&';
    return count;
}

int query_parse(const char *text, struct arena *arena, struct query **out, struct error *err)
{
    size_t count = count_pairs(text ? text : "");

    if (count > QUERY_MAXIMUM)
        return error_set(err, ERROR_INVALID, "the query has more than %d parameters",
                         QUERY_MAXIMUM);
    struct query *query = arena_alloc(arena, sizeof *query + count * sizeof *query->pairs);
    // Each pair takes no more than its text, a '=' it may not have, and the '&' or the end behind it.
    char *room = count ? arena_alloc(arena, strlen(text) + 2 * count) : NULL;
    for (const char *at = text, *end; count && at; at = *end ? end + 1 : NULL) {
        size_t length = strcspn(at, "&");
        end = at + length;
        if (length == 0)
            continue;
        if (read_pair(at, length, room, &query->pairs[query->count++], err) < 0)
            return -1;
        room += length + 2;
    }
    *out = query;
    return 0;
}

const char *query_text(const struct query *query, const char *name)
{
    for (size_t i = 0; i < query->count; i++) {
        if (strcmp(query->pairs[i].name, name) == 0)
            return *query->pairs[i].value ? query->pairs[i].value : NULL;
    }
    return NULL;
}

static bool read_integer(const char *text, int64_t *out)
{
    const char *digits = text + (*text == '-');

    if (!*digits || digits[strspn(digits, "0123456789")])
        return false;
    errno = 0;
    long long number = strtoll(text, NULL, 10);
    if (errno)
        return false;
    *out = number;
    return true;
}

int64_t query_integer(const struct query *query, const char *name, int64_t absent)
{
    const char *text = query_text(query, name);
    int64_t number;

    return text && read_integer(text, &number) ? number : absent;
}

static bool read_bool(const char *text, bool *out)
{
    bool is_true = strcmp(text, "true") == 0 || strcmp(text, "1") == 0;

    if (!is_true && strcmp(text, "false") != 0 && strcmp(text, "0") != 0)
        return false;
    *out = is_true;
    return true;
}

bool query_bool(const struct query *query, const char *name, bool absent)
{
    const char *text = query_text(query, name);
    bool truth;

    return text && read_bool(text, &truth) ? truth : absent;
}

int64_t query_duration_ms(const struct query *query, const char *name)
{
    const char *text = query_text(query, name);
    struct error err;
    uint64_t ms;

    return text && duration_parse(text, name, &ms, &err) == 0 ? (int64_t)ms : -1;
}

/* A plain number, or one with its unit. */
static int read_with_unit(enum parameter_type type, const char *text, const char *name,
                          int64_t *out, struct error *err)
{
    uint64_t number = 0;

    if (!text[strspn(text, "0123456789")] && read_integer(text, out))
        return 0;
    int status = type == PARAMETER_MS ? duration_parse(text, name, &number, err)
                                      : size_parse(text, name, &number, err);
    if (status == 0)
        *out = number > INT64_MAX ? INT64_MAX : (int64_t)number;
    return status;
}

static int64_t query_with_unit(const struct query *query, enum parameter_type type,
                               const char *name, int64_t absent)
{
    const char *text = query_text(query, name);
    struct error err;
    int64_t number;

    return text && read_with_unit(type, text, name, &number, &err) == 0 ? number : absent;
}

int64_t query_ms(const struct query *query, const char *name, int64_t absent)
{
    return query_with_unit(query, PARAMETER_MS, name, absent);
}

int64_t query_amount(const struct query *query, const char *name, int64_t absent)
{
    return query_with_unit(query, PARAMETER_AMOUNT, name, absent);
}

static int check_range(const struct parameter *parameter, int64_t number, const char *text,
                       struct error *err)
{
    if (parameter->minimum == parameter->maximum ||
        (number >= parameter->minimum && number <= parameter->maximum))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "%s: must be between %" PRId64 " and %" PRId64 ", not '%.40s'",
                     parameter->name, parameter->minimum, parameter->maximum, text);
}

static int check_integer(const struct parameter *parameter, const char *text, struct error *err)
{
    int64_t number;

    if (!read_integer(text, &number))
        return error_set(err, ERROR_INVALID, "%s: must be a whole number, not '%.40s'",
                         parameter->name, text);
    return check_range(parameter, number, text, err);
}

static int check_word(const struct parameter *parameter, const char *text, struct error *err)
{
    char list[300] = "";
    size_t used = 0;
    const char *const *words = parameter->words;

    for (size_t i = 0; words[i]; i++) {
        if (strcmp(words[i], text) == 0)
            return 0;
        if (used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'",
                                     i == 0         ? ""
                                     : words[i + 1] ? ", "
                                                    : " or ",
                                     words[i]);
    }
    return error_set(err, ERROR_INVALID, "%s: must be %s, not '%.40s'", parameter->name, list,
                     text);
}

static int check(const struct parameter *parameter, const char *text, struct error *err)
{
    uint64_t ms;
    int64_t number;
    bool truth;

    switch (parameter->type) {
    case PARAMETER_TEXT:
        return 0;
    case PARAMETER_INTEGER:
        return check_integer(parameter, text, err);
    case PARAMETER_BOOL:
        if (read_bool(text, &truth))
            return 0;
        return error_set(err, ERROR_INVALID, "%s: must be 'true' or 'false', not '%.40s'",
                         parameter->name, text);
    case PARAMETER_DURATION:
        return duration_parse(text, parameter->name, &ms, err);
    case PARAMETER_WORD:
        return check_word(parameter, text, err);
    case PARAMETER_MS:
    case PARAMETER_AMOUNT:
        return read_with_unit(parameter->type, text, parameter->name, &number, err) < 0
                   ? -1
                   : check_range(parameter, number, text, err);
    }
    return 0;
}

int query_check(const struct query *query, const struct parameter *parameters, struct error *err)
{
    for (const struct parameter *parameter = parameters; parameter && parameter->name;
         parameter++) {
        const char *text = query_text(query, parameter->name);
        if (text && check(parameter, text, err) < 0)
            return error_field(err, parameter->name);
    }
    return 0;
}

static int refuse_name(const char *name, const struct parameter *parameters, struct error *err)
{
    struct suggestion suggestion = {.wanted = name};

    for (; parameters && parameters->name; parameters++)
        suggestion_consider(&suggestion, parameters->name);
    if (suggestion.nearest)
        (void)error_set(err, ERROR_UNKNOWN_FIELD,
                        "%.60s: there is no such parameter; did you mean '%s'?", name,
                        suggestion.nearest);
    else
        (void)error_set(err, ERROR_UNKNOWN_FIELD, "%.60s: there is no such parameter", name);
    return error_field(err, name);
}

static bool is_parameter(const struct parameter *parameters, const char *name)
{
    for (; parameters && parameters->name; parameters++) {
        if (strcmp(parameters->name, name) == 0)
            return true;
    }
    return false;
}

int query_check_names(const struct query *query, const struct parameter *parameters,
                      struct error *err)
{
    for (size_t i = 0; i < query->count; i++) {
        if (!is_parameter(parameters, query->pairs[i].name))
            return refuse_name(query->pairs[i].name, parameters, err);
    }
    return 0;
}
