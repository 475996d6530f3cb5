/* SPDX-License-Identifier: Apache-2.0 */
/* The table of events; see events.h. */
#include "store/events.h"

#include "store/tables.h"

#define AT(member) offsetof(struct event_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"number", FIELD_NUMBER, 0, AT(number)},
    {"organisation", FIELD_TEXT, 0, AT(owner.organisation)},
    {"tenant", FIELD_TEXT, 0, AT(owner.tenant)},
    {"scope", FIELD_TEXT, 0, AT(owner.scope)},
    {"project", FIELD_TEXT, 0, AT(owner.project)},
    {"member", FIELD_TEXT, 0, AT(owner.member)},
    {"type", FIELD_TEXT, 0, AT(type)},
    {"reason", FIELD_TEXT, 0, AT(reason)},
    {"detail", FIELD_TEXT, 0, AT(detail)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
};

const struct record event_table = {
    .noun = "event",
    .table = "events",
    .size = sizeof(struct event_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

void event_list_clear(struct event_list *list)
{
    record_rows_clear(&event_table, list->rows, list->count);
    *list = (struct event_list){0};
}

// The sandbox's next number; 0 when there is no such sandbox.
static int take_number(struct store_call *call, const char *sandbox_id, int64_t *number,
                       struct error *err)
{
    struct sql_value arg = sql_text(sandbox_id);

    *number = 0;
    return store_run(call,
                     "UPDATE sandboxes SET event_count = event_count + 1 WHERE id = $1 "
                     "RETURNING event_count",
                     &arg, 1, store_take_number, number, NULL, err);
}

static int add_once(struct store_call *call, const struct event_record *record, int64_t *number,
                    struct error *err)
{
    struct event_record added = *record;

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        take_number(call, record->sandbox_id, &added.number, err) < 0)
        return error_wrap(err, "keep event '%s'", record->id);
    if (added.number == 0)
        return record_missing(&sandbox_table, record->sandbox_id, err);
    if (record_insert(call, &event_table, &added, err) < 0)
        return -1;
    *number = added.number;
    return store_call_done(call, err);
}

int store_event_add(struct store *store, struct event_record *record, struct error *err)
{
    autocall call = {.store = store};
    int64_t number = 0;
    int result;

    do
        result = add_once(&call, record, &number, err);
    while (result < 0 && store_call_again(&call, err));
    if (result == 0)
        record->number = number;
    return result;
}

int store_event_list(struct store *store, const struct event_filter *filter, struct event_list *out,
                     struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where(&where, "sandbox_id =", sql_text(filter->sandbox_id));
    query_where(&where, "number >", sql_number(filter->after));
    if (record_list(store, &event_table, &where, filter->is_descending ? "number DESC" : "number",
                    &filter->page, PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct event_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}
