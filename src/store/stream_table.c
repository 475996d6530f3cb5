/* SPDX-License-Identifier: Apache-2.0 */
/* The table of streams and their labels; see streams.h. */
#include "store/streams.h"

#include "store/tables.h"

static const char *const kind_names[] = {
    [STREAM_STDIN] = "stdin",       [STREAM_STDOUT] = "stdout", [STREAM_STDERR] = "stderr",
    [STREAM_COMBINED] = "combined", [STREAM_USER] = "user",     NULL,
};
static const char *const state_names[] = {
    [STREAM_OPEN] = "open",
    [STREAM_COMPLETE] = "complete",
    NULL,
};

#define AT(member) offsetof(struct stream_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"state", FIELD_NAME, STREAM_PART_STATE, AT(state), state_names},
    {"sandbox_id", FIELD_TEXT, STREAM_PART_PLACE, AT(sandbox_id)},
    {"execution_id", FIELD_TEXT, STREAM_PART_PLACE, AT(execution_id)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"organisation", FIELD_TEXT, 0, AT(owner.organisation)},
    {"tenant", FIELD_TEXT, 0, AT(owner.tenant)},
    {"scope", FIELD_TEXT, 0, AT(owner.scope)},
    {"project", FIELD_TEXT, 0, AT(owner.project)},
    {"member", FIELD_TEXT, 0, AT(owner.member)},
    {"kind", FIELD_NAME, STREAM_PART_PLACE, AT(kind), kind_names},
    {"name", FIELD_TEXT, 0, AT(name)},
    {"metadata", FIELD_TEXT, 0, AT(metadata)},
    {"headers", FIELD_TEXT, 0, AT(headers)},
    {"file", FIELD_TEXT, 0, AT(file)},
    {"completed_at", FIELD_NUMBER, STREAM_PART_STATE, AT(completed_at)},
    {"size_bytes", FIELD_NUMBER, STREAM_PART_SIZE, AT(size_bytes)},
    {"dropped_bytes", FIELD_NUMBER, STREAM_PART_SIZE, AT(dropped_bytes)},
    {"is_truncated", FIELD_FLAG, STREAM_PART_SIZE, AT(is_truncated)},
    {"expires_at", FIELD_NUMBER, STREAM_PART_EXPIRY, AT(expires_at)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"updated_at", FIELD_NUMBER, EVERY_PART, AT(updated_at)},
};

const struct record stream_table = {
    .noun = "stream",
    .table = "streams",
    .size = sizeof(struct stream_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
    .id = 0,
    .state = 1,
};

void stream_record_clear(struct stream_record *record)
{
    record_clear(&stream_table, record);
}

void stream_list_clear(struct stream_list *list)
{
    record_rows_clear(&stream_table, list->rows, list->count);
    *list = (struct stream_list){0};
}

static int put_label(struct store_call *call, const char *id, const struct stream_label *label,
                     struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_text(label->name), sql_text(label->value)};

    if (store_run(call, "INSERT INTO stream_labels (stream_id, name, value) VALUES ($1, $2, $3)",
                  args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "label stream '%s'", id);
    return 0;
}

static int put_once(struct store_call *call, const struct stream_record *record,
                    const struct stream_label *labels, size_t n_labels, struct error *err)
{
    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        record_insert(call, &stream_table, record, err) < 0)
        return -1;
    for (size_t i = 0; i < n_labels; i++)
        if (put_label(call, record->id, &labels[i], err) < 0)
            return -1;
    return store_call_done(call, err);
}

