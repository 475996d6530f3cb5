/* SPDX-License-Identifier: Apache-2.0 */
/* Lists by pages; see api_page.h. */
#include "front/api/api_page.h"

#include "base/base64.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MARK_TEXT (PAGE_MARK_ID + 24)
#define CURSOR_MAXIMUM 300

/* Between base64 and the alphabet that needs no escapes in a query; without padding. */
static void swap(char *text, const char *from, const char *to)
{
    for (; *text; text++) {
        if (*text == from[0])
            *text = to[0];
        else if (*text == from[1])
            *text = to[1];
    }
}

/* "1767326645678 0abc…" as base64: whoever takes it apart finds nothing to rely on. */
const char *api_page_cursor(struct call *call, const struct page_mark *mark)
{
    char plain[MARK_TEXT];

    if (!*mark->id)
        return NULL;
    int length = snprintf(plain, sizeof plain, "%" PRId64 " %s", mark->at, mark->id);
    char *text = call_alloc(call, base64_length((size_t)length) + 1);
    base64_encode(plain, (size_t)length, text);
    text[strcspn(text, "=")] = '\0';
    swap(text, "+/", "-_");
    return text;
}

static int decode(const char *cursor, char out[CURSOR_MAXIMUM])
{
    char text[CURSOR_MAXIMUM + 4];
    size_t length = strlen(cursor), bad;

    if (length >= CURSOR_MAXIMUM || strpbrk(cursor, "+/="))
        return -1;
    memcpy(text, cursor, length + 1);
    swap(text, "-_", "+/");
    while (length % 4)
        text[length++] = '=';
    ssize_t got = base64_decode(text, length, out, &bad);
    if (got < 0 || memchr(out, '\0', (size_t)got))
        return -1;
    out[got] = '\0';
    return 0;
}

static int read_mark(const char *cursor, struct page_mark *out)
{
    char plain[CURSOR_MAXIMUM];
    char *end;

    if (decode(cursor, plain) < 0)
        return -1;
    errno = 0;
    out->at = strtoll(plain, &end, 10);
    if (errno || end == plain || *end != ' ' || !end[1] || strlen(end + 1) >= sizeof out->id)
        return -1;
    (void)snprintf(out->id, sizeof out->id, "%s", end + 1);
    return 0;
}

int api_page_read(struct call *call, struct page *out, struct error *err)
{
    const char *cursor = query_text(call->query, "cursor");
    struct page page = {.limit = query_integer(call->query, "limit", API_PAGE_LIMIT),
                        .is_marked = true};

    if (cursor && read_mark(cursor, &page.after) < 0) {
        (void)error_set(err, ERROR_INVALID,
                        "cursor: '%.40s' is none: take nextCursor of the page before", cursor);
        return error_field(err, "cursor");
    }
    *out = page;
    return 0;
}

int api_answer_page(struct call *call, const struct answer_field *fields, const void *items,
                    size_t count, const struct page_mark *next)
{
    const struct api_list list = {{items, count}, api_page_cursor(call, next)};

    return api_answer(call, 200, fields, &list);
}
