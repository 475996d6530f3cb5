/* SPDX-License-Identifier: Apache-2.0 */
/* The table of events; see events.h. */
#include "store/events.h"

#include "store/tables.h"

#define GAP                                                                                        \
    1000000 // more than are ever written between two moments at which the disk has all of them

#define AT(member) offsetof(struct event_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)}, // first: what failures name
    {"serial", FIELD_NUMBER, 0, AT(serial)},
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

static int take_numbers(void *data, const struct sql_value *row, size_t n_columns,
                        struct error *err)
{
    struct event_record *record = data;

    record->serial = row[0].number;
    record->number = row[1].number;
    return 0;
}

// Counts, then reads: with RETURNING, SQLite makes a table for the answer, which takes longer than all the rest. Leaves the serial 0 where there
// is no such sandbox.
static int number_in_sandbox(struct store_call *call, struct event_record *record,
                             struct error *err)
{
    struct sql_value arg = sql_text(record->sandbox_id);

    if (store_run(call, "UPDATE sandboxes SET event_count = event_count + 1 WHERE id = $1", &arg, 1,
                  NULL, NULL, NULL, err) < 0)
        return -1;
    return store_run(call,
                     "SELECT (SELECT last FROM event_numbers), event_count FROM sandboxes "
                     "WHERE id = $1",
                     &arg, 1, take_numbers, record, NULL, err);
}

static int give_numbers(struct store_call *call, struct event_record *record, struct error *err)
{
    record->serial = record->number = 0;
    if (store_run(call, "UPDATE event_numbers SET last = last + 1", NULL, 0, NULL, NULL, NULL,
                  err) < 0)
        return -1;
    if (record->sandbox_id)
        return number_in_sandbox(call, record, err);
    return store_run(call, "SELECT last, 0 FROM event_numbers", NULL, 0, take_numbers, record, NULL,
                     err);
}

static int add_once(struct store_call *call, const struct event_record *record,
                    struct event_record *added, struct error *err)
{
    *added = *record;
    if (store_call_begin(call, STORE_FAST, err) < 0 || give_numbers(call, added, err) < 0)
        return error_wrap(err, "keep event '%s'", record->id);
    if (added->serial == 0)
        return record_missing(&sandbox_table, record->sandbox_id, err);
    if (record_insert(call, &event_table, added, err) < 0)
        return -1;
    store_has_events(call->store);
    return store_call_done(call, err);
}

int store_event_add(struct store *store, struct event_record *record, struct error *err)
{
    autocall call = {.store = store};
    struct event_record added;
    int result;

    do
        result = add_once(&call, record, &added, err);
    while (result < 0 && store_call_again(&call, err));
    if (result == 0) {
        record->number = added.number;
        record->serial = added.serial;
    }
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

static int take_bounds(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    *(struct event_bounds *)data = (struct event_bounds){row[0].number, row[1].number};
    return 0;
}

static int read_bounds(struct store_call *call, struct event_bounds *out, struct error *err)
{
    return store_run(call, "SELECT forgotten, last FROM event_numbers", NULL, 0, take_bounds, out,
                     NULL, err);
}

int store_event_bounds(struct store *store, struct event_bounds *out, struct error *err)
{
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 || read_bounds(&call, out, err) < 0)
        return error_wrap(err, "look for the last event");
    return 0;
}

// The serial of the last of the next so many; 0: there are none.
static int find_end(struct store_call *call, const struct event_scan *scan, int64_t *end,
                    struct error *err)
{
    struct sql_value args[] = {sql_number(scan->after), sql_number(scan->scanned)};

    *end = 0;
    return store_run(call,
                     "SELECT coalesce(max(serial), 0) FROM (SELECT serial FROM events "
                     "WHERE serial > $1 ORDER BY serial LIMIT $2) AS next",
                     args, ARRAY_SIZE(args), store_take_number, end, NULL, err);
}

// All events up to there, or of one sandbox, whose numbers are in the same order, so many of them.
static int scan_rows(struct store_call *call, const struct event_scan *scan, int64_t end,
                     struct record_rows *rows, struct error *err)
{
    struct query where;

    query_init(&where);
    query_where(&where, "serial >", sql_number(scan->after));
    query_where_owner(&where, &scan->owner);
    if (scan->sandbox_id) {
        query_where(&where, "sandbox_id =", sql_text(scan->sandbox_id));
        query_add(&where, " ORDER BY number LIMIT ");
        query_add_value(&where, sql_number(scan->scanned));
    } else {
        query_where(&where, "serial <=", sql_number(end));
        query_add(&where, " ORDER BY serial");
    }
    return record_select(call, &event_table, &where, rows, err);
}

