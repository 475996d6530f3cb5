/* SPDX-License-Identifier: Apache-2.0 */
/* Text as JavaScript sees it; see wide.h. */
#include "front/aionis/wide.h"

#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

/* Buffers here have no maximum, so adding to them cannot fail. */
static void add_bytes(struct buffer *out, const char *text, size_t length)
{
    struct error ignored;
    (void)buffer_add(out, text, length, &ignored);
}

/* The character at the start, and how many bytes it takes; a half of a pair counts as one. */
static size_t decode_first(struct wide_text text, uint32_t *code)
{
    const unsigned char *at = (const unsigned char *)text.text;

    if (at[0] < 0x80 || text.length < 2) {
        *code = at[0];
        return 1;
    }
    if (at[0] < 0xe0 || text.length < 3) {
        *code = (at[0] & 0x1fu) << 6 | (at[1] & 0x3fu);
        return 2;
    }
    if (at[0] < 0xf0 || text.length < 4) {
        *code = (at[0] & 0x0fu) << 12 | (at[1] & 0x3fu) << 6 | (at[2] & 0x3fu);
        return 3;
    }
    *code = (at[0] & 0x07u) << 18 | (at[1] & 0x3fu) << 12 | (at[2] & 0x3fu) << 6 | (at[3] & 0x3fu);
    return 4;
}

static struct wide_text behind(struct wide_text text, size_t bytes)
{
    return (struct wide_text){text.text + bytes, text.length - bytes};
}

size_t wide_units(struct wide_text text)
{
    size_t units = 0;

    for (size_t i = 0; i < text.length; i++) {
        unsigned char c = (unsigned char)text.text[i];
        units += (c & 0xc0) != 0x80;
        units += c >= 0xf0;
    }
    return units;
}

/* ECMAScript's WhiteSpace and LineTerminator. */
static bool is_space(uint32_t code)
{
    return (code >= 0x09 && code <= 0x0d) || code == 0x20 || code == 0xa0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200a) || code == 0x2028 || code == 0x2029 ||
           code == 0x202f || code == 0x205f || code == 0x3000 || code == 0xfeff;
}

/* Where its last character begins. */
static size_t last_start(struct wide_text text)
{
    size_t at = text.length - 1;

    while (at > 0 && ((unsigned char)text.text[at] & 0xc0) == 0x80)
        at--;
    return at;
}

static struct wide_text trim_end(struct wide_text text)
{
    uint32_t code;

    while (text.length > 0) {
        size_t at = last_start(text);
        (void)decode_first(behind(text, at), &code);
        if (!is_space(code))
            break;
        text.length = at;
    }
    return text;
}

static struct wide_text trim_start(struct wide_text text)
{
    uint32_t code;

    while (text.length > 0) {
        size_t size = decode_first(text, &code);
        if (!is_space(code))
            break;
        text = behind(text, size);
    }
    return text;
}

struct wide_text wide_trim(struct wide_text text)
{
    return trim_end(trim_start(text));
}

bool wide_is_blank(struct wide_text text)
{
    return wide_trim(text).length == 0;
}

/* The first so many units; half of a pair is put behind where the cut is in one. */
static size_t add_units(struct wide_text text, size_t units, struct buffer *out)
{
    size_t bytes = 0;
    uint32_t code = 0;

    while (units > 0 && bytes < text.length) {
        size_t size = decode_first(behind(text, bytes), &code);
        size_t wide = size == 4 ? 2 : 1;
        if (wide > units)
            break;
        bytes += size;
        units -= wide;
    }
    add_bytes(out, text.text, bytes);
    if (units == 0 || bytes == text.length)
        return bytes;
    char half[UTF8_MAX];
    add_bytes(out, half, utf8_encode(0xd800 + ((code - 0x10000) >> 10), half));
    return bytes;
}

void wide_clip(struct wide_text text, size_t units, struct buffer *out)
{
    if (wide_units(text) <= units) {
        add_bytes(out, text.text, text.length);
        return;
    }
    size_t before = out->length;
    (void)add_units(text, units - 1, out);
    struct wide_text kept = {out->data + before, out->length - before};
    out->length = before + trim_end(kept).length;
    add_bytes(out, "...", 3);
}

void wide_squeeze(struct wide_text text, size_t units, struct buffer *out)
{
    autobuffer plain = {0};
    size_t count = 0;
    uint32_t code;

    text = wide_trim(text);
    // A few more than are wanted, so that it can be seen that it is longer.
    while (text.length > 0 && count <= units + 2) {
        size_t size = decode_first(text, &code);
        bool is_gap = is_space(code);
        add_bytes(&plain, is_gap ? " " : text.text, is_gap ? 1 : size);
        count += size == 4 ? 2 : 1;
        text = is_gap ? trim_start(text) : behind(text, size);
    }
    wide_clip((struct wide_text){plain.data, plain.length}, units, out);
}

void wide_decode(const char *bytes, size_t length, struct buffer *out)
{
    size_t at = 0;

    while (at < length) {
        size_t from = at, size;
        while (at < length && (size = utf8_length(bytes + at, length - at)) > 0)
            at += size;
        add_bytes(out, bytes + from, at - from);
        if (at == length)
            return;
        add_bytes(out, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
        at += utf8_skip(bytes + at, length - at);
    }
}

void wide_well_formed(struct wide_text text, struct buffer *out)
{
    uint32_t code;

    while (text.length > 0) {
        size_t size = decode_first(text, &code);
        bool is_half = code >= 0xd800 && code <= 0xdfff;
        add_bytes(out, is_half ? UTF8_REPLACEMENT : text.text,
                  is_half ? strlen(UTF8_REPLACEMENT) : size);
        text = behind(text, size);
    }
}

void wide_tail(struct wide_text text, size_t bytes, struct buffer *out)
{
    if (text.length > bytes)
        text = behind(text, text.length - bytes);
    while (text.length > 0 && ((unsigned char)text.text[0] & 0xc0) == 0x80) {
        add_bytes(out, UTF8_REPLACEMENT, strlen(UTF8_REPLACEMENT));
        text = behind(text, 1);
    }
    add_bytes(out, text.text, text.length);
}

size_t wide_whole(const char *bytes, size_t length)
{
    for (size_t back = 1; back < UTF8_MAX && back <= length; back++) {
        if (((unsigned char)bytes[length - back] & 0xc0) != 0x80)
            return utf8_is_partial(bytes + length - back, back) ? length - back : length;
    }
    return length;
}
