/* SPDX-License-Identifier: Apache-2.0 */
/* UTF-8, one character at a time; see utf8.h. The ranges are Unicode's table 3-7. */
#include "base/utf8.h"

/* How many bytes the character beginning with `first` has, and what its second byte may be; 0 for
 * no such character. */
static size_t shape_of(unsigned char first, unsigned char *low, unsigned char *high)
{
    *low = 0x80;
    *high = 0xbf;
    if (first < 0x80)
        return 1;
    if (first >= 0xc2 && first <= 0xdf)
        return 2;
    if (first >= 0xe0 && first <= 0xef) {
        if (first == 0xe0)
            *low = 0xa0; // below: overlong
        if (first == 0xed)
            *high = 0x9f; // above: surrogates
        return 3;
    }
    if (first >= 0xf0 && first <= 0xf4) {
        if (first == 0xf0)
            *low = 0x90; // below: overlong
        if (first == 0xf4)
            *high = 0x8f; // above: past U+10FFFF
        return 4;
    }
    return 0;
}

/* Bytes of `text` that fit its first byte's shape; *out_size is the size of the whole shape. */
static size_t fitting(const char *text, size_t length, size_t *out_size)
{
    unsigned char low, high;

    *out_size = length ? shape_of((unsigned char)text[0], &low, &high) : 0;
    if (*out_size == 0)
        return 0;
    size_t at = 1;
    for (; at < *out_size && at < length; at++) {
        unsigned char byte = (unsigned char)text[at];
        if (byte < low || byte > high)
            break;
        low = 0x80;
        high = 0xbf;
    }
    return at;
}

size_t utf8_length(const char *text, size_t length)
{
    size_t size;
    return fitting(text, length, &size) == size ? size : 0;
}

bool utf8_is_valid(const char *text, size_t length)
{
    for (size_t at = 0; at < length;) {
        size_t step = (unsigned char)text[at] < 0x80 ? 1 : utf8_length(text + at, length - at);
        if (step == 0)
            return false;
        at += step;
    }
    return true;
}

size_t utf8_skip(const char *text, size_t length)
{
    size_t size;
    size_t fit = fitting(text, length, &size);
    return fit ? fit : 1;
}

bool utf8_is_partial(const char *text, size_t length)
{
    size_t size;
    size_t fit = fitting(text, length, &size);
    return fit == length && fit < size;
}

size_t utf8_encode(uint32_t code, char out[UTF8_MAX])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}
