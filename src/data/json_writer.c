/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON writer; see json_writer.h. */
#include "data/json_writer.h"

#include "base/decimal.h"
#include "base/quote.h"
#include "base/utf8.h"

#include <assert.h>
#include <string.h>

#define PIECE_BYTES (16 << 10)

void json_writer_init(struct json_writer *writer, struct buffer *to)
{
    *writer = (struct json_writer){.to = to};
}

static bool has_failed(const struct json_writer *writer)
{
    return !error_is(&writer->error, ERROR_NONE);
}

static void add(struct json_writer *writer, const char *text, size_t length)
{
    if (has_failed(writer))
        return;
    (void)buffer_add(writer->to, text, length, &writer->error);
}

/* The comma before a value or key, where one is due. */
static void separate(struct json_writer *writer)
{
    if (writer->is_after_key) {
        writer->is_after_key = false;
        return;
    }
    if (writer->depth == 0)
        return;
    bool *has_items = &writer->has_items[writer->depth - 1];
    if (*has_items)
        add(writer, ",", 1);
    *has_items = true;
}

static void begin(struct json_writer *writer, bool is_map)
{
    assert(writer->depth < JSON_WRITER_DEPTH);
    separate(writer);
    add(writer, is_map ? "{" : "[", 1);
    writer->is_map[writer->depth] = is_map;
    writer->has_items[writer->depth] = false;
    writer->depth++;
}

static void end(struct json_writer *writer, bool is_map)
{
    assert(writer->depth > 0 && writer->is_map[writer->depth - 1] == is_map);
    assert(!writer->is_after_key);
    writer->depth--;
    add(writer, is_map ? "}" : "]", 1);
}

void json_map_begin(struct json_writer *writer)
{
    begin(writer, true);
}

void json_map_end(struct json_writer *writer)
{
    end(writer, true);
}

void json_list_begin(struct json_writer *writer)
{
    begin(writer, false);
}

void json_list_end(struct json_writer *writer)
{
    end(writer, false);
}

void json_null(struct json_writer *writer)
{
    separate(writer);
    add(writer, "null", 4);
}

void json_bool(struct json_writer *writer, bool truth)
{
    separate(writer);
    add(writer, truth ? "true" : "false", truth ? 4 : 5);
}

void json_integer(struct json_writer *writer, int64_t number)
{
    char text[DECIMAL_TEXT];

    separate(writer);
    add(writer, text, decimal_format(number, text));
}

void json_natural(struct json_writer *writer, uint64_t number)
{
    char text[DECIMAL_TEXT];

    separate(writer);
    add(writer, text, decimal_format_natural(number, text));
}

/* ---- strings ---- */

void json_strings(struct json_writer *writer, const char *key, const char *const *strings)
{
    if (!strings || !*strings)
        return;
    json_key(writer, key);
    json_list_begin(writer);
    for (; *strings; strings++)
        json_string(writer, *strings);
    json_list_end(writer);
}

void json_string_begin(struct json_writer *writer)
{
    separate(writer);
    add(writer, "\"", 1);
    writer->n_rest = 0;
}

static void add_quoted(struct json_writer *writer, const char *text, size_t length)
{
    if (has_failed(writer))
        return;
    (void)quote_json_part(writer->to, text, length, &writer->error);
}

/* How many bytes at the end of `text` begin a character that goes on behind it. */
static size_t cut_off(const char *text, size_t length)
{
    for (size_t back = 1; back < UTF8_MAX && back <= length; back++) {
        unsigned char c = (unsigned char)text[length - back];
        if ((c & 0xc0) != 0x80)
            return utf8_is_partial(text + length - back, back) ? back : 0;
    }
    return 0;
}

/* Completes the character left over from the piece before, byte by byte; how many bytes that took.
 */
static size_t complete_rest(struct json_writer *writer, const char *text, size_t length)
{
    size_t used = 0;
    while (writer->n_rest && used < length) {
        writer->rest[writer->n_rest] = text[used];
        if (utf8_is_partial(writer->rest, writer->n_rest + 1)) {
            writer->n_rest++;
            used++;
            continue;
        }
        if (utf8_length(writer->rest, writer->n_rest + 1)) {
            writer->n_rest++;
            used++;
        } // else: the byte begins something new
        add_quoted(writer, writer->rest, writer->n_rest);
        writer->n_rest = 0;
    }
    return used;
}

void json_string_piece(struct json_writer *writer, const char *text, size_t length)
{
    size_t used = complete_rest(writer, text, length);
    text += used;
    length -= used;
    while (length > 0) { // in bites, so that a stream's buffer stays small
        size_t bite = length > PIECE_BYTES ? PIECE_BYTES : length;
        size_t rest = cut_off(text, bite);
        add_quoted(writer, text, bite - rest);
        text += bite - rest;
        length -= bite - rest;
        if (length == rest) {
            memcpy(writer->rest, text, rest);
            writer->n_rest = rest;
            return;
        }
    }
}

void json_string_end(struct json_writer *writer)
{
    if (writer->n_rest)
        add_quoted(writer, writer->rest, writer->n_rest);
    writer->n_rest = 0;
    add(writer, "\"", 1);
}

void json_bytes(struct json_writer *writer, const char *text, size_t length)
{
    json_string_begin(writer);
    json_string_piece(writer, text, length);
    json_string_end(writer);
}

void json_string(struct json_writer *writer, const char *text)
{
    if (text)
        json_bytes(writer, text, strlen(text));
    else
        json_null(writer);
}

void json_key(struct json_writer *writer, const char *key)
{
    assert(writer->depth > 0 && writer->is_map[writer->depth - 1] && !writer->is_after_key);
    json_string(writer, key);
    add(writer, ":", 1);
    writer->is_after_key = true;
}

/* ---- trees ---- */

static void add_exact(struct json_writer *writer, const char *text, size_t length)
{
    add(writer, "\"", 1);
    if (!has_failed(writer))
        (void)quote_json_exact(writer->to, text, length, &writer->error);
    add(writer, "\"", 1);
}

void json_exact(struct json_writer *writer, const char *text, size_t length)
{
    separate(writer);
    add_exact(writer, text, length);
}

void json_raw(struct json_writer *writer, const char *text, size_t length)
{
    separate(writer);
    add(writer, text, length);
}

void json_key_exact(struct json_writer *writer, const char *key, size_t length)
{
    json_exact(writer, key, length);
    add(writer, ":", 1);
    writer->is_after_key = true;
}

static void add_children(struct json_writer *writer, const struct data_value *parent)
{
    begin(writer, parent->kind == VALUE_MAP);
    for (const struct data_value *child = parent->first; child; child = child->next) {
        if (parent->kind == VALUE_MAP)
            json_key_exact(writer, child->key, child->key_length);
        json_value(writer, child);
    }
    end(writer, parent->kind == VALUE_MAP);
}

void json_value(struct json_writer *writer, const struct data_value *value)
{
    switch (value->kind) {
    case VALUE_NULL:
        json_null(writer);
        return;
    case VALUE_BOOL:
        json_bool(writer, value->truth);
        return;
    case VALUE_NUMBER:
        json_raw(writer, value->text, value->length);
        return;
    case VALUE_STRING:
        json_exact(writer, value->text, value->length);
        return;
    case VALUE_LIST:
    case VALUE_MAP:
        add_children(writer, value);
        return;
    }
}

int json_writer_finish(struct json_writer *writer, struct error *err)
{
    assert(writer->depth == 0 || has_failed(writer));
    if (has_failed(writer)) {
        *err = writer->error;
        return -1;
    }
    return 0;
}
