/* SPDX-License-Identifier: Apache-2.0 */
/* Tables as JSON Schema; see openapi_schema.h. */
#include "web/openapi_schema.h"

#include "base/auto.h"

#include <string.h>

void openapi_text(struct json_writer *json, const char *key, const char *text)
{
    json_key(json, key);
    json_string(json, text);
}

static void put_integer(struct json_writer *json, const char *key, int64_t number)
{
    json_key(json, key);
    json_integer(json, number);
}

static void put_truth(struct json_writer *json, const char *key)
{
    json_key(json, key);
    json_bool(json, true);
}

static void put_words(struct json_writer *json, const char *const *words)
{
    json_key(json, "enum");
    json_list_begin(json);
    for (; *words; words++)
        json_string(json, *words);
    json_list_end(json);
}

static void put_type(struct json_writer *json, const char *type, bool is_nullable)
{
    if (!is_nullable) {
        openapi_text(json, "type", type);
        return;
    }
    json_key(json, "type");
    json_list_begin(json);
    json_string(json, type);
    json_string(json, "null");
    json_list_end(json);
}

static void put_string(struct json_writer *json, bool is_nullable)
{
    json_map_begin(json);
    put_type(json, "string", is_nullable);
    json_map_end(json);
}

static void put_members(struct json_writer *json, const struct field *fields, bool is_strict);

static void put_items(struct json_writer *json, const struct field *field, bool is_strict)
{
    if (field->minimum > 0)
        put_integer(json, "minItems", field->minimum);
    put_integer(json, "maxItems", field->maximum > 0 ? field->maximum : FIELD_LIST_MAXIMUM);
    json_key(json, "items");
    if (field->type == FIELD_LIST)
        openapi_fields(json, field->fields, is_strict);
    else
        put_string(json, false);
}

static void put_text_map(struct json_writer *json, const struct field *field)
{
    put_integer(json, "maxProperties", field->maximum > 0 ? field->maximum : FIELD_LIST_MAXIMUM);
    json_key(json, "additionalProperties");
    put_string(json, field->is_nullable);
}

static void put_range(struct json_writer *json, int64_t minimum, int64_t maximum)
{
    if (minimum == maximum)
        return;
    put_integer(json, "minimum", minimum);
    put_integer(json, "maximum", maximum);
}

static void put_text_limits(struct json_writer *json, const struct field *field)
{
    if (field->words)
        put_words(json, field->words);
    if (field->minimum > 0)
        put_integer(json, "minLength", field->minimum);
    if (field->maximum > 0)
        put_integer(json, "maxLength", field->maximum);
}

/* How a text is spelled; base/duration.h and base/size.h have the last word. */
static const struct {
    const char *pattern;
    const char *examples[3];
    int64_t number; // an example without a unit; 0: a unit is needed
} spellings[] = {
    [FIELD_DURATION] = {"^(0|([0-9]+(\\.[0-9]+)?(ns|us|\xc2\xb5s|ms|s|m|h|d))+)$",
                        {"30s", "1h30m", "7d"}},
    [FIELD_SIZE] = {"^[0-9]+(\\.[0-9]+)?([kKMGTPE]|[KMGTPE]i)?$", {"512Mi", "1.5G", "268435456"}},
    [FIELD_CPU] = {"^[0-9]+(\\.[0-9]+)?m?$", {"500m", "2", "0.5"}},
    [FIELD_MS] = {"^(0|([0-9]+(\\.[0-9]+)?(ns|us|\xc2\xb5s|ms|s|m|h|d))+)$", {"30s"}, 30000},
    [FIELD_AMOUNT] = {"^[0-9]+(\\.[0-9]+)?([kKMGTPE]|[KMGTPE]i)?$", {"512Mi"}, 536870912},
    [FIELD_MILLIS] = {"^[0-9]+(\\.[0-9]+)?m?$", {"500m"}, 500},
};

static void put_examples(struct json_writer *json, enum field_type type)
{
    json_key(json, "examples");
    json_list_begin(json);
    if (spellings[type].number)
        json_integer(json, spellings[type].number);
    for (size_t i = 0; i < ARRAY_SIZE(spellings[type].examples); i++) {
        if (spellings[type].examples[i])
            json_string(json, spellings[type].examples[i]);
    }
    json_list_end(json);
}

