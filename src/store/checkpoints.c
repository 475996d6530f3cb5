/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of checkpoints and layers; see checkpoints.h. */
#include "store/checkpoints.h"

#include "store/tables.h"

#define AT(member) offsetof(struct checkpoint_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"name", FIELD_TEXT, 0, AT(name)},
    {"parent", FIELD_TEXT, 0, AT(parent)},
    {"layer", FIELD_TEXT, 0, AT(layer)},
    {"size_bytes", FIELD_NUMBER, 0, AT(size_bytes)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
};

const struct record checkpoint_table = {
    .noun = "checkpoint",
    .table = "checkpoints",
    .size = sizeof(struct checkpoint_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

#define LAYER_AT(member) offsetof(struct layer_record, member)
static const struct field layer_fields[] = {
    {"name", FIELD_TEXT, 0, LAYER_AT(name)},
    {"node", FIELD_NODE, 0, LAYER_AT(node)},
    {"merged_of", FIELD_TEXT, 0, LAYER_AT(merged_of)},
    {"size_bytes", FIELD_NUMBER, 0, LAYER_AT(size_bytes)},
    {"created_at", FIELD_NUMBER, 0, LAYER_AT(created_at)},
};

const struct record layer_table = {
    .noun = "layer",
    .table = "layers",
    .size = sizeof(struct layer_record),
    .fields = layer_fields,
    .n_fields = ARRAY_SIZE(layer_fields),
};

void checkpoint_record_clear(struct checkpoint_record *record)
{
    record_clear(&checkpoint_table, record);
}

void checkpoint_list_clear(struct checkpoint_list *list)
{
    record_rows_clear(&checkpoint_table, list->rows, list->count);
    *list = (struct checkpoint_list){0};
}

void layer_list_clear(struct layer_list *list)
{
    record_rows_clear(&layer_table, list->rows, list->count);
    *list = (struct layer_list){0};
}

int store_checkpoint_put(struct store *store, const struct checkpoint_record *record,
                         struct error *err)
{
    return record_put(store, STORE_DURABLE, &checkpoint_table, record, err);
}

int store_checkpoint_get(struct store *store, const char *sandbox_id, const char *reference,
                         struct checkpoint_record *out, struct error *err)
{
    struct sql_value args[] = {sql_text(sandbox_id), sql_text(reference)};
    return record_get(store, &checkpoint_table, "sandbox_id = $1 AND (id = $2 OR name = $2)", args,
                      ARRAY_SIZE(args), reference, out, err);
}

/* One statement of its own about one or two strings; *changed may be NULL. */
static int run(struct store *store, const char *text, const char *first, const char *second,
               int64_t *changed, struct error *err)
{
    struct sql_value args[] = {sql_text(first), sql_text(second)};
    return store_run_alone(store, STORE_DURABLE, text, args, second ? 2 : 1, changed, err);
}

int store_checkpoint_remove(struct store *store, const char *id, struct error *err)
{
    int64_t removed = 0;
    if (run(store, "DELETE FROM checkpoints WHERE id = $1", id, NULL, &removed, err) < 0)
        return error_wrap(err, "remove checkpoint '%s'", id);
    return removed ? 0 : record_missing(&checkpoint_table, id, err);
}

int store_checkpoint_list(struct store *store, const char *sandbox_id, struct checkpoint_list *out,
                          struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_text(&tail, "sandbox_id", sandbox_id);
    query_add(&tail, " ORDER BY created_at, id");
    if (record_list_all(store, &checkpoint_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct checkpoint_list){rows.rows, rows.count};
    return 0;
}

int store_layer_put(struct store *store, const struct layer_record *record, struct error *err)
{
    return record_put(store, STORE_DURABLE, &layer_table, record, err);
}

int store_layer_use(struct store *store, const char *name, const char *user, struct error *err)
{
    return run(store,
               "INSERT INTO layer_uses (layer, user_id) VALUES ($1, $2) ON CONFLICT DO NOTHING",
               name, user, NULL, err);
}

int store_layer_release(struct store *store, const char *user, struct error *err)
{
    return run(store, "DELETE FROM layer_uses WHERE user_id = $1", user, NULL, NULL, err);
}

int store_layer_forget_users(struct store *store, struct error *err)
{
    if (run(store,
            "DELETE FROM layer_uses WHERE layer IN (SELECT name FROM layers WHERE node = $1) AND "
            "NOT EXISTS (SELECT 1 FROM sandboxes WHERE id = user_id AND ended_at = 0) AND "
            "NOT EXISTS (SELECT 1 FROM snapshots WHERE id = user_id AND deleted_at = 0) AND "
            "NOT EXISTS (SELECT 1 FROM checkpoints WHERE id = user_id)",
            store_node(store), NULL, NULL, err) < 0)
        return error_wrap(err, "find who needs which layer");
    return 0;
}

int store_checkpoint_remove_all(struct store *store, const char *sandbox_id, struct error *err)
{
    if (run(store,
            "DELETE FROM layer_uses WHERE user_id IN (SELECT id FROM checkpoints WHERE sandbox_id "
            "= $1)",
            sandbox_id, NULL, NULL, err) < 0)
        return -1;
    return run(store, "DELETE FROM checkpoints WHERE sandbox_id = $1", sandbox_id, NULL, NULL, err);
}

int store_layer_remove(struct store *store, const char *name, struct error *err)
{
    int64_t removed = 0;
    if (run(store, "DELETE FROM layers WHERE name = $1", name, NULL, &removed, err) < 0)
        return -1;
    return removed ? 0 : record_missing(&layer_table, name, err);
}

int store_layer_list(struct store *store, bool is_unused_only, struct layer_list *out,
                     struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_here(&tail, store);
    if (is_unused_only)
        query_where_that(&tail, "NOT EXISTS (SELECT 1 FROM layer_uses WHERE layer = layers.name)");
    query_add(&tail, " ORDER BY created_at, name");
    if (record_list_all(store, &layer_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct layer_list){rows.rows, rows.count};
    return 0;
}