int store_stream_put(struct store *store, const struct stream_record *record,
                     const struct stream_label *labels, size_t n_labels, struct error *err)
{
    autocall call = {.store = store};
    int result;

    if (n_labels > STREAM_LABELS_MAX)
        return error_set(err, ERROR_LIMIT, "a stream has at most %d labels", STREAM_LABELS_MAX);
    do
        result = put_once(&call, record, labels, n_labels, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_stream_get(struct store *store, const char *id, struct stream_record *out,
                     struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &stream_table, "id = $1", &arg, 1, id, out, err);
}

int store_stream_update(struct store *store, const struct stream_record *record, unsigned parts,
                        unsigned from, struct error *err)
{
    return record_update(store, STORE_FAST, &stream_table, record, parts, from, err);
}

int store_stream_remove(struct store *store, const char *id, struct error *err)
{
    struct sql_value arg = sql_text(id);
    int64_t removed = 0;

    if (store_run_alone(store, STORE_FAST, "DELETE FROM streams WHERE id = $1", &arg, 1, &removed,
                        err) < 0)
        return error_wrap(err, "remove stream '%s'", id);
    return removed ? 0 : record_missing(&stream_table, id, err);
}

static const char *const orders[][2] = {
    [STREAM_BY_CREATED] = {"created_at, id", "created_at DESC, id DESC"},
    [STREAM_BY_UPDATED] = {"updated_at, id", "updated_at DESC, id DESC"},
    [STREAM_BY_NAME] = {"name, id", "name DESC, id DESC"},
    [STREAM_BY_SIZE] = {"size_bytes, id", "size_bytes DESC, id DESC"},
};

static void where_label(struct query *query, const struct stream_label *label)
{
    query_where_that(query, "EXISTS (SELECT 1 FROM stream_labels WHERE stream_id = streams.id AND "
                            "stream_labels.name = ");
    query_add_value(query, sql_text(label->name));
    query_add(query, " AND stream_labels.value = ");
    query_add_value(query, sql_text(label->value));
    query_add(query, ")");
}

int store_stream_list(struct store *store, const struct stream_filter *filter,
                      struct stream_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    if (filter->n_labels > STREAM_FILTER_LABELS)
        return error_set(err, ERROR_LIMIT, "streams can be looked for by at most %d labels",
                         STREAM_FILTER_LABELS);
    query_init(&where);
    query_where_owner(&where, &filter->owner);
    query_where_text(&where, "sandbox_id", filter->sandbox_id);
    query_where_text(&where, "name", filter->name);
    query_where_text(&where, "kind", filter->kind ? kind_names[*filter->kind] : NULL);
    for (size_t i = 0; i < filter->n_labels; i++)
        where_label(&where, &filter->labels[i]);
    if (record_list(store, &stream_table, &where, orders[filter->sort][filter->is_descending],
                    &filter->page, STREAM_PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct stream_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_stream_list_expired(struct store *store, int64_t now, int64_t limit,
                              struct stream_list *out, struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, "expires_at <> 0");
    query_where(&tail, "expires_at <", sql_number(now));
    query_where_here(&tail, store);
    query_add(&tail, " ORDER BY expires_at, id LIMIT ");
    query_add_value(&tail, sql_number(limit));
    if (record_list_all(store, &stream_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct stream_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

static int list_tail(struct store *store, const struct query *tail, struct stream_list *out,
                     struct error *err)
{
    struct record_rows rows;

    if (record_list_all(store, &stream_table, tail, &rows, err) < 0)
        return -1;
    *out = (struct stream_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_stream_list_outlived(struct store *store, int64_t ended_before, int64_t limit,
                               struct stream_list *out, struct error *err)
{
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, "sandbox_id IN (SELECT id FROM sandboxes WHERE ended_at <> 0 AND "
                            "keep_ms = 0 AND ended_at < ");
    query_add_value(&tail, sql_number(ended_before));
    query_add(&tail, ")");
    query_where_here(&tail, store);
    query_add(&tail, " LIMIT ");
    query_add_value(&tail, sql_number(limit));
    return list_tail(store, &tail, out, err);
}

int store_stream_list_aged(struct store *store, int64_t completed_before, int64_t limit,
                           struct stream_list *out, struct error *err)
{
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, "expires_at = 0 AND completed_at <> 0");
    query_where(&tail, "completed_at <", sql_number(completed_before));
    query_where_that(&tail, "sandbox_id IN (SELECT id FROM sandboxes WHERE keep_ms = 0)");
    query_where_here(&tail, store);
    query_add(&tail, " ORDER BY completed_at, id LIMIT ");
    query_add_value(&tail, sql_number(limit));
    return list_tail(store, &tail, out, err);
}

/* The newest is never too much, however large it is. */
#define EXCESS(partition)                                                                          \
    "id IN (SELECT id FROM (SELECT streams.id AS id, streams.size_bytes - streams.dropped_bytes "  \
    "AS own, "                                                                                     \
    "CAST(sum(streams.size_bytes - streams.dropped_bytes) OVER (" partition                        \
    "ORDER BY streams.completed_at DESC, streams.id) AS BIGINT) AS so_far FROM streams "           \
    "JOIN sandboxes ON sandboxes.id = streams.sandbox_id WHERE streams.completed_at <> 0) "        \
    "AS summed WHERE own > 0 AND so_far - own >= "
static const char *const excesses[STREAM_SHARES] = {
    [STREAM_SHARE_SANDBOX] = EXCESS("PARTITION BY streams.sandbox_id "),
    [STREAM_SHARE_KEY] = EXCESS("PARTITION BY sandboxes.key_id "),
    [STREAM_SHARE_ALL] = EXCESS(""),
};

int store_stream_list_excess(struct store *store, enum stream_share share, int64_t bytes,
                             int64_t limit, struct stream_list *out, struct error *err)
{
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, excesses[share]);
    query_add_value(&tail, sql_number(bytes));
    query_add(&tail, ")");
    query_where_here(&tail, store);
    query_add(&tail, " ORDER BY completed_at, id LIMIT ");
    query_add_value(&tail, sql_number(limit));
    return list_tail(store, &tail, out, err);
}

static int take_used(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    int64_t *used = data;

    (void)n_columns;
    (void)err;
    used[0] = row[0].number;
    used[1] = row[1].number;
    return 0;
}

int store_stream_used(struct store *store, int64_t *commands_bytes, int64_t *users_bytes,
                      struct error *err)
{
    struct sql_value node = sql_text(store_node(store));
    struct sql *sql = NULL;
    int64_t used[2] = {0};

    if (store_connection(store, &sql, err) < 0 ||
        sql_run(sql,
                "SELECT CAST(coalesce(sum(CASE WHEN sandbox_id IS NULL THEN 0 ELSE size_bytes - "
                "dropped_bytes END), 0) AS BIGINT), CAST(coalesce(sum(CASE WHEN sandbox_id IS NULL "
                "THEN "
                "size_bytes ELSE 0 END), 0) AS BIGINT) FROM streams WHERE node = $1",
                &node, 1, take_used, used, NULL, err) < 0)
        return error_wrap(err, "add up the streams");
    *commands_bytes = used[0];
    *users_bytes = used[1];
    return 0;
}

static int remove_expired_once(struct store_call *call, const char *id, struct error *err)
{
    struct sql_value arg = sql_text(id);

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        store_run(call,
                  "UPDATE executions SET is_output_expired = 1 WHERE id = (SELECT execution_id "
                  "FROM streams WHERE id = $1 AND sandbox_id IS NOT NULL)",
                  &arg, 1, NULL, NULL, NULL, err) < 0 ||
        store_run(call, "DELETE FROM streams WHERE id = $1", &arg, 1, NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "remove stream '%s'", id);
    return store_call_done(call, err);
}

int store_stream_remove_expired(struct store *store, const char *id, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = remove_expired_once(&call, id, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_stream_expire(struct store *store, const char *sandbox_id, int64_t expires_at,
                        struct error *err)
{
    struct sql_value args[] = {sql_text(sandbox_id), sql_number(expires_at)};

    if (store_run_alone(
            store, STORE_FAST,
            "UPDATE streams SET expires_at = $2 WHERE sandbox_id = $1 AND state = 'complete'", args,
            ARRAY_SIZE(args), NULL, err) < 0)
        return error_wrap(err, "let the streams of sandbox '%s' expire", sandbox_id);
    return 0;
}
