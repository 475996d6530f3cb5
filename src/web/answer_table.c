/* SPDX-License-Identifier: Apache-2.0 */
/* Answers by tables; see answer_table.h. */
#include "web/answer_table.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/clock.h"
#include "data/json.h"

#include <string.h>

/* Writes the value behind its key, or returns false: it is left out. */
typedef bool write_type(struct json_writer *json, const struct answer_field *field,
                        const void *member);

static const char *text_at(const void *member)
{
    return *(const char *const *)member;
}

static bool write_text(struct json_writer *json, const struct answer_field *field,
                       const void *member)
{
    if (!text_at(member))
        return false;
    json_key(json, field->name);
    json_string(json, text_at(member));
    return true;
}

static void write_pieces(struct json_writer *json, const char *first, const char *second,
                         const char *third)
{
    json_string_begin(json);
    json_string_piece(json, first, strlen(first));
    json_string_piece(json, second, strlen(second));
    json_string_piece(json, third, strlen(third));
    json_string_end(json);
}

static bool write_id(struct json_writer *json, const struct answer_field *field, const void *member)
{
    const char *id = text_at(member);

    if (!id || !*id)
        return false;
    json_key(json, field->name);
    write_pieces(json, "", field->prefix, id);
    return true;
}

static bool write_joined(struct json_writer *json, const struct answer_field *field,
                         const void *member)
{
    const struct answer_joined *joined = member;

    if (!joined->last)
        return false;
    json_key(json, field->name);
    write_pieces(json, joined->first, field->prefix, joined->last);
    return true;
}

static bool write_word(struct json_writer *json, const struct answer_field *field,
                       const void *member)
{
    unsigned value = *(const unsigned *)member;

    if (value >= field->n_words || !field->words[value])
        return false;
    json_key(json, field->name);
    json_string(json, field->words[value]);
    return true;
}

static bool write_bool(struct json_writer *json, const struct answer_field *field,
                       const void *member)
{
    json_key(json, field->name);
    json_bool(json, *(const bool *)member);
    return true;
}

static bool write_truth(struct json_writer *json, const struct answer_field *field,
                        const void *member)
{
    return *(const bool *)member && write_bool(json, field, member);
}

static bool write_integer(struct json_writer *json, const struct answer_field *field,
                          const void *member)
{
    json_key(json, field->name);
    json_integer(json, *(const int64_t *)member);
    return true;
}

static bool write_natural(struct json_writer *json, const struct answer_field *field,
                          const void *member)
{
    json_key(json, field->name);
    json_natural(json, *(const uint64_t *)member);
    return true;
}

static bool write_unsigned(struct json_writer *json, const struct answer_field *field,
                           const void *member)
{
    json_key(json, field->name);
    json_natural(json, *(const unsigned *)member);
    return true;
}

static bool write_time(struct json_writer *json, const struct answer_field *field,
                       const void *member)
{
    int64_t wall_ms = *(const int64_t *)member;
    char text[CLOCK_TEXT];

    if (wall_ms <= 0)
        return false;
    json_key(json, field->name);
    json_string(json, clock_format((uint64_t)wall_ms, text));
    return true;
}

static bool write_strings(struct json_writer *json, const struct answer_field *field,
                          const void *member)
{
    const char *const *strings = *(const char *const *const *)member;

    if (!strings)
        return false;
    json_key(json, field->name);
    json_list_begin(json);
    for (; *strings; strings++)
        json_string(json, *strings);
    json_list_end(json);
    return true;
}

static bool write_bytes(struct json_writer *json, const struct answer_field *field,
                        const void *member)
{
    const struct answer_bytes *bytes = member;

    if (!bytes->data)
        return false;
    json_key(json, field->name);
    json_bytes(json, bytes->data, bytes->length);
    return true;
}

#define BASE64_PIECE 3072 // bytes: whole groups of three

static bool write_base64(struct json_writer *json, const struct answer_field *field,
                         const void *member)
{
    const struct answer_bytes *bytes = member;
    char text[BASE64_PIECE / 3 * 4 + 1];

    if (!bytes->data)
        return false;
    json_key(json, field->name);
    json_string_begin(json);
    for (size_t at = 0; at < bytes->length; at += BASE64_PIECE) {
        size_t rest = bytes->length - at;
        size_t length = rest < BASE64_PIECE ? rest : BASE64_PIECE;
        base64_encode((const char *)bytes->data + at, length, text);
        json_string_piece(json, text, base64_length(length));
    }
    json_string_end(json);
    return true;
}

static struct data_document *read_json(const char *text)
{
    struct data_document *document = NULL;
    struct error err = {0};

    if (text && json_read("", text, strlen(text), NULL, &document, &err) < 0)
        return NULL;
    return document;
}

