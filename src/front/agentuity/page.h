/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which part of a list is asked for: limit and offset of a query.
 * Threads: plain values.
 */
#pragma once
#include "web/call.h"

#define PAGE_LIMIT 50 // when none is given

#define PAGE_LIMIT_PARAMETER                                                                       \
    {                                                                                              \
        "limit", PARAMETER_INTEGER, NULL, "at most so many, 100 at the most; 50 when not given"    \
    }
#define PAGE_OFFSET_PARAMETER                                                                      \
    {                                                                                              \
        "offset", PARAMETER_INTEGER, NULL, "how many to skip"                                      \
    }
#define PAGE_DIRECTION_PARAMETER                                                                   \
    {                                                                                              \
        "direction", PARAMETER_WORD, page_directions, NULL                                         \
    }

extern const char *const page_directions[];

/* Too many are cut to the maximum by the store; ERROR_INVALID below 0. */
int page_read(const struct query *query, struct page *out, struct error *err);
/* By `direction`; `absent` without. */
bool page_is_descending(const struct query *query, bool absent);