static void put_spelling(struct json_writer *json, enum field_type type)
{
    openapi_text(json, "pattern", spellings[type].pattern);
    put_examples(json, type);
}

static const char *const type_names[] = {
    [FIELD_TEXT] = "string",     [FIELD_TEXTS] = "array",     [FIELD_BOOL] = "boolean",
    [FIELD_INTEGER] = "integer", [FIELD_DURATION] = "string", [FIELD_SIZE] = "string",
    [FIELD_CPU] = "string",      [FIELD_MAP] = "object",      [FIELD_LIST] = "array",
    [FIELD_TEXT_MAP] = "object", [FIELD_BYTES] = "string",    [FIELD_VALUE] = NULL,
    [FIELD_OBJECT] = "object",   [FIELD_MS] = NULL,           [FIELD_AMOUNT] = NULL,
    [FIELD_MILLIS] = NULL,
};

/* A number, or a text with its unit: a type each, since there are readers of schemas that know one type in one place. */
static void put_with_unit(struct json_writer *json, enum field_type type, bool is_nullable,
                          int64_t minimum, int64_t maximum)
{
    json_key(json, "anyOf");
    json_list_begin(json);
    json_map_begin(json);
    put_type(json, "integer", false);
    put_integer(json, "minimum", minimum != maximum ? minimum : 0);
    if (minimum != maximum)
        put_integer(json, "maximum", maximum);
    json_map_end(json);
    json_map_begin(json);
    put_type(json, "string", false);
    openapi_text(json, "pattern", spellings[type].pattern);
    json_map_end(json);
    if (is_nullable) {
        json_map_begin(json);
        put_type(json, "null", false);
        json_map_end(json);
    }
    json_list_end(json);
    put_examples(json, type);
}

static void put_details(struct json_writer *json, const struct field *field, bool is_strict)
{
    switch (field->type) {
    case FIELD_TEXT:
        put_text_limits(json, field);
        break;
    case FIELD_INTEGER:
        put_range(json, field->minimum, field->maximum);
        break;
    case FIELD_DURATION:
    case FIELD_SIZE:
    case FIELD_CPU:
        put_spelling(json, field->type);
        break;
    case FIELD_MS:
    case FIELD_AMOUNT:
    case FIELD_MILLIS:
        put_with_unit(json, field->type, field->is_nullable, field->minimum, field->maximum);
        break;
    case FIELD_MAP:
        put_members(json, field->fields, is_strict);
        break;
    case FIELD_LIST:
    case FIELD_TEXTS:
        put_items(json, field, is_strict);
        break;
    case FIELD_TEXT_MAP:
        put_text_map(json, field);
        break;
    case FIELD_BYTES:
        openapi_text(json, "contentEncoding", "base64");
        break;
    case FIELD_BOOL:
    case FIELD_VALUE:
    case FIELD_OBJECT:
        break;
    }
}

static void put_field(struct json_writer *json, const struct field *field, bool is_strict)
{
    bool is_nullable = field->is_nullable && field->type != FIELD_TEXT_MAP && !field->words;

    json_map_begin(json);
    if (type_names[field->type])
        put_type(json, type_names[field->type], is_nullable);
    if (field->help)
        openapi_text(json, "description", field->help);
    put_details(json, field, is_strict);
    json_map_end(json);
}

static bool has_needed(const struct field *fields)
{
    for (; fields->name; fields++) {
        if (fields->is_needed)
            return true;
    }
    return false;
}

static void put_members(struct json_writer *json, const struct field *fields, bool is_strict)
{
    if (has_needed(fields)) {
        json_key(json, "required");
        json_list_begin(json);
        for (const struct field *field = fields; field->name; field++) {
            if (field->is_needed)
                json_string(json, field->name);
        }
        json_list_end(json);
    }
    json_key(json, "properties");
    json_map_begin(json);
    for (const struct field *field = fields; field->name; field++) {
        json_key(json, field->name);
        put_field(json, field, is_strict);
    }
    json_map_end(json);
    if (is_strict) {
        json_key(json, "additionalProperties");
        json_bool(json, false);
    }
}

