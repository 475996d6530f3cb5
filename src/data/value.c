// SPDX-License-Identifier: Apache-2.0
// The tree that data files and request bodies are read into, and its typed getters.
#include "data/value.h"

#include "base/mem.h"
#include "base/quote.h"
#include "base/suggest.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct data_document *data_document_new(const char *name)
{
    struct data_document *document = xnew(struct data_document);

    document->name = arena_copy(&document->arena, name, strlen(name));
    return document;
}

void data_document_free(struct data_document *document)
{
    if (!document)
        return;
    arena_clear(&document->arena);
    free(document);
}

void *value_alloc(struct data_document *document, size_t size)
{
    return arena_alloc(&document->arena, size);
}

struct data_value *value_add(struct data_document *document, struct data_value *parent,
                             enum value_kind kind, const char *key, size_t key_length)
{
    struct data_value *value = value_alloc(document, sizeof *value);

    value->kind = kind;
    value->key = key;
    value->key_length = key_length;
    value->parent = parent;
    value->document = document;
    if (!parent) {
        document->root = value;
        return value;
    }
    if (parent->last)
        parent->last->next = value;
    else
        parent->first = value;
    parent->last = value;
    parent->count++;
    return value;
}

struct data_value *value_get(const struct data_value *map, const char *key)
{
    return value_get_part(map, key, strlen(key));
}

struct data_value *value_get_part(const struct data_value *map, const char *key, size_t length)
{
    if (!map || map->kind != VALUE_MAP)
        return NULL;
    for (struct data_value *member = map->first; member; member = member->next)
        if (member->key_length == length && memcmp(member->key, key, length) == 0)
            return member;
    return NULL;
}

const char *value_kind_name(enum value_kind kind)
{
    static const char *const names[] = {
        [VALUE_NULL] = "empty",      [VALUE_BOOL] = "true or false", [VALUE_NUMBER] = "a number",
        [VALUE_STRING] = "a string", [VALUE_LIST] = "a list",        [VALUE_MAP] = "a map",
    };
    return names[kind];
}

// ---- errors with a place ----

// Appends the path of `value` below the root: "build.packages[3]". Readers bound the depth; a long
// path is cut.
static void add_path(const struct data_value *value, char *text, size_t size)
{
    char rest[256];

    if (!value->parent)
        return;
    add_path(value->parent, text, size);
    if (value->key) {
        (void)snprintf(rest, sizeof rest, "%s%.*s", *text ? "." : "",
                       (int)(value->key_length < 100 ? value->key_length : 100), value->key);
    } else {
        size_t index = 0;
        for (const struct data_value *v = value->parent->first; v != value; v = v->next)
            index++;
        (void)snprintf(rest, sizeof rest, "[%zu]", index);
    }
    size_t used = strlen(text);
    (void)snprintf(text + used, size - used, "%s", rest);
}

int value_error(const struct data_value *value, struct error *err, const char *format, ...)
{
    char path[256] = "", text[512];
    const char *name = value->document->name;
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    add_path(value, path, sizeof path);
    error_set(err, ERROR_INVALID, "%s%s%s%s%s", name, *name ? ": " : "", path, *path ? ": " : "",
              text);
    quote_scrub(err->text); // whatever the keys hold
    return -1;
}

static int expect(const struct data_value *value, enum value_kind kind, struct error *err)
{
    if (value->kind == kind)
        return 0;
    return value_error(value, err, "must be %s, not %s", value_kind_name(kind),
                       value_kind_name(value->kind));
}

int value_check_keys(const struct data_value *map, const char *const *known, struct error *err)
{
    if (expect(map, VALUE_MAP, err) < 0)
        return -1;
    for (const struct data_value *member = map->first; member; member = member->next) {
        struct suggestion near = {.wanted = member->key};
        bool is_known = false;

        for (const char *const *name = known; *name && !is_known; name++) {
            is_known = strlen(*name) == member->key_length && strcmp(member->key, *name) == 0;
            suggestion_consider(&near, *name);
        }
        if (!is_known && near.nearest)
            return value_error(member, err, "unknown field; did you mean '%s'?", near.nearest);
        if (!is_known)
            return value_error(member, err, "unknown field");
    }
    return 0;
}

// ---- typed getters ----

// The member when it says something: NULL with 0 when it may be missing and is.
static int find_member(const struct data_value *map, const char *key, bool needed,
                       struct data_value **out, struct error *err)
{
    struct data_value *member = value_get(map, key);

    if (expect(map, VALUE_MAP, err) < 0)
        return -1;
    if (member && member->kind == VALUE_NULL)
        member = NULL;
    if (!member && needed)
        return value_error(map, err, "'%s' is missing", key);
    *out = member;
    return 0;
}

static int read_text(const struct data_value *value, const char **out, struct error *err)
{
    if (value->kind != VALUE_NUMBER && expect(value, VALUE_STRING, err) < 0)
        return -1;
    if (memchr(value->text, 0, value->length))
        return value_error(value, err, "must not hold a NUL character");
    *out = value->text;
    return 0;
}

int value_get_string(const struct data_value *map, const char *key, bool needed, const char **out,
                     struct error *err)
{
    struct data_value *member;

    if (find_member(map, key, needed, &member, err) < 0)
        return -1;
    return member ? read_text(member, out, err) : 0;
}

int value_get_integer(const struct data_value *map, const char *key, bool needed, int64_t minimum,
                      int64_t maximum, int64_t *out, struct error *err)
{
    struct data_value *member;
    char *end;

    if (find_member(map, key, needed, &member, err) < 0)
        return -1;
    if (!member)
        return 0;
    if (expect(member, VALUE_NUMBER, err) < 0)
        return -1;
    errno = 0;
    long long number = strtoll(member->text, &end, 10);
    if (*end)
        return value_error(member, err, "must be a whole number, not '%.40s'", member->text);
    if (errno || number < minimum || number > maximum)
        return value_error(member, err, "must be from %lld to %lld, not '%.40s'",
                           (long long)minimum, (long long)maximum, member->text);
    *out = number;
    return 0;
}

int value_get_map(const struct data_value *map, const char *key, bool needed,
                  struct data_value **out, struct error *err)
{
    struct data_value *member;

    if (find_member(map, key, needed, &member, err) < 0)
        return -1;
    if (!member)
        return 0;
    if (expect(member, VALUE_MAP, err) < 0)
        return -1;
    *out = member;
    return 0;
}

int value_get_strings(const struct data_value *map, const char *key, bool needed, const char ***out,
                      struct error *err)
{
    struct data_value *member;

    if (find_member(map, key, needed, &member, err) < 0)
        return -1;
    if (!member)
        return 0;
    bool is_one = member->kind == VALUE_STRING || member->kind == VALUE_NUMBER;
    if (!is_one && expect(member, VALUE_LIST, err) < 0)
        return -1;
    size_t count = is_one ? 1 : member->count, i = 0;
    const char **strings = value_alloc(map->document, (count + 1) * sizeof *strings);
    for (struct data_value *v = is_one ? member : member->first; i < count; v = v->next)
        if (read_text(v, &strings[i++], err) < 0)
            return -1;
    *out = strings;
    return 0;
}