static int scan_sandbox(struct store_call *call, const struct event_scan *scan,
                        struct record_rows *rows, int64_t *reached, struct error *err)
{
    struct event_bounds bounds = {0};

    if (read_bounds(call, &bounds, err) < 0 || scan_rows(call, scan, 0, rows, err) < 0)
        return -1;
    const struct event_record *found = rows->rows;
    bool is_more = rows->count > 0 && (int64_t)rows->count == scan->scanned;
    *reached = is_more ? found[rows->count - 1].serial : bounds.last;
    return 0;
}

static int scan_all(struct store_call *call, const struct event_scan *scan,
                    struct record_rows *rows, int64_t *reached, struct error *err)
{
    int64_t end = 0;

    if (find_end(call, scan, &end, err) < 0 ||
        (end > 0 && scan_rows(call, scan, end, rows, err) < 0))
        return -1;
    *reached = end;
    return 0;
}

int store_event_scan(struct store *store, const struct event_scan *scan, struct event_list *out,
                     int64_t *reached, struct error *err)
{
    autocall call = {.store = store};
    struct record_rows rows = {0};
    int64_t end = 0;

    if (store_call_read(&call, err) < 0 ||
        (scan->sandbox_id ? scan_sandbox(&call, scan, &rows, &end, err)
                          : scan_all(&call, scan, &rows, &end, err)) < 0)
        return error_wrap(err, "read events");
    *out = (struct event_list){rows.rows, rows.count, (int64_t)rows.count};
    *reached = end > scan->after ? end : scan->after;
    return 0;
}

// Up to which they go this time: the last old one of the next so many, or as many as are too many.
static int find_old(struct store_call *call, const struct event_bounds *bounds, int64_t before,
                    int64_t most, int64_t limit, int64_t *end, struct error *err)
{
    struct sql_value args[] = {sql_number(bounds->forgotten), sql_number(limit), sql_number(before),
                               sql_number(most > 0 ? bounds->last - most : 0)};

    *end = 0;
    return store_run(call,
                     "SELECT coalesce(max(serial), 0) FROM (SELECT serial, created_at FROM events "
                     "WHERE serial > $1 ORDER BY serial LIMIT $2) AS next "
                     "WHERE created_at < $3 OR serial <= $4",
                     args, ARRAY_SIZE(args), store_take_number, end, NULL, err);
}

static int purge_once(struct store_call *call, int64_t before, int64_t most, int64_t limit,
                      int64_t *moved, struct error *err)
{
    struct event_bounds bounds = {0};
    int64_t end = 0;

    *moved = 0;
    if (store_call_begin(call, STORE_FAST, err) < 0 || read_bounds(call, &bounds, err) < 0 ||
        find_old(call, &bounds, before, most, limit, &end, err) < 0)
        return -1;
    struct sql_value args[] = {sql_number(bounds.forgotten), sql_number(end)};
    if (end > 0 &&
        (store_run(call,
                   "DELETE FROM events WHERE serial > $1 AND serial <= $2 AND (sandbox_id IS NULL "
                   "OR NOT EXISTS (SELECT 1 FROM sandboxes WHERE sandboxes.id = "
                   "events.sandbox_id))",
                   args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0 ||
         store_run(call, "UPDATE event_numbers SET forgotten = $1", &args[1], 1, NULL, NULL, NULL,
                   err) < 0))
        return -1;
    *moved = end > 0 ? end - bounds.forgotten : 0;
    return store_call_done(call, err);
}

int store_event_purge(struct store *store, int64_t before, int64_t most, int64_t limit,
                      int64_t *moved, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = purge_once(&call, before, most, limit, moved, err);
    while (result < 0 && store_call_again(&call, err));
    return result < 0 ? error_wrap(err, "forget old events") : 0;
}

int store_event_resume(struct store *store, const char *boot, struct error *err)
{
    struct sql_value args[] = {sql_text(boot), sql_number(GAP)};

    return store_run_alone(store, STORE_DURABLE,
                           "UPDATE event_numbers SET last = CASE WHEN boot = '' THEN last ELSE "
                           "last + $2 END, boot = $1 WHERE boot <> $1",
                           args, ARRAY_SIZE(args), NULL, err);
}
