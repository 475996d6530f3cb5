/* SPDX-License-Identifier: Apache-2.0 */
/* Base64; see base64.h. */
#include "base/base64.h"

#include <stdint.h>

static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#define NONE 0x80 // no letter: the one value with this bit

/* What each of the first 128 bytes stands for. */
static const uint8_t values[128] = {
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 62,   NONE, NONE, NONE, 63,
    52,   53,   54,   55,   56,   57,   58,   59,   60,   61,   NONE, NONE, NONE, NONE, NONE, NONE,
    NONE, 0,    1,    2,    3,    4,    5,    6,    7,    8,    9,    10,   11,   12,   13,   14,
    15,   16,   17,   18,   19,   20,   21,   22,   23,   24,   25,   NONE, NONE, NONE, NONE, NONE,
    NONE, 26,   27,   28,   29,   30,   31,   32,   33,   34,   35,   36,   37,   38,   39,   40,
    41,   42,   43,   44,   45,   46,   47,   48,   49,   50,   51,   NONE, NONE, NONE, NONE, NONE,
};

static uint8_t value_of(char c)
{
    return (unsigned char)c < 128 ? values[(unsigned char)c] : NONE;
}

size_t base64_length(size_t length)
{
    return (length + 2) / 3 * 4;
}

void base64_encode(const void *data, size_t length, char *text)
{
    const unsigned char *at = data;

    for (; length >= 3; length -= 3, at += 3) {
        *text++ = letters[at[0] >> 2];
        *text++ = letters[(at[0] & 3) << 4 | at[1] >> 4];
        *text++ = letters[(at[1] & 15) << 2 | at[2] >> 6];
        *text++ = letters[at[2] & 63];
    }
    if (length) {
        unsigned second = length > 1 ? at[1] : 0;
        *text++ = letters[at[0] >> 2];
        *text++ = letters[(at[0] & 3) << 4 | second >> 4];
        *text++ = length > 1 ? letters[(second & 15) << 2] : '=';
        *text++ = '=';
    }
    *text = '\0';
}

size_t base64_room(size_t length)
{
    return length / 4 * 3;
}

/* The last four characters, of which up to two are padding; how many bytes they are, or -1. */
static int decode_last(const char *text, unsigned char *out)
{
    uint8_t a = value_of(text[0]), b = value_of(text[1]), c = value_of(text[2]),
            d = value_of(text[3]);

    if ((a | b) & NONE)
        return -1;
    if (text[2] == '=' && text[3] == '=' && (b & 15) == 0) {
        out[0] = (unsigned char)(a << 2 | b >> 4);
        return 1;
    }
    if (c & NONE)
        return -1;
    if (text[3] == '=' && (c & 3) == 0) {
        out[0] = (unsigned char)(a << 2 | b >> 4);
        out[1] = (unsigned char)(b << 4 | c >> 2);
        return 2;
    }
    if (d & NONE)
        return -1;
    out[0] = (unsigned char)(a << 2 | b >> 4);
    out[1] = (unsigned char)(b << 4 | c >> 2);
    out[2] = (unsigned char)(c << 6 | d);
    return 3;
}

/* The first byte from `at` on that is no letter; `length` when there is none. */
static size_t find_bad(const char *text, size_t at, size_t length)
{
    while (at < length && !(value_of(text[at]) & NONE))
        at++;
    return at;
}

ssize_t base64_decode(const char *text, size_t length, void *out, size_t *bad)
{
    unsigned char *to = out;
    size_t at = 0;

    for (; length - at > 4; at += 4) {
        uint8_t a = value_of(text[at]), b = value_of(text[at + 1]);
        uint8_t c = value_of(text[at + 2]), d = value_of(text[at + 3]);
        if ((a | b | c | d) & NONE) {
            *bad = find_bad(text, at, length);
            return -1;
        }
        *to++ = (unsigned char)(a << 2 | b >> 4);
        *to++ = (unsigned char)(b << 4 | c >> 2);
        *to++ = (unsigned char)(c << 6 | d);
    }
    if (length == 0)
        return 0;
    int last = length - at == 4 ? decode_last(text + at, to) : -1;
    if (last < 0) {
        size_t found = find_bad(text, at, length);
        *bad = found < length && text[found] != '=' ? found : length;
        return -1;
    }
    return to + last - (unsigned char *)out;
}
