/* SPDX-License-Identifier: Apache-2.0 */
/* What a server answered; see listing.h. */
#include "cli/listing.h"

#include "base/auto.h"
#include "base/base64.h"
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

#define SORTED_MOST 10000 // looked at where the order is not the server's
#define LIST_USUAL 50
#define LIST_BYTES ((size_t)32 << 20) // of all pages, which are kept until they are printed
#define EMPTY_PAGES 1000              // in a row, that only tell where to go on

const char *value_text(const struct burrow_value *map, const char *path)
{
    const char *text = burrow_text(burrow_get(map, path));

    return text ? text : "";
}

char *value_bytes(const struct burrow_value *map, const char *member, const char *in_base64)
{
    const struct burrow_value *odd = burrow_get(map, in_base64);
    const size_t length = burrow_text_length(odd);
    size_t bad;

    if (!odd || !burrow_text(odd))
        return xstrdup(value_text(map, member));
    char *name = xcalloc(1, base64_room(length) + 1);
    if (base64_decode(burrow_text(odd), length, name, &bad) < 0)
        *name = '\0';
    return name;
}

// ---- pages ----

void items_clear(struct items *items)
{
    for (size_t i = 0; i < items->n_answers; i++)
        burrow_answer_free(items->answers[i]);
    free(items->answers);
    free(items->items);
    *items = (struct items){0};
}

int items_gather(struct invocation *invocation, const char *path, size_t wanted,
                 bool (*is_wanted)(const struct invocation *invocation,
                                   const struct burrow_value *item),
                 struct items *items, struct burrow_error *err)
{
    autofree char *next = xstrdup(path);
    unsigned n_empty = 0;
    size_t n_bytes = 0;

    while (next && items->count < wanted) {
        struct burrow_answer *answer = NULL;
        if (burrow_ask(invocation->client, "GET", next, NULL, &answer, err) < 0)
            return -1;
        items->answers = xrealloc(items->answers, items->n_answers + 1, sizeof *items->answers);
        items->answers[items->n_answers++] = answer;
        const struct burrow_value *page = burrow_answer_value(answer),
                                  *list = burrow_get(page, "items");
        items->items =
            xrealloc(items->items, items->count + burrow_count(list) + 1, sizeof *items->items);
        for (const struct burrow_value *each = burrow_first(list); each; each = burrow_next(each)) {
            if (!is_wanted || is_wanted(invocation, each))
                items->items[items->count++] = each;
        }
        const char *cursor = burrow_text(burrow_get(page, "nextCursor"));
        n_empty = burrow_count(list) ? 0 : n_empty + 1;
        n_bytes += strlen(burrow_answer_text(answer));
        if (cursor && items->count < wanted && (n_empty > EMPTY_PAGES || n_bytes > LIST_BYTES))
            return say_fail(err, BURROW_PROTOCOL,
                            n_empty > EMPTY_PAGES
                                ? "the server's list does not end"
                                : "the server's list is more than 32 MiB: ask for a part of it");
        autofree char *encoded = cursor ? burrow_path("%s", cursor, NULL) : NULL;
        free(next);
        items->has_more = cursor != NULL;
        next = encoded ? xasprintf("%s&cursor=%s", path, encoded) : NULL;
    }
    return 0;
}

// ---- orders ----

struct order {
    const struct sort_key *key;
    bool is_ascending;
};

static int compare_by(const struct sort_key *key, const struct burrow_value *left,
                      const struct burrow_value *right)
{
    if (!key->is_number)
        return strcmp(value_text(left, key->path), value_text(right, key->path));
    int64_t x = burrow_integer(burrow_get(left, key->path), 0);
    int64_t y = burrow_integer(burrow_get(right, key->path), 0);
    return (x > y) - (x < y);
}

static int compare(const void *a, const void *b, void *context)
{
    static const struct sort_key name = {"name", "name", false}, id = {"id", "id", false};
    const struct order *order = context;
    const struct burrow_value *left = *(const struct burrow_value *const *)a;
    const struct burrow_value *right = *(const struct burrow_value *const *)b;
    int result = compare_by(order->key, left, right);

    if (result)
        return order->is_ascending ? result : -result;
    result = compare_by(&name, left, right); // what is alike has one order all the same
    return result ? result : compare_by(&id, left, right);
}

static const struct sort_key *find_key(const struct sort_key *keys, const char *word)
{
    while (keys->word && strcmp(keys->word, word) != 0)
        keys++;
    return keys->word ? keys : NULL;
}

static int refuse_key(const struct sort_key *keys, const char *word, struct burrow_error *err)
{
    autobuffer text = {0};
    struct error ignored;

    for (const struct sort_key *key = keys; key->word; key++)
        (void)buffer_addf(&text, &ignored, "%s%s",
                          key == keys   ? ""
                          : key[1].word ? ", "
                                        : " or ",
                          key->word);
    return say_fail(err, BURROW_INVALID, "--sort is %s, not '%s'", text.data, word);
}

int listing_check(const struct invocation *invocation, const struct sort_key *keys,
                  struct burrow_error *err)
{
    if (invocation->sort && !find_key(keys, invocation->sort))
        return refuse_key(keys, invocation->sort, err);
    if (invocation->direction && strcmp(invocation->direction, "asc") != 0 &&
        strcmp(invocation->direction, "desc") != 0)
        return say_fail(err, BURROW_INVALID, "--direction is asc or desc, not '%s'",
                        invocation->direction);
    return 0;
}

// ---- printing ----

static int print(struct invocation *invocation, const struct items *items, size_t from,
                 size_t count, const struct column *columns, struct burrow_error *err)
{
    if (invocation->is_json || !invocation->is_quiet)
        return columns_print(invocation, items->items + from, count, columns, err);
    for (size_t i = from; i < from + count; i++) {
        autofree char *id = say_clean(value_text(items->items[i], "id"));
        (void)puts(id);
    }
    return 0;
}

int listing_print(struct invocation *invocation, const struct listing *listing,
                  struct burrow_error *err)
{
    const struct sort_key *keys = listing->keys;
    autoclear(items) items = {0};

    if (listing_check(invocation, keys, err) < 0)
        return -1;
    size_t limit = invocation->limit > 0 ? (size_t)invocation->limit : LIST_USUAL;
    size_t offset = (size_t)invocation->offset;
    struct order order = {invocation->sort ? find_key(keys, invocation->sort) : keys,
                          invocation->direction && strcmp(invocation->direction, "asc") == 0};
    bool is_servers = strcmp(order.key->word, listing->server_sort) == 0 &&
                      order.is_ascending == listing->server_is_ascending;
    size_t wanted = is_servers ? offset + limit : SORTED_MOST;
    autofree char *path = xasprintf("%s&limit=%zu", listing->path, wanted < 100 ? wanted : 100);
    if (items_gather(invocation, path, wanted, listing->is_wanted, &items, err) < 0)
        return -1;
    if (!is_servers && items.count)
        qsort_r(items.items, items.count, sizeof *items.items, compare, &order);
    size_t from = offset < items.count ? offset : items.count;
    size_t count = items.count - from < limit ? items.count - from : limit;
    if (print(invocation, &items, from, count, listing->columns, err) < 0)
        return -1;
    if ((items.has_more || from + count < items.count) && !invocation->is_json)
        say_note("there may be more: --offset %zu goes on, --limit shows more at once",
                 from + count);
    return 0;
}
