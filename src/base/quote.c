/* SPDX-License-Identifier: Apache-2.0 */
/* Quoting; see quote.h. */
#include "base/quote.h"

#include "base/utf8.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

/* Control characters, DEL, quote and backslash. */
static int add_escape(struct buffer *to, unsigned char c, struct error *err)
{
    static const char letters[] = "\"\\\b\f\n\r\t";
    static const char names[] = "\"\\bfnrt";
    char text[8];
    const char *at = c ? strchr(letters, c) : NULL;

    if (at) {
        text[0] = '\\';
        text[1] = names[at - letters];
        return buffer_add(to, text, 2, err);
    }
    int length = snprintf(text, sizeof text, "\\u%04x", c);
    return buffer_add(to, text, (size_t)length, err);
}

/* Two bytes: U+0080 to U+009F, which begin sequences of a terminal as Escape does. */
static bool is_upper_control(const char *text)
{
    unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    return first == 0xc2 && second >= 0x80 && second < 0xa0;
}

static bool is_surrogate(const char *text, size_t length)
{
    return length >= 3 && (unsigned char)text[0] == 0xed && (unsigned char)text[1] >= 0xa0 &&
           (unsigned char)text[1] <= 0xbf && ((unsigned char)text[2] & 0xc0) == 0x80;
}

static int add_surrogate(struct buffer *to, const char *text, struct error *err)
{
    unsigned code =
        0xd000u | ((unsigned char)text[1] & 0x3fu) << 6 | ((unsigned char)text[2] & 0x3fu);
    return buffer_addf(to, err, "\\u%04x", code);
}

static int add_inside(struct buffer *to, const char *text, size_t length, bool is_exact,
                      struct error *err)
{
    size_t at = 0;
    while (at < length) {
        size_t from = at;
        while (at < length && (is_plain((unsigned char)text[at]) || (is_exact && text[at] == 0x7f)))
            at++;
        if (at > from && buffer_add(to, text + from, at - from, err) < 0)
            return -1;
        if (at == length)
            break;
        size_t size = utf8_length(text + at, length - at);
        int added;
        if (size == 1) {
            added = add_escape(to, (unsigned char)text[at], err);
        } else if (size == 2 && !is_exact && is_upper_control(text + at)) {
            added = add_escape(to, (unsigned char)text[at + 1],
                               err); // U+0080 and on, by their second byte
        } else if (size > 1) {
            added = buffer_add(to, text + at, size, err);
        } else if (is_exact && is_surrogate(text + at, length - at)) {
            size = 3;
            added = add_surrogate(to, text + at, err);
        } else {
            size = utf8_skip(text + at, length - at);
            added = buffer_add_text(to, UTF8_REPLACEMENT, err);
        }
        if (added < 0)
            return -1;
        at += size;
    }
    return 0;
}

int quote_json_part(struct buffer *to, const char *text, size_t length, struct error *err)
{
    return add_inside(to, text, length, false, err);
}

int quote_json_exact(struct buffer *to, const char *text, size_t length, struct error *err)
{
    return add_inside(to, text, length, true, err);
}

int quote_json(struct buffer *to, const char *text, size_t length, struct error *err)
{
    if (buffer_add(to, "\"", 1, err) < 0 || quote_json_part(to, text, length, err) < 0)
        return -1;
    return buffer_add(to, "\"", 1, err);
}

/* Three bytes: what lets a text be read in another order than it has (U+202A to U+202E, U+2066 to U+2069). */
static bool is_reordering(const char *text)
{
    unsigned char last = (unsigned char)text[2];

    return (memcmp(text, "\xe2\x80", 2) == 0 && last >= 0xaa && last <= 0xae) ||
           (memcmp(text, "\xe2\x81", 2) == 0 && last >= 0xa6 && last <= 0xa9);
}

void quote_scrub(char *text)
{
    while (*text) {
        size_t size = utf8_length(text, strnlen(text, UTF8_MAX));
        bool is_bad = size == 0 || (size == 1 && ((unsigned char)*text < ' ' || *text == 0x7f)) ||
                      (size == 2 && is_upper_control(text)) || (size == 3 && is_reordering(text));
        size = size ? size : 1;
        if (is_bad)
            memset(text, '?', size);
        text += size;
    }
}
