/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists by pages: ?limit= and ?cursor= are read, {"items": […], "nextCursor": "…"} is answered. A cursor is a place in the list, not a number
 * of entries, so nothing is told twice or left out while things come and go.
 * Threads: any.
 */
#pragma once
#include "front/api/api.h"
#include "model/page.h"

#define API_PAGE_LIMIT 50

/* The first rows of a list's table of parameters. */
#define API_PAGE_PARAMETERS                                                                        \
    {"limit", PARAMETER_INTEGER, .help = "at most so many; 50 when not given", .minimum = 1,       \
     .maximum = PAGE_MAX},                                                                         \
    {                                                                                              \
        "cursor", PARAMETER_TEXT, .help = "nextCursor of the page before"                          \
    }

/* From the call's query: a marked page. ERROR_INVALID for a cursor that is none. */
int api_page_read(struct call *call, struct page *out, struct error *err);

/* What is answered. A noun describes its list by API_LIST_FIELDS in a table of its own. */
struct api_list {
    struct answer_list items;
    const char *next_cursor;
};
#define API_LIST_FIELDS(item_fields, item_type)                                                    \
    {"items",           ANSWER_LIST,           offsetof(struct api_list, items),                   \
     .is_needed = true, .fields = item_fields, .item_size = sizeof(item_type)},                    \
    {                                                                                              \
        "nextCursor", ANSWER_TEXT, offsetof(struct api_list, next_cursor),                         \
            .help = "for the next page; not there at the end of the list"                          \
    }

/* Answers with a page: `fields` is the noun's table. Returns 0. */
int api_answer_page(struct call *call, const struct answer_field *fields, const void *items,
                    size_t count, const struct page_mark *next);

/* The cursor of a place; NULL for the end of the list. Goes with the call. */
const char *api_page_cursor(struct call *call, const struct page_mark *mark);
