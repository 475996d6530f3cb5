/* SPDX-License-Identifier: Apache-2.0 */
/* Members of objects; see member.h. */
#include "front/agentuity/member.h"
#include "base/clock.h"
#include "data/json.h"
#include "front/agentuity/agentuity_impl.h"

#include <string.h>

void member_text(struct json_writer *json, const char *name, const char *text)
{
    if (text)
        member_text_or_null(json, name, text);
}

void member_text_or_null(struct json_writer *json, const char *name, const char *text)
{
    json_key(json, name);
    json_string(json, text);
}

/* A string of parts. */
static void write_joined(struct json_writer *json, const char *first, const char *second,
                         const char *third)
{
    json_string_begin(json);
    json_string_piece(json, first, strlen(first));
    json_string_piece(json, second, strlen(second));
    json_string_piece(json, third, strlen(third));
    json_string_end(json);
}

void member_id(struct json_writer *json, const char *name, const char *prefix, const char *id)
{
    if (!id || !*id)
        return;
    json_key(json, name);
    write_joined(json, prefix, id, "");
}

void member_stream_url(struct json_writer *json, const char *name, const char *base_url,
                       const char *stream_id)
{
    if (!stream_id)
        return;
    json_key(json, name);
    write_joined(json, base_url, "/stream/" STREAM_PREFIX, stream_id);
}

void member_time(struct json_writer *json, const char *name, int64_t wall_ms)
{
    char text[CLOCK_TEXT];

    if (wall_ms > 0)
        member_text(json, name, clock_format((uint64_t)wall_ms, text));
}

void member_integer(struct json_writer *json, const char *name, int64_t number)
{
    json_key(json, name);
    json_integer(json, number);
}

void member_bool(struct json_writer *json, const char *name, bool truth)
{
    json_key(json, name);
    json_bool(json, truth);
}

void member_json(struct json_writer *json, const char *name, const char *text)
{
    autoptr(data_document) document = NULL;
    struct error err = {0};

    if (!text || json_read("", text, strlen(text), NULL, &document, &err) < 0)
        return;
    json_key(json, name);
    json_value(json, document->root);
}

void member_text_map(struct json_writer *json, const char *name, const char *text)
{
    autoptr(data_document) document = NULL;
    struct error err = {0};

    if (!text || json_read("", text, strlen(text), NULL, &document, &err) < 0 ||
        document->root->kind != VALUE_MAP)
        return;
    json_key(json, name);
    json_map_begin(json);
    for (const struct data_value *value = document->root->first; value; value = value->next) {
        if (value->kind == VALUE_STRING && strlen(value->key) == value->key_length) {
            json_key(json, value->key);
            json_value(json, value);
        }
    }
    json_map_end(json);
}
