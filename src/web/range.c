/* SPDX-License-Identifier: Apache-2.0 */
/* One range of bytes: "bytes=100-199", "bytes=100-", "bytes=-100". */
#include "web/range.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* Digits, if there are any; past what fits it stays at the largest number. */
static const char *scan_number(const char *text, bool *has_digits, uint64_t *out)
{
    uint64_t number = 0;
    const char *at = text;

    for (; *at >= '0' && *at <= '9'; at++) {
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            number = UINT64_MAX;
    }
    *has_digits = at > text;
    *out = number;
    return at;
}

static enum range last_bytes(uint64_t wanted, uint64_t size, uint64_t *first, uint64_t *length)
{
    if (wanted == 0 || size == 0)
        return RANGE_OUTSIDE;
    *length = wanted < size ? wanted : size;
    *first = size - *length;
    return RANGE_PART;
}

enum range range_read(const char *text, uint64_t size, uint64_t *first, uint64_t *length)
{
    static const char unit[] = "bytes=";
    bool has_from = false, has_to = false;
    uint64_t from = 0, to = 0;

    if (!text || strncasecmp(text, unit, sizeof unit - 1) != 0)
        return RANGE_NONE;
    text = scan_number(text + sizeof unit - 1, &has_from, &from);
    if (*text++ != '-')
        return RANGE_NONE;
    text = scan_number(text, &has_to, &to);
    if (*text || (!has_from && !has_to) || (has_from && has_to && to < from))
        return RANGE_NONE;
    if (!has_from)
        return last_bytes(to, size, first, length);
    if (from >= size)
        return RANGE_OUTSIDE;
    *first = from;
    *length = has_to && to < size ? to - from + 1 : size - from;
    return RANGE_PART;
}
