/* SPDX-License-Identifier: Apache-2.0 */
/* Packs and unpacks lists of texts; see texts.h. */
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

char *texts_pack(const char *const *items)
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
static void add(struct texts *texts, char *item)
{
    size_t needed = texts->count + 2; // with the NULL
    if ((needed & (needed - 1)) == 0)
        texts->items = xrealloc(texts->items, needed * 2, sizeof *texts->items);
    texts->items[texts->count++] = item;
    texts->items[texts->count] = NULL;
}

void texts_add(struct texts *texts, const char *item)
{
    add(texts, xstrdup(item));
}

/* The newline that ends the item at `from`, or the end of the text. */
static const char *item_end(const char *from)
{
    while (*from && *from != '\n')
        from += *from == '\\' && from[1] ? 2 : 1;
    return from;
}

static char *unpack_item(const char *from, const char *end)
{
    char *item = xcalloc((size_t)(end - from) + 1, 1);

    for (char *to = item; from < end; from++) {
        if (*from == '\\' && from + 1 < end)
            from++;
        *to++ = *from;
    }
    return item;
}

void texts_unpack(const char *packed, struct texts *out)
{
    *out = (struct texts){.items = xcalloc(2, sizeof(char *))};
    while (packed && *packed) {
        const char *end = item_end(packed);
        add(out, unpack_item(packed, end));
        packed = *end ? end + 1 : end;
    }
}

void texts_clear(struct texts *texts)
{
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct texts){0};
}

static bool is_named(const char *item, const char *name, size_t length)
{
    return strncmp(item, name, length) == 0 && item[length] == '=';
}

static size_t find(const struct texts *texts, const char *name)
{
    size_t i = 0, length = strlen(name);
    while (i < texts->count && !is_named(texts->items[i], name, length))
        i++;
    return i;
}

void texts_set(struct texts *texts, const char *name, const char *value)
{
    size_t at = find(texts, name);

    if (value && at == texts->count) {
        add(texts, xasprintf("%s=%s", name, value));
        return;
    }
    if (at == texts->count)
        return;
    free(texts->items[at]);
    if (value)
        texts->items[at] = xasprintf("%s=%s", name, value);
    else // the NULL moves too
        memmove(&texts->items[at], &texts->items[at + 1], (texts->count-- - at) * sizeof(char *));
}

const char *texts_get(const struct texts *texts, const char *name)
{
    size_t at = find(texts, name);
    return at < texts->count ? strchr(texts->items[at], '=') + 1 : NULL;
}
