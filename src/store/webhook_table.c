/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of webhooks and their deliveries; see webhooks.h. */
#include "store/webhooks.h"

#include "base/strings.h"
#include "store/tables.h"

#define AT(member) offsetof(struct webhook_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"organisation", FIELD_TEXT, 0, AT(owner.organisation)},
    {"tenant", FIELD_TEXT, 0, AT(owner.tenant)},
    {"scope", FIELD_TEXT, 0, AT(owner.scope)},
    {"project", FIELD_TEXT, 0, AT(owner.project)},
    {"member", FIELD_TEXT, 0, AT(owner.member)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"name", FIELD_TEXT, 0, AT(name)},
    {"url", FIELD_TEXT, 0, AT(url)},
    {"secret", FIELD_TEXT, 0, AT(secret)},
    {"kinds", FIELD_STRINGS, 0, AT(kinds)},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"is_enabled", FIELD_FLAG, 0, AT(is_enabled)},
    {"disabled_reason", FIELD_TEXT, 0, AT(disabled_reason)},
    {"event_cursor", FIELD_NUMBER, 0, AT(event_cursor)},
    {"attempts", FIELD_NUMBER, 0, AT(attempts)},
    {"failing_since", FIELD_NUMBER, 0, AT(failing_since)},
    {"next_at", FIELD_NUMBER, 0, AT(next_at)},
    {"delivery_count", FIELD_NUMBER, 0, AT(delivery_count)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"updated_at", FIELD_NUMBER, 0, AT(updated_at)},
};
#undef AT

const struct record webhook_table = {
    .noun = "webhook",
    .table = "webhooks",
    .size = sizeof(struct webhook_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

static const char *const delivery_states[] = {[DELIVERY_FAILING] = "failing",
                                              [DELIVERY_DELIVERED] = "delivered",
                                              [DELIVERY_FAILED] = "failed",
                                              NULL};
#define AT(member) offsetof(struct delivery_record, member)
static const struct field delivery_fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"webhook_id", FIELD_TEXT, 0, AT(webhook_id)},
    {"number", FIELD_NUMBER, 0, AT(number)},
    {"event_serial", FIELD_NUMBER, 0, AT(event_serial)},
    {"event_kind", FIELD_TEXT, 0, AT(event_kind)},
    {"state", FIELD_NAME, 0, AT(state), delivery_states},
    {"status", FIELD_NUMBER, 0, AT(status)},
    {"attempts", FIELD_NUMBER, 0, AT(attempts)},
    {"error", FIELD_TEXT, 0, AT(error)},
    {"duration_ms", FIELD_NUMBER, 0, AT(duration_ms)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"updated_at", FIELD_NUMBER, 0, AT(updated_at)},
};
#undef AT

const struct record delivery_table = {
    .noun = "delivery",
    .table = "webhook_deliveries",
    .size = sizeof(struct delivery_record),
    .fields = delivery_fields,
    .n_fields = ARRAY_SIZE(delivery_fields),
    .state = 5,
};

void webhook_record_clear(struct webhook_record *record)
{
    record_clear(&webhook_table, record);
}

void webhook_list_clear(struct webhook_list *list)
{
    record_rows_clear(&webhook_table, list->rows, list->count);
    *list = (struct webhook_list){0};
}

void delivery_list_clear(struct delivery_list *list)
{
    record_rows_clear(&delivery_table, list->rows, list->count);
    *list = (struct delivery_list){0};
}

int store_webhook_put(struct store *store, const struct webhook_record *record, struct error *err)
{
    return record_put(store, STORE_DURABLE, &webhook_table, record, err);
}

int store_webhook_get(struct store *store, const char *id, struct webhook_record *out,
                      struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &webhook_table, "id = $1", &arg, 1, id, out, err);
}

