/* SPDX-License-Identifier: Apache-2.0 */
/* %XX in paths and queries; see percent.h. */
#include "web/percent.h"

#include "base/hex.h"
#include "base/utf8.h"

/* The byte that the escape at the start of `text` stands for, or -1. */
static int read_escape(const char *text, size_t length)
{
    int high = length > 2 ? hex_digit(text[1]) : -1;
    int low = length > 2 ? hex_digit(text[2]) : -1;

    return high < 0 || low < 0 ? -1 : high << 4 | low;
}

int percent_decode(const char *text, size_t length, bool is_form, const char *what, char *out,
                   size_t *out_length, struct error *err)
{
    char *to = out;
    bool is_ascii = true;

    for (size_t at = 0; at < length; at++) {
        int c = (unsigned char)text[at];
        if (c == '%') {
            c = read_escape(text + at, length - at);
            if (c < 0)
                return error_set(err, ERROR_INVALID,
                                 "%s has a '%%' that is not followed by two hexadecimal digits",
                                 what);
            at += 2;
        } else if (c == '+' && is_form) {
            c = ' ';
        }
        if (c == 0)
            return error_set(err, ERROR_INVALID, "%s holds a NUL", what);
        is_ascii &= c < 0x80;
        *to++ = (char)c;
    }
    *to = '\0';
    if (!is_ascii && !utf8_is_valid(out, (size_t)(to - out)))
        return error_set(err, ERROR_INVALID, "%s is not UTF-8", what);
    *out_length = (size_t)(to - out);
    return 0;
}

static bool is_plain(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

int percent_encode(const char *text, struct buffer *out, struct error *err)
{
    static const char digits[] = "0123456789ABCDEF";

    for (; *text; text++) {
        const char escape[] = {'%', digits[(unsigned char)*text >> 4], digits[*text & 15]};
        bool is_itself = is_plain(*text);
        if (buffer_add(out, is_itself ? text : escape, is_itself ? 1 : sizeof escape, err) < 0)
            return -1;
    }
    return 0;
}
