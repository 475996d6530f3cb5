/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and unpacks lists of strings; see strings.h. */
#include "base/strings.h"

#include "base/mem.h"

#include <stdbool.h>
#include <string.h>

static bool is_escaped(char c)
{
    return c == '\n' || c == '\\';
}

/* How long the item is when packed, its newline included. */
static size_t packed_length(const char *item)
{
    size_t length = 1;
    for (; *item; item++)
        length += is_escaped(*item) ? 2 : 1;
    return length;
}

static char *pack_item(char *to, const char *item)
{
    for (; *item; item++) {
        if (is_escaped(*item))
            *to++ = '\\';
        *to++ = *item;
    }
    *to++ = '\n';
    return to;
}

char *strings_pack(const char *const *items)
{
    size_t length = 1;

    for (const char *const *item = items; item && *item; item++)
        length += packed_length(*item);
    char *packed = xcalloc(length, 1), *to = packed;
    for (const char *const *item = items; item && *item; item++)
        to = pack_item(to, *item);
    return packed;
}

/* Takes the item. Room doubles when what is needed reaches a power of two. */
static void add(struct strings *strings, char *item)
{
    size_t needed = strings->count + 2; // with the NULL
    if ((needed & (needed - 1)) == 0)
        strings->items = xrealloc(strings->items, needed * 2, sizeof *strings->items);
    strings->items[strings->count++] = item;
    strings->items[strings->count] = NULL;
}

void strings_add(struct strings *strings, const char *item)
{
    add(strings, xstrdup(item));
}

/* The newline that ends the item at `from`, or the end of the text. */
static const char *item_end(const char *from)
{
    while (*from && *from != '\n')
        from += *from == '\\' && from[1] ? 2 : 1;
    return from;
}

/* What comes after the item that ends there. */
static const char *next_item(const char *end)
{
    return *end ? end + 1 : end;
}

/* Writes the item and a NUL; returns what is behind that. */
static char *unpack_item(const char *from, const char *end, char *to)
{
    for (; from < end; from++) {
        if (*from == '\\' && from + 1 < end)
            from++;
        *to++ = *from;
    }
    *to++ = '\0';
    return to;
}

void strings_unpack(const char *packed, struct strings *out)
{
    *out = (struct strings){.items = xcalloc(2, sizeof(char *))};
    while (packed && *packed) {
        const char *end = item_end(packed);
        char *item = xcalloc((size_t)(end - packed) + 1, 1);
        (void)unpack_item(packed, end, item);
        add(out, item);
        packed = next_item(end);
    }
}

const char *const *strings_copy(const char *const *items)
{
    size_t count = 0, length = 0;

    if (!items)
        return NULL;
    for (; items[count]; count++)
        length += strlen(items[count]) + 1;
    size_t room = (count + 1) * sizeof(char *);
    char **copy = xcalloc(1, room + length), *to = (char *)copy + room;
    for (size_t i = 0; i < count; i++) {
        copy[i] = to;
        to = stpcpy(to, items[i]) + 1;
    }
    return (const char *const *)copy;
}

const char *const *strings_list(const char *packed)
{
    size_t count = 0, bytes = 1;

    if (!packed)
        return NULL;
    for (const char *from = packed; *from; from = next_item(item_end(from)))
        count++;
    bytes += strlen(packed) + count;
    char **list = xcalloc((count + 1) * sizeof *list + bytes, 1), **place = list;
    char *to = (char *)(list + count + 1);
    for (const char *from = packed; *from; from = next_item(item_end(from))) {
        *place++ = to;
        to = unpack_item(from, item_end(from), to);
    }
    return (const char *const *)list;
}

void strings_clear(struct strings *strings)
{
    for (size_t i = 0; i < strings->count; i++)
        free(strings->items[i]);
    free(strings->items);
    *strings = (struct strings){0};
}

static bool is_named(const char *item, const char *name, size_t length)
{
    return strncmp(item, name, length) == 0 && item[length] == '=';
}

static size_t find(const struct strings *strings, const char *name)
{
    size_t i = 0, length = strlen(name);
    while (i < strings->count && !is_named(strings->items[i], name, length))
        i++;
    return i;
}

void strings_set(struct strings *strings, const char *name, const char *value)
{
    size_t at = find(strings, name);

    if (value && at == strings->count) {
        add(strings, xasprintf("%s=%s", name, value));
        return;
    }
    if (at == strings->count)
        return;
    free(strings->items[at]);
    if (value)
        strings->items[at] = xasprintf("%s=%s", name, value);
    else // the NULL moves too
        memmove(&strings->items[at], &strings->items[at + 1],
                (strings->count-- - at) * sizeof(char *));
}

void strings_merge(struct strings *strings, const char *const *pairs)
{
    for (; pairs && *pairs; pairs++) {
        const char *equals = strchr(*pairs, '=');
        autofree char *name = xstrndup(*pairs, (size_t)(equals - *pairs));
        strings_set(strings, name, equals + 1);
    }
}

int strings_check_env(const char *const *env, struct error *err)
{
    for (; env && *env; env++) {
        if (**env == '=' || !strchr(*env, '='))
            return error_set(err, ERROR_INVALID, "environment entry '%.80s' is not NAME=VALUE",
                             *env);
    }
    return 0;
}