void openapi_fields(struct json_writer *json, const struct field *fields, bool is_strict)
{
    json_map_begin(json);
    openapi_text(json, "type", "object");
    put_members(json, fields, is_strict);
    json_map_end(json);
}

// ---- answers ----

static const struct {
    const char *type, *format;
} answer_types[] = {
    [ANSWER_TEXT] = {"string"},
    [ANSWER_ID] = {"string"},
    [ANSWER_JOINED] = {"string"},
    [ANSWER_WORD] = {"string"},
    [ANSWER_BOOL] = {"boolean"},
    [ANSWER_TRUTH] = {"boolean"},
    [ANSWER_INTEGER] = {"integer"},
    [ANSWER_NATURAL] = {"integer"},
    [ANSWER_UNSIGNED] = {"integer"},
    [ANSWER_TIME] = {"string", "date-time"},
    [ANSWER_TEXTS] = {"array"},
    [ANSWER_BYTES] = {"string"},
    [ANSWER_BASE64] = {"string", "byte"},
    [ANSWER_JSON] = {NULL},
    [ANSWER_TEXT_MAP] = {"object"},
    [ANSWER_PAIRS] = {"object"},
    [ANSWER_MAP] = {"object"},
    [ANSWER_MAP_AT] = {"object"},
    [ANSWER_LIST] = {"array"},
    [ANSWER_CUSTOM] = {NULL},
};

static bool is_beside(const struct answer_field *field)
{
    return field->type == ANSWER_BESIDE || field->type == ANSWER_BESIDE_AT;
}

static bool is_number(const struct answer_field *field)
{
    return field->type >= ANSWER_BOOL && field->type <= ANSWER_UNSIGNED &&
           field->type != ANSWER_TRUTH;
}

static bool is_promised(const struct answer_field *field)
{
    return field->is_needed || field->is_nullable || (is_number(field) && !field->has_offset);
}

static void put_answer_words(struct json_writer *json, const struct answer_field *field)
{
    json_key(json, "enum");
    json_list_begin(json);
    for (size_t i = 0; i < field->n_words; i++) {
        bool is_new = field->words[i] != NULL;
        for (size_t before = 0; is_new && before < i; before++)
            is_new = !field->words[before] || strcmp(field->words[before], field->words[i]) != 0;
        if (is_new)
            json_string(json, field->words[i]);
    }
    if (field->is_nullable)
        json_null(json);
    json_list_end(json);
}

static void put_answer_object(struct json_writer *json, const struct answer_field *fields);
static void put_answer_members(struct json_writer *json, const struct answer_field *fields);

static void put_objects(struct json_writer *json, const struct answer_field *fields)
{
    json_key(json, "items");
    put_answer_object(json, fields);
}

static void put_typed_items(struct json_writer *json, const char *type)
{
    json_key(json, "items");
    json_map_begin(json);
    put_type(json, type, false);
    json_map_end(json);
}

static void put_answer_details(struct json_writer *json, const struct answer_field *field)
{
    if (field->words)
        put_answer_words(json, field);
    if (answer_types[field->type].format)
        openapi_text(json, "format", answer_types[field->type].format);
    if (field->type == ANSWER_NATURAL || field->type == ANSWER_UNSIGNED)
        put_integer(json, "minimum", 0);
    if (field->type == ANSWER_TEXTS)
        put_typed_items(json, "string");
    if (field->type == ANSWER_TEXT_MAP || field->type == ANSWER_PAIRS) {
        json_key(json, "additionalProperties");
        put_string(json, false);
    }
    if (field->type == ANSWER_JSON && field->is_list)
        put_typed_items(json, field->json_type);
    else if (field->type == ANSWER_LIST || field->is_list)
        put_objects(json, field->fields);
    else if (field->fields)
        put_answer_members(json, field->fields);
}

