/* SPDX-License-Identifier: Apache-2.0 */
/* The table of changes; see audit_table.h. */
#include "store/audit_table.h"

#include "store/tables.h"

#define AT(member) offsetof(struct audit_record, member)
static const struct field fields[] = {
    {"node", FIELD_NODE, 0, AT(node)},
    {"number", FIELD_NUMBER, 0, AT(number)},
    {"at", FIELD_NUMBER, 0, AT(at)},
    {"organisation", FIELD_TEXT, 0, AT(organisation)},
    {"member", FIELD_TEXT, 0, AT(member)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"token_id", FIELD_TEXT, 0, AT(token_id)},
    {"front", FIELD_TEXT, 0, AT(front)},
    {"method", FIELD_TEXT, 0, AT(method)},
    {"route", FIELD_TEXT, 0, AT(route)},
    {"subject", FIELD_TEXT, 0, AT(subject)},
    {"peer", FIELD_TEXT, 0, AT(peer)},
    {"request_id", FIELD_TEXT, 0, AT(request_id)},
    {"status", FIELD_NUMBER, 0, AT(status)},
};

const struct record audit_table = {
    .noun = "audit record",
    .table = "audit",
    .size = sizeof(struct audit_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
    .id = 0,
};

void audit_record_clear(struct audit_record *record)
{
    record_clear(&audit_table, record);
}

void audit_list_clear(struct audit_list *list)
{
    record_rows_clear(&audit_table, list->rows, list->count);
    *list = (struct audit_list){0};
}

static int add_one(struct store_call *call, const struct audit_record *record, struct error *err)
{
    const struct sql_value args[] = {
        sql_text(store_node(call->store)), sql_number(record->number), sql_number(record->at),
        sql_text(record->organisation),    sql_text(record->member),   sql_text(record->key_id),
        sql_text(record->token_id),        sql_text(record->front),    sql_text(record->method),
        sql_text(record->route),           sql_text(record->subject),  sql_text(record->peer),
        sql_text(record->request_id),      sql_number(record->status),
    };

    return store_run(call,
                     "INSERT INTO audit (node, number, at, organisation, member, key_id, token_id, "
                     "front, method, route, subject, peer, request_id, status) VALUES ($1, $2, $3, "
                     "$4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) "
                     "ON CONFLICT (node, number) DO NOTHING",
                     args, ARRAY_SIZE(args), NULL, NULL, NULL, err);
}

static int add_once(struct store_call *call, const struct audit_record *records, size_t count,
                    struct error *err)
{
    if (store_call_begin(call, STORE_FAST, err) < 0)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (add_one(call, &records[i], err) < 0)
            return -1;
    return store_call_done(call, err);
}

int store_audit_add(struct store *store, const struct audit_record *records, size_t count,
                    struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = add_once(&call, records, count, err);
    while (result < 0 && store_call_again(&call, err));
    return result < 0 ? error_wrap(err, "record what was changed") : 0;
}

int store_audit_last(struct store *store, int64_t *out, struct error *err)
{
    struct sql_value node = sql_text(store_node(store));
    autocall call = {.store = store};
    int64_t last = 0;

    if (store_call_read(&call, err) < 0 ||
        store_run(&call,
                  "SELECT CAST(coalesce(max(number), 0) AS BIGINT) FROM audit WHERE node = $1",
                  &node, 1, store_take_number, &last, NULL, err) < 0)
        return error_wrap(err, "look for what was changed last");
    *out = last;
    return 0;
}

int store_audit_list(struct store *store, const struct audit_filter *filter, struct audit_list *out,
                     struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_text(&where, "organisation", filter->owner.organisation);
    query_where_text(&where, "member", filter->owner.member);
    query_where_text(&where, "key_id", filter->key_id);
    query_where_text(&where, "subject", filter->subject);
    query_where_text(&where, "request_id", filter->request_id);
    query_where_text(&where, "method", filter->method);
    query_where_here(&where, store);
    if (filter->from)
        query_where(&where, "at >=", sql_number(filter->from));
    if (filter->to)
        query_where(&where, "at <", sql_number(filter->to));
    if (record_list(store, &audit_table, &where, "number DESC", &filter->page, PAGE_MAX, &rows,
                    err) < 0)
        return -1;
    *out = (struct audit_list){rows.rows, rows.count, rows.next};
    return 0;
}

int store_audit_purge(struct store *store, int64_t before, int64_t most, int64_t limit,
                      int64_t *removed, struct error *err)
{
    struct sql_value args[] = {sql_text(store_node(store)), sql_number(before), sql_number(most),
                               sql_number(limit)};

    if (store_run_alone(store, STORE_FAST,
                        "DELETE FROM audit WHERE node = $1 AND number IN (SELECT number FROM audit "
                        "WHERE node = $1 AND (at < $2 OR number <= (SELECT max(number) FROM audit "
                        "WHERE node = $1) - $3) ORDER BY number LIMIT $4)",
                        args, ARRAY_SIZE(args), removed, err) < 0)
        return error_wrap(err, "forget old changes");
    return 0;
}