/* What was kept for somebody may be anything, as an archive of a stranger brings it; what is said of the answer holds all the same. */
static bool is_as_said(const struct answer_field *field, const struct data_value *value)
{
    if (field->is_list)
        return value->kind == VALUE_LIST;
    return !field->json_type || strcmp(field->json_type, "object") != 0 || value->kind == VALUE_MAP;
}

static bool write_json(struct json_writer *json, const struct answer_field *field,
                       const void *member)
{
    autoptr(data_document) document = read_json(text_at(member));

    if (!document || !is_as_said(field, document->root))
        return false;
    json_key(json, field->name);
    json_value(json, document->root);
    return true;
}

static bool write_text_map(struct json_writer *json, const struct answer_field *field,
                           const void *member)
{
    autoptr(data_document) document = read_json(text_at(member));

    if (!document || document->root->kind != VALUE_MAP)
        return false;
    json_key(json, field->name);
    json_map_begin(json);
    for (const struct data_value *value = document->root->first; value; value = value->next) {
        if (value->kind == VALUE_STRING && strlen(value->key) == value->key_length) {
            json_key(json, value->key);
            json_value(json, value);
        }
    }
    json_map_end(json);
    return true;
}

static bool write_pairs(struct json_writer *json, const struct answer_field *field,
                        const void *member)
{
    const char *const *pairs = *(const char *const *const *)member;

    if (!pairs)
        return false;
    json_key(json, field->name);
    json_map_begin(json);
    for (; *pairs; pairs++) {
        size_t length = strcspn(*pairs, "=");
        if (!(*pairs)[length])
            continue;
        json_key_exact(json, *pairs, length);
        json_string(json, *pairs + length + 1);
    }
    json_map_end(json);
    return true;
}

static bool write_map(struct json_writer *json, const struct answer_field *field,
                      const void *member)
{
    json_key(json, field->name);
    answer_write(json, field->fields, member);
    return true;
}

static bool write_map_at(struct json_writer *json, const struct answer_field *field,
                         const void *member)
{
    const void *from = *(const void *const *)member;

    return from && write_map(json, field, from);
}

static bool write_list(struct json_writer *json, const struct answer_field *field,
                       const void *member)
{
    const struct answer_list *list = member;

    json_key(json, field->name);
    json_list_begin(json);
    for (size_t i = 0; i < list->count; i++)
        answer_write(json, field->fields, (const char *)list->items + i * field->item_size);
    json_list_end(json);
    return true;
}

static bool write_beside(struct json_writer *json, const struct answer_field *field,
                         const void *member)
{
    answer_write_members(json, field->fields, member);
    return true;
}

static bool write_beside_at(struct json_writer *json, const struct answer_field *field,
                            const void *member)
{
    const void *from = *(const void *const *)member;

    if (from)
        answer_write_members(json, field->fields, from);
    return true;
}

static bool write_custom(struct json_writer *json, const struct answer_field *field,
                         const void *member)
{
    json_key(json, field->name);
    field->write(json, member);
    return true;
}

static write_type *const types[] = {
    [ANSWER_TEXT] = write_text,
    [ANSWER_ID] = write_id,
    [ANSWER_JOINED] = write_joined,
    [ANSWER_WORD] = write_word,
    [ANSWER_BOOL] = write_bool,
    [ANSWER_TRUTH] = write_truth,
    [ANSWER_INTEGER] = write_integer,
    [ANSWER_NATURAL] = write_natural,
    [ANSWER_UNSIGNED] = write_unsigned,
    [ANSWER_TIME] = write_time,
    [ANSWER_TEXTS] = write_strings,
    [ANSWER_BYTES] = write_bytes,
    [ANSWER_BASE64] = write_base64,
    [ANSWER_JSON] = write_json,
    [ANSWER_TEXT_MAP] = write_text_map,
    [ANSWER_PAIRS] = write_pairs,
    [ANSWER_MAP] = write_map,
    [ANSWER_MAP_AT] = write_map_at,
    [ANSWER_LIST] = write_list,
    [ANSWER_BESIDE] = write_beside,
    [ANSWER_BESIDE_AT] = write_beside_at,
    [ANSWER_CUSTOM] = write_custom,
};

void answer_write_members(struct json_writer *json, const struct answer_field *fields,
                          const void *from)
{
    const char *base = from;

    for (const struct answer_field *field = fields; field && field->name; field++) {
        bool is_told = !field->has_offset || *(const bool *)(base + field->has_offset);
        bool is_written = is_told && types[field->type](json, field, base + field->offset);
        if (!is_written && field->is_nullable) {
            json_key(json, field->name);
            json_null(json);
        }
    }
}

void answer_write(struct json_writer *json, const struct answer_field *fields, const void *from)
{
    json_map_begin(json);
    answer_write_members(json, fields, from);
    json_map_end(json);
}
