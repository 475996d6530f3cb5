/* SPDX-License-Identifier: Apache-2.0 */
/* Long stacks of layers; see chains.h. */
#include "store/chains.h"

#include "base/mem.h"
#include "store/tables.h"

#include <stdlib.h>

void layer_record_clear(struct layer_record *record)
{
    record_clear(&layer_table, record);
}

int store_chain_find(struct store *store, const char *merged_of, struct layer_record *out,
                     struct error *err)
{
    struct sql_value args[] = {sql_text(merged_of), sql_text(store_node(store))};
    return record_get(store, &layer_table,
                      "merged_of = $1 AND node = $2 ORDER BY created_at LIMIT 1", args,
                      ARRAY_SIZE(args), "merged", out, err);
}

/* Ready ones that use a layer ($1) and whose layers end with a text ($2). */
#define ENDING_WITH                                                                                \
    "id IN (SELECT user_id FROM layer_uses WHERE layer = $1) AND state = 'ready' AND "             \
    "substr(layers, length(layers) - length($2) + 1) = $2"

static int release_names(struct store_call *call, const char *const *names, const char *instead,
                         struct error *err)
{
    for (; *names; names++) {
        struct sql_value args[] = {sql_text(*names), sql_text(instead)};
        if (store_run(call,
                      "DELETE FROM layer_uses WHERE layer = $1 AND user_id IN (SELECT id FROM "
                      "snapshots WHERE id IN (SELECT user_id FROM layer_uses WHERE layer = $2))",
                      args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0)
            return -1;
    }
    return 0;
}

static int replace_once(struct store_call *call, const char *name, const char *merged_of,
                        const char *const *names, int64_t *n_changed, struct error *err)
{
    autofree char *packed = xasprintf("%s\n", name);
    struct sql_value update[] = {sql_text(names[0]), sql_text(merged_of), sql_text(packed)};
    struct sql_value use[] = {sql_text(names[0]), sql_text(packed), sql_text(name)};

    if (store_call_begin(call, STORE_DURABLE, err) < 0 ||
        store_run(call,
                  "UPDATE snapshots SET layers = substr(layers, 1, length(layers) - length($2)) || "
                  "$3 WHERE " ENDING_WITH,
                  update, ARRAY_SIZE(update), NULL, NULL, n_changed, err) < 0 ||
        store_run(call,
                  "INSERT INTO layer_uses (layer, user_id) SELECT $3, id FROM snapshots "
                  "WHERE " ENDING_WITH " ON CONFLICT DO NOTHING",
                  use, ARRAY_SIZE(use), NULL, NULL, NULL, err) < 0 ||
        release_names(call, names, name, err) < 0)
        return error_wrap(err, "put layer '%s' in the place of others", name);
    return store_call_done(call, err);
}

int store_chain_replace(struct store *store, const char *name, const char *merged_of,
                        const char *const *names, int64_t *n_changed, struct error *err)
{
    autocall call = {.store = store};
    int64_t changed = 0;
    int result;

    do
        result = replace_once(&call, name, merged_of, names, &changed, err);
    while (result < 0 && store_call_again(&call, err));
    if (result == 0)
        *n_changed = changed;
    return result;
}

void chain_list_clear(struct chain_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->ids[i]);
    free(list->ids);
    *list = (struct chain_list){0};
}

static int take_id(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct chain_list *list = data;

    (void)n_columns;
    (void)err;
    list->ids = xrealloc(list->ids, list->count + 1, sizeof *list->ids);
    list->ids[list->count++] = xstrdup(row[0].data);
    return 0;
}

static int list_ids(struct store *store, const char *text, const struct sql_value *args,
                    size_t n_args, struct chain_list *out, struct error *err)
{
    autochains found = {0};
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 ||
        store_run(&call, text, args, n_args, take_id, &found, NULL, err) < 0)
        return error_wrap(err, "look through the snapshots");
    *out = found;
    found = (struct chain_list){0};
    return 0;
}

int store_chain_list_long(struct store *store, unsigned maximum, struct chain_list *out,
                          struct error *err)
{
    struct sql_value args[] = {sql_number(maximum), sql_text(store_node(store))};
    return list_ids(store,
                    "SELECT id FROM snapshots WHERE state = 'ready' AND node = $2 AND (SELECT "
                    "count(*) FROM layer_uses WHERE user_id = id) > $1 ORDER BY created_at, id",
                    args, ARRAY_SIZE(args), out, err);
}

int store_chain_list_uncounted(struct store *store, const char *organisation,
                               struct chain_list *out, struct error *err)
{
    struct sql_value args[] = {sql_text(organisation), sql_text(store_node(store))};
    return list_ids(store,
                    "SELECT id FROM snapshots WHERE state = 'ready' AND file_count < 0 AND "
                    "organisation = coalesce($1, organisation) AND node = $2 "
                    "ORDER BY created_at, id",
                    args, ARRAY_SIZE(args), out, err);
}
