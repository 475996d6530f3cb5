/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of lists; see page.h. */
#include "front/agentuity/page.h"

#include <string.h>

const char *const page_directions[] = {"asc", "desc", NULL};

static int read_number(const struct query *query, const char *name, int64_t absent, int64_t *out,
                       struct error *err)
{
    int64_t number = query_integer(query, name, absent);

    if (number < 0)
        return error_set(err, ERROR_INVALID, "%s: must not be below 0", name);
    *out = number;
    return 0;
}

int page_read(const struct query *query, struct page *out, struct error *err)
{
    struct page page = {0};

    if (read_number(query, "limit", PAGE_LIMIT, &page.limit, err) < 0 ||
        read_number(query, "offset", 0, &page.offset, err) < 0)
        return -1;
    *out = page;
    return 0;
}

bool page_is_descending(const struct query *query, bool absent)
{
    const char *direction = query_text(query, "direction");

    return direction ? strcmp(direction, "desc") == 0 : absent;
}
