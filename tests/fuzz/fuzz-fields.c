/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes bodies by table: whatever the JSON, what was read keeps what the table promised. */
#include "base/auto.h"
#include "base/base64.h"
#include "base/utf8.h"
#include "data/json.h"
#include "web/fields.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct item {
    const char *path;
    struct bytes_field content;
};

struct want {
    bool is_first, has_map;
    const char *text, *word;
    const char **texts;
    bool truth;
    int64_t number, any_number;
    struct duration_field duration;
    struct size_field size, cpu;
    struct field_list list, pairs;
    struct bytes_field bytes;
    const struct data_value *value, *object;
};

static const char *const words[] = {"a", "b", NULL};
static const struct field item_fields[] = {
    {"path", FIELD_TEXT, offsetof(struct item, path), .is_needed = true, .maximum = 8},
    {"content", FIELD_BYTES, offsetof(struct item, content), .is_needed = true},
    {0},
};
static const struct field inner_fields[] = {
    {"duration", FIELD_DURATION, offsetof(struct want, duration)},
    {"size", FIELD_SIZE, offsetof(struct want, size), .is_nullable = true},
    {"cpu", FIELD_CPU, offsetof(struct want, cpu)},
    {"list", FIELD_LIST, offsetof(struct want, list), .fields = item_fields,
     .item_size = sizeof(struct item), .maximum = 20},
    {0},
};
static const struct field fields[] = {
    {"text", FIELD_TEXT, offsetof(struct want, text), .is_nullable = true},
    {"word", FIELD_TEXT, offsetof(struct want, word), .words = words},
    {"texts", FIELD_TEXTS, offsetof(struct want, texts)},
    {"truth", FIELD_BOOL, offsetof(struct want, truth)},
    {"number", FIELD_INTEGER, offsetof(struct want, number), .minimum = -5, .maximum = 5},
    {"any", FIELD_INTEGER, offsetof(struct want, any_number)},
    {"map", FIELD_MAP, 0, .fields = inner_fields, .has_offset = offsetof(struct want, has_map)},
    {"pairs", FIELD_TEXT_MAP, offsetof(struct want, pairs), .is_nullable = true},
    {"bytes", FIELD_BYTES, offsetof(struct want, bytes), .maximum = 30},
    {"value", FIELD_VALUE, offsetof(struct want, value)},
    {"object", FIELD_OBJECT, offsetof(struct want, object)},
    {0},
};

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static void check_text(const char *text)
{
    if (text)
        check(utf8_is_valid(text, strlen(text)));
}

static void check_lists(const struct want *want)
{
    const struct item *items = want->list.items;
    const struct text_pair *pairs = want->pairs.items;

    check(want->list.count <= 20);
    for (size_t i = 0; i < want->list.count; i++) {
        check(items[i].path && strlen(items[i].path) <= 8 && items[i].content.data);
        check_text(items[i].path);
    }
    for (size_t i = 0; i < want->pairs.count; i++) {
        check(pairs[i].name);
        check_text(pairs[i].name);
        check_text(pairs[i].value);
    }
    for (const char **text = want->texts; text && *text; text++)
        check_text(*text);
}

static void check_want(const struct want *want)
{
    check_text(want->text);
    check(!want->word || strcmp(want->word, "a") == 0 || strcmp(want->word, "b") == 0);
    check(want->number >= -5 && want->number <= 5);
    check(want->duration.text || want->duration.ms == 0);
    check(want->bytes.length <= 30 && (want->bytes.data || !want->bytes.length));
    check(!want->object || want->object->kind == VALUE_MAP);
    check_lists(want);
}

/* What decodes is the text of what it decodes to. */
static void check_base64(const char *text, size_t length)
{
    autofree char *decoded = malloc(base64_room(length) + 1);
    autofree char *again = malloc(base64_length(base64_room(length)) + 1);
    size_t bad = length + 1;
    ssize_t got = base64_decode(text, length, decoded, &bad);

    if (got < 0) {
        check(bad <= length);
        return;
    }
    base64_encode(decoded, (size_t)got, again);
    check(strlen(again) == length && memcmp(again, text, length) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    autoptr(data_document) document = NULL;
    struct want want = {0};
    struct error err = {0};

    check_base64((const char *)data, size);
    if (json_read("", (const char *)data, size, NULL, &document, &err) < 0)
        return 0;
    if (fields_read(document->root, fields, &want, &err) == 0) {
        check_want(&want);
        return 0;
    }
    check(error_is(&err, ERROR_INVALID) && err.text[0] && strlen(err.text) < sizeof err.text - 1);
    return 0;
}
