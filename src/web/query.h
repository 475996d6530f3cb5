/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query strings by tables: what a parameter is called and how it is spelled.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"
#include "base/arena.h"

#include <stdbool.h>
#include <stdint.h>

enum parameter_type {
    PARAMETER_TEXT,
    PARAMETER_INTEGER,
    PARAMETER_BOOL,
    PARAMETER_DURATION,
    PARAMETER_WORD,
    PARAMETER_MS,     // "timeoutMs": 30000 or 30s, within the range
    PARAMETER_AMOUNT, // "limitBytes": 1048576 or 1Mi, within the range
};

struct parameter {
    const char *name; // NULL ends a table
    enum parameter_type type;
    const char *const *words; // PARAMETER_WORD: one of these
    const char *help;
    int64_t minimum,
        maximum; // PARAMETER_INTEGER, _MS, _AMOUNT: range (equal: any; of the last two: from 0)
    const char *example; // as text; may be NULL
};

/* A query string, decoded. */
struct query;
/* `text` may be NULL. ERROR_INVALID for what percent.h refuses and for more than QUERY_MAXIMUM names. */
#define QUERY_MAXIMUM 200
int query_parse(const char *text, struct arena *arena, struct query **out, struct error *err);
/* ERROR_INVALID for values that are not of their parameter's type; unknown names are ignored. */
int query_check(const struct query *query, const struct parameter *parameters, struct error *err);
/* ERROR_UNKNOWN_FIELD for a name that is not in the table (NULL: none is). */
int query_check_names(const struct query *query, const struct parameter *parameters,
                      struct error *err);
/* Of a name that was given twice the first counts. What is not spelled as its type counts as absent in the calls below. */
const char *query_text(const struct query *query, const char *name); // NULL: absent or empty
int64_t query_integer(const struct query *query, const char *name, int64_t absent);
bool query_bool(const struct query *query, const char *name, bool absent);
/* Of PARAMETER_MS and PARAMETER_AMOUNT. */
int64_t query_ms(const struct query *query, const char *name, int64_t absent);
int64_t query_amount(const struct query *query, const char *name, int64_t absent);
/* Go's spelling; -1 when absent. */
int64_t query_duration_ms(const struct query *query, const char *name);