int store_webhook_list(struct store *store, const struct owner *owner, const struct page *page,
                       struct webhook_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_owner(&where, owner);
    if (record_list(store, &webhook_table, &where, "created_at, id", page, PAGE_MAX, &rows, err) <
        0)
        return -1;
    *out = (struct webhook_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_webhook_list_enabled(struct store *store, struct webhook_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where(&where, "node =", sql_text(store_node(store)));
    query_where(&where, "is_enabled =", sql_number(1));
    query_add(&where, " ORDER BY created_at, id");
    if (record_list_all(store, &webhook_table, &where, &rows, err) < 0)
        return -1;
    *out = (struct webhook_list){.rows = rows.rows, .count = rows.count, .total = rows.total};
    return 0;
}

static int take_counts(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    *(struct webhook_counts *)data =
        (struct webhook_counts){row[0].number, row[1].number, row[2].number};
    return 0;
}

int store_webhook_count(struct store *store, const struct owner *owner, struct webhook_counts *out,
                        struct error *err)
{
    struct sql_value args[] = {sql_text(owner->organisation), sql_text(owner->member)};
    struct sql *sql = NULL;

    if (store_connection(store, &sql, err) < 0)
        return -1;
    return sql_run(sql,
                   "SELECT count(*), (SELECT count(*) FROM webhooks WHERE organisation = $1), "
                   "(SELECT count(*) FROM webhooks WHERE organisation = $1 AND member = $2) FROM "
                   "webhooks",
                   args, ARRAY_SIZE(args), take_counts, out, NULL, err);
}

int store_webhook_change(struct store *store, const struct webhook_record *record,
                         struct error *err)
{
    autofree char *kinds = strings_pack(record->kinds);
    struct sql_value args[] = {
        sql_text(record->id),
        sql_text(record->name),
        sql_text(record->url),
        sql_text(record->secret),
        sql_text(kinds),
        sql_text(record->sandbox_id),
        sql_number(record->is_enabled),
        sql_number(record->updated_at),
        sql_text(record->key_id),
    };
    int64_t changed = 0;

    if (store_run_alone(
            store, STORE_DURABLE,
            "UPDATE webhooks SET name = $2, url = $3, secret = $4, kinds = $5, "
            "sandbox_id = $6, is_enabled = $7, disabled_reason = NULL, attempts = 0, "
            "failing_since = 0, next_at = 0, updated_at = $8, key_id = $9 WHERE id = $1",
            args, ARRAY_SIZE(args), &changed, err) < 0)
        return error_wrap(err, "change webhook '%s'", record->id);
    return changed ? 0 : record_missing(&webhook_table, record->id, err);
}

int store_webhook_progress(struct store *store, const struct webhook_record *record,
                           struct error *err)
{
    struct sql_value args[] = {
        sql_text(record->id),           sql_number(record->event_cursor),
        sql_number(record->attempts),   sql_number(record->failing_since),
        sql_number(record->next_at),    sql_number(record->delivery_count),
        sql_number(record->is_enabled), sql_text(record->disabled_reason),
    };

    return store_run_alone(store, STORE_FAST,
                           "UPDATE webhooks SET event_cursor = $2, attempts = $3, failing_since = "
                           "$4, next_at = $5, delivery_count = $6, is_enabled = $7, "
                           "disabled_reason = $8 WHERE id = $1 AND is_enabled = 1",
                           args, ARRAY_SIZE(args), NULL, err);
}

int store_webhook_remove(struct store *store, const char *id, struct error *err)
{
    struct sql_value arg = sql_text(id);
    int64_t changed = 0;

    if (store_run_alone(store, STORE_DURABLE, "DELETE FROM webhooks WHERE id = $1", &arg, 1,
                        &changed, err) < 0)
        return error_wrap(err, "remove webhook '%s'", id);
    return changed ? 0 : record_missing(&webhook_table, id, err);
}

static int put_delivery(struct store_call *call, const struct delivery_record *record, int64_t kept,
                        struct error *err)
{
    struct sql_value args[] = {sql_text(record->webhook_id), sql_number(record->number),
                               sql_number(record->number - kept)};

    // One of a webhook that is gone is nobody's any more.
    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        store_run(call,
                  "DELETE FROM webhook_deliveries WHERE webhook_id = $1 AND (number = $2 OR "
                  "number <= $3)",
                  args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0 ||
        record_insert(call, &delivery_table, record, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int store_delivery_put(struct store *store, const struct delivery_record *record, int64_t kept,
                       struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = put_delivery(&call, record, kept, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_delivery_list(struct store *store, const char *webhook_id, const struct page *page,
                        struct delivery_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where(&where, "webhook_id =", sql_text(webhook_id));
    if (record_list(store, &delivery_table, &where, "number DESC", page, PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct delivery_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}