static void put_answer_field(struct json_writer *json, const struct answer_field *field)
{
    const char *type = answer_types[field->type].type;

    if (field->type == ANSWER_CUSTOM && field->fields)
        type = field->is_list ? "array" : "object";
    if (field->type == ANSWER_JSON)
        type = field->is_list ? "array" : field->json_type;
    json_map_begin(json);
    if (type)
        put_type(json, type, field->is_nullable);
    if (field->help)
        openapi_text(json, "description", field->help);
    put_answer_details(json, field);
    json_map_end(json);
}

/* What stands beside them elsewhere may be missing altogether, so nothing of it is promised. */
static void put_promised(struct json_writer *json, const struct answer_field *fields)
{
    for (const struct answer_field *field = fields; field && field->name; field++) {
        if (field->type == ANSWER_BESIDE && !field->has_offset)
            put_promised(json, field->fields);
        else if (!is_beside(field) && is_promised(field))
            json_string(json, field->name);
    }
}

static void put_properties(struct json_writer *json, const struct answer_field *fields)
{
    for (const struct answer_field *field = fields; field && field->name; field++) {
        if (is_beside(field)) {
            put_properties(json, field->fields);
            continue;
        }
        json_key(json, field->name);
        put_answer_field(json, field);
    }
}

/* `more` may be NULL: further members. */
static void put_all_members(struct json_writer *json, const struct answer_field *fields,
                            const struct answer_field *more, const char *slot)
{
    json_key(json, "required");
    json_list_begin(json);
    put_promised(json, fields);
    if (slot)
        json_string(json, slot);
    else
        put_promised(json, more);
    json_list_end(json);
    json_key(json, "properties");
    json_map_begin(json);
    put_properties(json, fields);
    if (!slot)
        put_properties(json, more);
}

static void put_answer_members(struct json_writer *json, const struct answer_field *fields)
{
    put_all_members(json, fields, NULL, NULL);
    json_map_end(json);
}

static void put_answer_object(struct json_writer *json, const struct answer_field *fields)
{
    json_map_begin(json);
    openapi_text(json, "type", "object");
    put_answer_members(json, fields);
    json_map_end(json);
}

static void put_answer_value(struct json_writer *json, const struct route_answer *answer)
{
    if (!answer->is_list) {
        json_map_begin(json);
        openapi_text(json, "type", "object");
        if (answer->is_open)
            put_truth(json, "additionalProperties");
        put_answer_members(json, answer->fields);
        json_map_end(json);
        return;
    }
    json_map_begin(json);
    openapi_text(json, "type", "array");
    put_objects(json, answer->fields);
    json_map_end(json);
}

void openapi_answer(struct json_writer *json, const struct route_answer *answer)
{
    const struct answer_wrap *wrap = answer->wrap;

    if (!wrap) {
        put_answer_value(json, answer);
        return;
    }
    json_map_begin(json);
    openapi_text(json, "type", "object");
    put_all_members(json, wrap->members, answer->fields, wrap->slot);
    if (wrap->slot) {
        json_key(json, wrap->slot);
        put_answer_value(json, answer);
    }
    json_map_end(json);
    json_map_end(json);
}

void openapi_parameter(struct json_writer *json, const struct parameter *parameter)
{
    static const char *const names[] = {
        [PARAMETER_TEXT] = "string",  [PARAMETER_INTEGER] = "integer",
        [PARAMETER_BOOL] = "boolean", [PARAMETER_DURATION] = "string",
        [PARAMETER_WORD] = "string",  [PARAMETER_MS] = NULL,
        [PARAMETER_AMOUNT] = NULL,
    };

    json_map_begin(json);
    if (names[parameter->type])
        openapi_text(json, "type", names[parameter->type]);
    else
        put_with_unit(json, parameter->type == PARAMETER_MS ? FIELD_MS : FIELD_AMOUNT, false,
                      parameter->minimum, parameter->maximum);
    if (parameter->type == PARAMETER_WORD)
        put_words(json, parameter->words);
    if (parameter->type == PARAMETER_DURATION)
        put_spelling(json, FIELD_DURATION);
    if (parameter->type == PARAMETER_INTEGER)
        put_range(json, parameter->minimum, parameter->maximum);
    json_map_end(json);
}
