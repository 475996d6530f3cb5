/* SPDX-License-Identifier: Apache-2.0 */
/* JSON bodies by tables; see fields.h. */
#include "web/fields.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/duration.h"
#include "base/size.h"
#include "base/suggest.h"
#include "base/utf8.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMED_FAULTS 16
#define KEY_SHOWN 60 // bytes of a name that a stranger chose

struct reader {
    struct data_document *memory;
    struct field_faults *list; // NULL: nobody wants them one by one
    char path[256];            // of what is being read: "command.exec[2]"
    size_t path_length;
    char first[sizeof((struct error *)NULL)->field]; // path of the first fault
    size_t faults;                                   // so far
    size_t named;                                    // of them, in `text`
    char text[sizeof((struct error *)NULL)->text - sizeof "; and 18446744073709551615 more"];
    size_t text_length;
};

static void read_map(struct reader *reader, const struct data_value *map,
                     const struct field *fields, char *into);

/* ---- faults and where they are ---- */

static void fault(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void keep(struct reader *reader, const char *sentence)
{
    struct field_faults *list = reader->list;
    size_t length = strlen(sentence);

    if (list->count == FIELD_FAULTS)
        return;
    if (!list->items)
        list->items = value_alloc(reader->memory, FIELD_FAULTS * sizeof *list->items);
    char *text = value_alloc(reader->memory, reader->path_length + length + 2);
    memcpy(text, reader->path, reader->path_length);
    memcpy(text + reader->path_length + 1, sentence, length);
    list->items[list->count++] =
        (struct field_fault){.path = text, .text = text + reader->path_length + 1};
}

/* Once one has no room in the text, no later one is named, so that the order of those that are is the body's. */
static void fault(struct reader *reader, const char *format, ...)
{
    char sentence[320];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(sentence, sizeof sentence, format, args);
    va_end(args);
    if (reader->list)
        keep(reader, sentence);
    if (reader->faults == 0)
        (void)snprintf(reader->first, sizeof reader->first, "%s", reader->path);
    if (reader->named < reader->faults++ || reader->named == NAMED_FAULTS)
        return;
    size_t room = sizeof reader->text - reader->text_length;
    int used =
        snprintf(reader->text + reader->text_length, room, "%s%s%s%s", reader->named ? "; " : "",
                 reader->path, reader->path_length ? ": " : "", sentence);
    if ((size_t)used >= room) {
        reader->text[reader->text_length] = '\0';
        return;
    }
    reader->text_length += (size_t)used;
    reader->named++;
}

/* Each returns the length to go back to with leave(). A path that is too long is cut. */
static size_t enter(struct reader *reader, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static size_t enter(struct reader *reader, const char *format, ...)
{
    size_t before = reader->path_length;
    size_t room = sizeof reader->path - before;
    va_list args;

    va_start(args, format);
    int used = vsnprintf(reader->path + before, room, format, args);
    va_end(args);
    reader->path_length += (size_t)used < room ? (size_t)used : room - 1;
    return before;
}

static size_t enter_name(struct reader *reader, const char *name, size_t length)
{
    size_t shown = 0;

    while (shown < length && shown < KEY_SHOWN) {
        size_t step = utf8_length(name + shown, length - shown);
        if (step == 0 || shown + step > KEY_SHOWN)
            break;
        shown += step;
    }
    return enter(reader, "%s%.*s%s", reader->path_length ? "." : "", (int)shown, name,
                 shown < length ? "…" : "");
}

static void leave(struct reader *reader, size_t before)
{
    reader->path_length = before;
    reader->path[before] = '\0';
}

/* What JSON calls it. */
static const char *kind_name(enum value_kind kind)
{
    static const char *const names[] = {
        [VALUE_NULL] = "null",       [VALUE_BOOL] = "true or false", [VALUE_NUMBER] = "a number",
        [VALUE_STRING] = "a string", [VALUE_LIST] = "a list",        [VALUE_MAP] = "an object",
    };
    return names[kind];
}

static bool is_kind(struct reader *reader, const struct data_value *value, enum value_kind kind)
{
    if (value->kind == kind)
        return true;
    fault(reader, "must be %s, not %s", kind_name(kind), kind_name(value->kind));
    return false;
}

/* ---- single values ---- */

static bool is_text(struct reader *reader, const char *text, size_t length, bool is_exact)
{
    if (memchr(text, '\0', length)) {
        fault(reader, "must not hold a NUL");
        return false;
    }
    if (!is_exact && !utf8_is_valid(text, length)) {
        fault(reader, "must not hold half of a surrogate pair");
        return false;
    }
    return true;
}

struct text_limits {
    int64_t minimum, maximum; // bytes; 0: any, FIELD_TEXT_MAXIMUM
    bool is_exact;
};

/* NULL after a fault. */
static const char *get_text(struct reader *reader, const struct data_value *value,
                            const struct text_limits *limits)
{
    size_t limit = limits->maximum > 0 ? (size_t)limits->maximum : FIELD_TEXT_MAXIMUM;

    if (!is_kind(reader, value, VALUE_STRING))
        return NULL;
    if (value->length > limit) {
        fault(reader, "has %zu bytes, at most %zu are allowed", value->length, limit);
        return NULL;
    }
    if ((int64_t)value->length < limits->minimum) {
        fault(reader, value->length ? "is too short" : "must not be empty");
        return NULL;
    }
    return is_text(reader, value->text, value->length, limits->is_exact) ? value->text : NULL;
}

static void fault_words(struct reader *reader, const char *const *words, const char *text)
{
    char list[200] = "";
    size_t used = 0;

    for (size_t i = 0; words[i] && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, "%s'%s'",
                                 i == 0         ? ""
                                 : words[i + 1] ? ", "
                                                : " or ",
                                 words[i]);
    fault(reader, "must be %s, not '%.40s'", list, text);
}

static void read_text(struct reader *reader, const struct data_value *value,
                      const struct field *field, void *into)
{
    const struct text_limits limits = {.minimum = field->minimum, .maximum = field->maximum};
    const char *text = get_text(reader, value, &limits);

    if (!text)
        return;
    const char *wrong = field->check ? field->check(text) : NULL;
    if (wrong) {
        fault(reader, "%s", wrong);
        return;
    }
    for (const char *const *word = field->words; word; word++) {
        if (!*word) {
            fault_words(reader, field->words, text);
            return;
        }
        if (strcmp(*word, text) == 0)
            break;
    }
    *(const char **)into = text;
}

static void read_bool(struct reader *reader, const struct data_value *value,
                      const struct field *field, void *into)
{
    if (is_kind(reader, value, VALUE_BOOL))
        *(bool *)into = value->truth;
}

#define EXACT_MAX 9007199254740992.0 // up to which every whole number is a double

/* "15", and also "15.0" and "1.5e1", as which some languages write it. */
static bool get_whole(const char *text, long long *out)
{
    if (!text[strspn(text, "-0123456789")]) {
        *out = strtoll(text, NULL, 10);
        return true;
    }
    double number = strtod(text, NULL);
    bool is_whole = errno == 0 && number >= -EXACT_MAX && number <= EXACT_MAX &&
                    number == (double)(long long)number;
    errno = 0;
    *out = is_whole ? (long long)number : 0;
    return is_whole;
}

static void read_integer(struct reader *reader, const struct data_value *value,
                         const struct field *field, void *into)
{
    if (!is_kind(reader, value, VALUE_NUMBER))
        return;
    long long number = 0;
    errno = 0;
    if (!get_whole(value->text, &number)) {
        fault(reader, "must be a whole number, not %.40s", value->text);
        return;
    }
    bool is_bounded = field->minimum != field->maximum;
    if (errno || (is_bounded && (number < field->minimum || number > field->maximum))) {
        fault(reader, "must be between %" PRId64 " and %" PRId64 ", not %.40s",
              is_bounded ? field->minimum : INT64_MIN, is_bounded ? field->maximum : INT64_MAX,
              value->text);
        return;
    }
    *(int64_t *)into = number;
}

/* What the parsers of base say begins with the name of the thing, which is the path here. */
static void fault_parse(struct reader *reader, const struct error *err)
{
    fault(reader, "%s", err->text[0] == ' ' ? err->text + 1 : err->text);
}

static void read_duration(struct reader *reader, const struct data_value *value,
                          const struct field *field, void *into)
{
    struct duration_field *duration = into;
    const char *text = get_text(reader, value, &(struct text_limits){.maximum = field->maximum});
    struct error err;

    if (!text)
        return;
    if (duration_parse(text, "", &duration->ms, &err) < 0)
        fault_parse(reader, &err);
    duration->text = text;
}

static void read_size(struct reader *reader, const struct data_value *value,
                      const struct field *field, void *into)
{
    struct size_field *size = into;
    const char *text = get_text(reader, value, &(struct text_limits){.maximum = field->maximum});
    uint32_t millis = 0;
    struct error err;

    if (!text)
        return;
    int status = field->type == FIELD_CPU ? cpu_parse(text, "", &millis, &err)
                                          : size_parse(text, "", &size->value, &err);
    if (status < 0)
        fault_parse(reader, &err);
    if (field->type == FIELD_CPU)
        size->value = millis;
    size->text = text;
}

/* A text with its unit; false after a fault. */
static bool parse_unit(struct reader *reader, enum field_type type, const char *text,
                       uint64_t *number)
{
    uint32_t millis = 0;
    struct error err;
    int status = type == FIELD_MS       ? duration_parse(text, "", number, &err)
                 : type == FIELD_AMOUNT ? size_parse(text, "", number, &err)
                                        : cpu_parse(text, "", &millis, &err);

    if (status < 0)
        fault_parse(reader, &err);
    else if (type == FIELD_MILLIS)
        *number = millis;
    return status == 0;
}

static void read_with_unit(struct reader *reader, const struct data_value *value,
                           const struct field *field, void *into)
{
    bool is_bounded = field->minimum != field->maximum;
    int64_t minimum = is_bounded ? field->minimum : 0,
            maximum = is_bounded ? field->maximum : INT64_MAX;
    uint64_t number = 0;

    if (value->kind != VALUE_STRING) {
        const struct field plain = {.minimum = minimum, .maximum = maximum};
        if (value->kind != VALUE_NUMBER)
            fault(reader, "must be a number or a text with a unit, not %s", kind_name(value->kind));
        else
            read_integer(reader, value, &plain, into);
        return;
    }
    const char *text = get_text(reader, value, &(struct text_limits){.minimum = 1, .maximum = 64});
    if (!text || !parse_unit(reader, field->type, text, &number))
        return;
    if (number > INT64_MAX || (int64_t)number < minimum || (int64_t)number > maximum)
        fault(reader, "must be between %" PRId64 " and %" PRId64 ", not '%s'", minimum, maximum,
              text);
    else
        *(int64_t *)into = (int64_t)number;
}

static void read_bytes(struct reader *reader, const struct data_value *value,
                       const struct field *field, void *into)
{
    struct bytes_field *bytes = into;
    size_t bad;

    if (!is_kind(reader, value, VALUE_STRING))
        return;
    char *data = value_alloc(reader->memory, base64_room(value->length) + 1);
    ssize_t length = base64_decode(value->text, value->length, data, &bad);
    if (length < 0 && bad < value->length)
        fault(reader, "is not base64: character %zu is not in its alphabet", bad + 1);
    else if (length < 0)
        fault(reader, "is not base64: its length or its padding is wrong");
    else if (field->maximum > 0 && length > field->maximum)
        fault(reader, "has %zd bytes, at most %" PRId64 " are allowed", length, field->maximum);
    else
        *bytes = (struct bytes_field){.data = data, .length = (size_t)length};
}

static void read_value(struct reader *reader, const struct data_value *value,
                       const struct field *field, void *into)
{
    if (field->type == FIELD_OBJECT && !is_kind(reader, value, VALUE_MAP))
        return;
    *(const struct data_value **)into = value;
}

/* ---- lists and maps ---- */

static bool has_room(struct reader *reader, const struct data_value *value,
                     const struct field *field)
{
    size_t limit = field->maximum > 0 ? (size_t)field->maximum : FIELD_LIST_MAXIMUM;

    if (value->count <= limit && (int64_t)value->count >= field->minimum)
        return true;
    if (value->count <= limit)
        fault(reader, "has %zu items, at least %" PRId64 " are needed", value->count,
              field->minimum);
    else
        fault(reader, "has %zu items, at most %zu are allowed", value->count, limit);
    return false;
}

static void read_strings(struct reader *reader, const struct data_value *value,
                         const struct field *field, void *into)
{
    const struct text_limits limits = {.minimum = field->is_filled, .is_exact = field->is_exact};
    size_t index = 0;

    if (!is_kind(reader, value, VALUE_LIST) || !has_room(reader, value, field))
        return;
    const char **strings = value_alloc(reader->memory, (value->count + 1) * sizeof *strings);
    for (const struct data_value *item = value->first; item; item = item->next) {
        size_t before = enter(reader, "[%zu]", index);
        strings[index++] = get_text(reader, item, &limits);
        leave(reader, before);
    }
    *(const char ***)into = strings;
}

static void read_list(struct reader *reader, const struct data_value *value,
                      const struct field *field, void *into)
{
    struct field_list *list = into;
    size_t index = 0;

    if (!is_kind(reader, value, VALUE_LIST) || !has_room(reader, value, field))
        return;
    char *items = value_alloc(reader->memory, (value->count + 1) * field->item_size);
    for (const struct data_value *item = value->first; item; item = item->next) {
        size_t before = enter(reader, "[%zu]", index);
        if (is_kind(reader, item, VALUE_MAP))
            read_map(reader, item, field->fields, items + index * field->item_size);
        index++;
        leave(reader, before);
    }
    *list = (struct field_list){.items = items, .count = value->count};
}

static void read_text_map(struct reader *reader, const struct data_value *value,
                          const struct field *field, void *into)
{
    static const struct text_limits any = {0};
    struct field_list *list = into;
    size_t index = 0;

    if (!is_kind(reader, value, VALUE_MAP) || !has_room(reader, value, field))
        return;
    struct text_pair *pairs = value_alloc(reader->memory, (value->count + 1) * sizeof *pairs);
    for (const struct data_value *member = value->first; member; member = member->next) {
        size_t before = enter_name(reader, member->key, member->key_length);
        pairs[index].name =
            is_text(reader, member->key, member->key_length, false) ? member->key : NULL;
        if (member->kind != VALUE_NULL || !field->is_nullable)
            pairs[index].value = get_text(reader, member, &any);
        index++;
        leave(reader, before);
    }
    *list = (struct field_list){.items = pairs, .count = value->count};
}

static void read_struct(struct reader *reader, const struct data_value *value,
                        const struct field *field, void *into)
{
    if (is_kind(reader, value, VALUE_MAP))
        read_map(reader, value, field->fields, into);
}

typedef void read_type(struct reader *reader, const struct data_value *value,
                       const struct field *field, void *into);

static read_type *const types[] = {
    [FIELD_TEXT] = read_text,         [FIELD_TEXTS] = read_strings,
    [FIELD_BOOL] = read_bool,         [FIELD_INTEGER] = read_integer,
    [FIELD_DURATION] = read_duration, [FIELD_SIZE] = read_size,
    [FIELD_CPU] = read_size,          [FIELD_MAP] = read_struct,
    [FIELD_LIST] = read_list,         [FIELD_TEXT_MAP] = read_text_map,
    [FIELD_BYTES] = read_bytes,       [FIELD_VALUE] = read_value,
    [FIELD_OBJECT] = read_value,      [FIELD_MS] = read_with_unit,
    [FIELD_AMOUNT] = read_with_unit,  [FIELD_MILLIS] = read_with_unit,
};

static bool is_absent(const struct data_value *value, const struct field *field)
{
    bool is_any = field->type == FIELD_VALUE; // null is a value there
    return !value || (value->kind == VALUE_NULL && field->is_nullable && !is_any &&
                      field->type != FIELD_TEXT_MAP);
}

static void read_map(struct reader *reader, const struct data_value *map,
                     const struct field *fields, char *into)
{
    for (const struct field *field = fields; field->name; field++) {
        const struct data_value *value = value_get(map, field->name);
        size_t before = enter_name(reader, field->name, strlen(field->name));
        if (is_absent(value, field)) {
            if (field->is_needed)
                fault(reader, "is missing");
        } else {
            types[field->type](reader, value, field, into + field->offset);
            if (field->has_offset)
                *(bool *)(into + field->has_offset) = true;
        }
        leave(reader, before);
    }
}

int fields_read_all(const struct data_value *body, const struct field *fields, void *into,
                    struct field_faults *faults, struct error *err)
{
    struct reader reader = {.memory = body->document, .list = faults};

    if (body->kind != VALUE_MAP) {
        fault(&reader, "must be an object, not %s", kind_name(body->kind));
        return error_set(err, ERROR_INVALID, "the body must be an object, not %s",
                         kind_name(body->kind));
    }
    read_map(&reader, body, fields, into);
    if (reader.faults == 0)
        return 0;
    size_t more = reader.faults - reader.named;
    if (more)
        (void)error_set(err, ERROR_INVALID, "%s; and %zu more", reader.text, more);
    else
        (void)error_set(err, ERROR_INVALID, "%s", reader.text);
    return error_field(err, reader.first);
}

int fields_read(const struct data_value *body, const struct field *fields, void *into,
                struct error *err)
{
    return fields_read_all(body, fields, into, NULL, err);
}

// ---- names that there are not ----

static const struct field *field_named(const struct field *fields, const char *name)
{
    for (; fields && fields->name; fields++) {
        if (strcmp(fields->name, name) == 0)
            return fields;
    }
    return NULL;
}

static int refuse_name(const struct reader *reader, const struct data_value *member,
                       const struct field *fields, struct error *err)
{
    struct suggestion suggestion = {.wanted = member->key};

    for (const struct field *field = fields; field && field->name; field++)
        suggestion_consider(&suggestion, field->name);
    if (suggestion.nearest)
        (void)error_set(err, ERROR_UNKNOWN_FIELD, "%s: there is no such field; did you mean '%s'?",
                        reader->path, suggestion.nearest);
    else
        (void)error_set(err, ERROR_UNKNOWN_FIELD, "%s: there is no such field", reader->path);
    return error_field(err, reader->path);
}

static int check_names(struct reader *reader, const struct data_value *map,
                       const struct field *fields, struct error *err);

static int check_items(struct reader *reader, const struct data_value *list,
                       const struct field *field, struct error *err)
{
    size_t index = 0;

    for (const struct data_value *item = list->first; item; item = item->next) {
        size_t before = enter(reader, "[%zu]", index++);
        if (item->kind == VALUE_MAP && check_names(reader, item, field->fields, err) < 0)
            return -1;
        leave(reader, before);
    }
    return 0;
}

static int check_member(struct reader *reader, const struct data_value *member,
                        const struct field *field, struct error *err)
{
    if (field->type == FIELD_MAP && member->kind == VALUE_MAP)
        return check_names(reader, member, field->fields, err);
    if (field->type == FIELD_LIST && member->kind == VALUE_LIST)
        return check_items(reader, member, field, err);
    return 0;
}

static int check_names(struct reader *reader, const struct data_value *map,
                       const struct field *fields, struct error *err)
{
    for (const struct data_value *member = map->first; member; member = member->next) {
        size_t before = enter_name(reader, member->key, member->key_length);
        bool is_whole = strlen(member->key) == member->key_length;
        const struct field *field = is_whole ? field_named(fields, member->key) : NULL;
        if (!field)
            return refuse_name(reader, member, fields, err);
        if (check_member(reader, member, field, err) < 0)
            return -1;
        leave(reader, before);
    }
    return 0;
}

int fields_check_names(const struct data_value *body, const struct field *fields, struct error *err)
{
    struct reader reader = {.memory = body->document};

    return check_names(&reader, body, fields, err);
}
