/* SPDX-License-Identifier: Apache-2.0 */
/* The table of executions and jobs; see executions.h. */
#include "store/executions.h"

#include "base/mem.h"
#include "store/record.h"
#include "store/tables.h"
#include "store/usage_impl.h"

#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [EXECUTION_COMMAND] = "execution",
    [EXECUTION_JOB] = "job",
    [EXECUTION_TERMINAL] = "terminal",
    [EXECUTION_CONTEXT] = "context",
    NULL,
};
static const char *const cause_names[] = {
    [EXECUTION_NOT_ENDED] = "none",
    [EXECUTION_EXITED] = "exit",
    [EXECUTION_TIMEOUT] = "timeout",
    [EXECUTION_MEMORY] = "memory",
    [EXECUTION_NOT_FOUND] = "not_found",
    [EXECUTION_NOT_RUN] = "not_run",
    [EXECUTION_BOX_ENDED] = "box_ended",
    [EXECUTION_STOPPED] = "cancelled",
    NULL,
};

#define AT(member) offsetof(struct execution_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"state", FIELD_NAME, EXECUTION_PART_STATE, AT(state), execution_state_names},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"kind", FIELD_NAME, 0, AT(kind), kind_names},
    {"number", FIELD_NUMBER, 0, AT(number)},
    {"organisation", FIELD_TEXT, 0, AT(owner.organisation)},
    {"tenant", FIELD_TEXT, 0, AT(owner.tenant)},
    {"scope", FIELD_TEXT, 0, AT(owner.scope)},
    {"project", FIELD_TEXT, 0, AT(owner.project)},
    {"member", FIELD_TEXT, 0, AT(owner.member)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"command", FIELD_STRINGS, 0, AT(command.argv)},
    {"env", FIELD_STRINGS, 0, AT(command.env)},
    {"box_user", FIELD_TEXT, 0, AT(command.user)},
    {"working_directory", FIELD_TEXT, 0, AT(command.directory)},
    {"metadata", FIELD_TEXT, 0, AT(metadata)},
    {"asked", FIELD_TEXT, 0, AT(asked)},
    {"tag", FIELD_TEXT, 0, AT(tag)},
    {"timeout_ms", FIELD_NUMBER, 0, AT(command.timeout_ms)},
    {"output_cap_bytes", FIELD_NUMBER, 0, AT(output_cap_bytes)},
    {"has_timestamps", FIELD_FLAG, 0, AT(has_timestamps)},
    {"stdin_stream", FIELD_TEXT, 0, AT(stdin_stream)},
    {"stdout_stream", FIELD_TEXT, EXECUTION_PART_STREAMS, AT(stdout_stream)},
    {"stderr_stream", FIELD_TEXT, EXECUTION_PART_STREAMS, AT(stderr_stream)},
    {"is_output_expired", FIELD_FLAG, 0, AT(is_output_expired)},
    {"cause", FIELD_NAME, EXECUTION_PART_STATE, AT(exit.cause), cause_names},
    {"exit_code", FIELD_NUMBER, EXECUTION_PART_STATE, AT(exit.code)},
    {"signal", FIELD_NUMBER, EXECUTION_PART_STATE, AT(exit.signal)},
    {"error", FIELD_TEXT, EXECUTION_PART_STATE, AT(error)},
    {"started_at", FIELD_NUMBER, EXECUTION_PART_STATE, AT(started_at)},
    {"ended_at", FIELD_NUMBER, EXECUTION_PART_STATE, AT(ended_at)},
    {"stop_at", FIELD_NUMBER, EXECUTION_PART_STOP, AT(stop_at)},
    {"stop_reason", FIELD_TEXT, EXECUTION_PART_STOP, AT(stop_reason)},
    {"stdout_bytes", FIELD_NUMBER, EXECUTION_PART_RESULT, AT(exit.stdout_bytes)},
    {"stderr_bytes", FIELD_NUMBER, EXECUTION_PART_RESULT, AT(exit.stderr_bytes)},
    {"is_truncated", FIELD_FLAG, EXECUTION_PART_RESULT, AT(exit.is_truncated)},
    {"cpu_user_us", FIELD_NUMBER, EXECUTION_PART_RESULT, AT(exit.cpu_user_us)},
    {"cpu_system_us", FIELD_NUMBER, EXECUTION_PART_RESULT, AT(exit.cpu_system_us)},
    {"max_rss_bytes", FIELD_NUMBER, EXECUTION_PART_RESULT, AT(exit.max_rss_bytes)},
    {"duration_us", FIELD_NUMBER, EXECUTION_PART_RESULT, AT(exit.duration_us)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"updated_at", FIELD_NUMBER, EVERY_PART, AT(updated_at)},
};

const struct record execution_table = {
    .noun = "execution",
    .table = "executions",
    .size = sizeof(struct execution_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
    .id = 0,
    .state = 1,
};

void execution_record_clear(struct execution_record *record)
{
    record_clear(&execution_table, record);
}

void execution_record_copy(struct execution_record *to, const struct execution_record *from)
{
    record_copy(&execution_table, from, to);
}

void execution_list_clear(struct execution_list *list)
{
    record_rows_clear(&execution_table, list->rows, list->count);
    *list = (struct execution_list){0};
}

// The record's own number, or the next one of the sandbox's processes; 0 when there is no such sandbox.
static int take_number(struct store_call *call, const struct execution_record *record,
                       int64_t *number, struct error *err)
{
    struct sql_value args[] = {sql_text(record->sandbox_id),
                               sql_number(record->kind == EXECUTION_COMMAND),
                               sql_number(record->number)};
    int64_t changed = 0;

    // Not by RETURNING, for which SQLite makes a table.
    *number = 0;
    if (store_run(call,
                  "UPDATE sandboxes SET process_count = CASE WHEN $3 > process_count THEN $3 "
                  "ELSE process_count + 1 END, execution_count = execution_count + $2 "
                  "WHERE id = $1",
                  args, ARRAY_SIZE(args), NULL, NULL, &changed, err) < 0)
        return -1;
    if (changed && record->number != 0)
        *number = record->number;
    else if (changed)
        return store_run(call, "SELECT process_count FROM sandboxes WHERE id = $1", args, 1,
                         store_take_number, number, NULL, err);
    return 0;
}

static int add_once(struct store_call *call, const struct execution_record *record, int64_t *number,
                    struct error *err)
{
    struct execution_record added = *record;
    struct usage_total one = {.executions = 1};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        take_number(call, record, &added.number, err) < 0)
        return error_wrap(err, "keep execution '%s'", record->id);
    if (added.number == 0)
        return record_missing(&sandbox_table, record->sandbox_id, err);
    if (record_insert(call, &execution_table, &added, err) < 0)
        return -1;
    if (record->kind == EXECUTION_COMMAND &&
        usage_count(call, &record->owner, record->created_at, &one, err) < 0)
        return -1;
    *number = added.number;
    return store_call_done(call, err);
}

int store_execution_add(struct store *store, struct execution_record *record, struct error *err)
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

int store_execution_get(struct store *store, const char *id, struct execution_record *out,
                        struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &execution_table, "id = $1", &arg, 1, id, out, err);
}

/* The same condition is in store_usage_runs. */
static bool is_nobodys(const struct execution_record *record)
{
    return record->kind == EXECUTION_CONTEXT && !record->key_id && record->tag &&
           strcmp(record->tag, EXECUTION_STRANGER) == 0;
}

static int end_once(struct store_call *call, const struct execution_record *record, unsigned parts,
                    unsigned from, struct error *err)
{
    struct usage_total one = {.executions = 1};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        record_update_in(call, &execution_table, record, parts, from, err) < 0 ||
        (!is_nobodys(record) &&
         usage_day_add(call, record->sandbox_id, record->key_id ? record->key_id : "",
                       record->created_at, &one, 0, err) < 0))
        return -1;
    return store_call_done(call, err);
}

/* It has run, and counts among the runs of its day unless it is nobody's. */
static int end_execution(struct store *store, const struct execution_record *record, unsigned parts,
                         unsigned from, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = end_once(&call, record, parts, from, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_execution_update(struct store *store, const struct execution_record *record,
                           unsigned parts, unsigned from, struct error *err)
{
    if ((parts & EXECUTION_PART_STATE) && record->ended_at && record->started_at)
        return end_execution(store, record, parts, from, err);
    return record_update(store, STORE_FAST, &execution_table, record, parts, from, err);
}

static int renumber_once(struct store_call *call, const struct execution_record *record,
                         struct error *err)
{
    struct sql_value number = sql_number(record->number);
    struct sql_value own[] = {sql_text(record->id), number};
    struct sql_value sandbox[] = {sql_text(record->sandbox_id), number};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        store_run(call, "UPDATE executions SET number = $2 WHERE id = $1 AND state = 'queued'", own,
                  ARRAY_SIZE(own), NULL, NULL, NULL, err) < 0 ||
        store_run(call,
                  "UPDATE sandboxes SET process_count = $2 WHERE id = $1 AND process_count < $2",
                  sandbox, ARRAY_SIZE(sandbox), NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "renumber execution '%s'", record->id);
    return store_call_done(call, err);
}

int store_execution_renumber(struct store *store, const struct execution_record *record,
                             struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = renumber_once(&call, record, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

// In one sandbox the numbers tell which was first; elsewhere the time does.
static const char *order_of(const struct execution_filter *filter)
{
    if (filter->sandbox_id)
        return filter->is_ascending ? "number" : "number DESC";
    return filter->is_ascending ? "created_at, id" : "created_at DESC, id DESC";
}

int store_execution_list(struct store *store, const struct execution_filter *filter,
                         struct execution_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_text(&where, "sandbox_id", filter->sandbox_id);
    query_where_owner(&where, &filter->owner);
    query_where_text(&where, "kind", filter->kind ? kind_names[*filter->kind] : NULL);
    query_where_names(&where, "state", execution_state_names, filter->states);
    if (record_list(store, &execution_table, &where, order_of(filter), &filter->page, PAGE_MAX,
                    &rows, err) < 0)
        return -1;
    *out = (struct execution_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_execution_list_open(struct store *store, struct execution_list *out, struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, "ended_at = 0");
    query_where_here(&tail, store);
    query_add(&tail, " ORDER BY created_at, id");
    if (record_list_all(store, &execution_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct execution_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

static int take_outcomes(void *data, const struct sql_value *row, size_t n_columns,
                         struct error *err)
{
    *(struct execution_outcomes *)data = (struct execution_outcomes){
        .total = row[0].number,
        .succeeded = row[1].number,
        .timed_out = row[2].number,
        .lost = row[3].number,
        .cancelled = row[4].number,
        .open = row[5].number,
    };
    return 0;
}

// One column each, as take_outcomes reads them.
static const char *const outcome_claims[] = {
    "state = 'completed' AND exit_code = 0",
    "state = 'timed_out'",
    "state = 'failed' AND cause = 'box_ended'",
    "state = 'cancelled'",
    "ended_at = 0",
};

int store_execution_outcomes(struct store *store, const struct owner *owner, int64_t since,
                             struct execution_outcomes *out, struct error *err)
{
    struct query query;
    struct sql *sql = NULL;

    query_init(&query);
    query_add(&query, "SELECT count(*)");
    for (size_t i = 0; i < ARRAY_SIZE(outcome_claims); i++) {
        query_add(&query, ", CAST(coalesce(sum(CASE WHEN ");
        query_add(&query, outcome_claims[i]);
        query_add(&query, " THEN 1 ELSE 0 END), 0) AS BIGINT)");
    }
    query_add(&query, " FROM executions");
    query_where_owner(&query, owner);
    query_where(&query, "created_at >=", sql_number(since));
    if (store_connection(store, &sql, err) < 0)
        return -1;
    return sql_run(sql, query.text, query.args, query.n_args, take_outcomes, out, NULL, err);
}

/* A sandbox with executions that have been kept for long enough. */
struct past {
    char *sandbox_id;
    int64_t before; // they ended
    int64_t count;
};
struct pasts {
    struct past *items;
    size_t count;
    int64_t now;
};

static void pasts_clear(struct pasts *pasts)
{
    for (size_t i = 0; i < pasts->count; i++)
        free(pasts->items[i].sandbox_id);
    free(pasts->items);
}

static int take_past(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct pasts *pasts = data;

    pasts->items = xrealloc(pasts->items, pasts->count + 1, sizeof *pasts->items);
    pasts->items[pasts->count++] =
        (struct past){xstrdup(row[0].data), pasts->now - row[1].number, row[2].number};
    return 0;
}

/* Reads alone: nobody who writes waits for it. Old enough to be looked at by their index, then by what their own sandbox says. */
static int find_pasts(struct store *store, int64_t limit, struct pasts *out, struct error *err)
{
    struct sql_value args[] = {sql_number(out->now), sql_number(limit),
                               sql_text(store_node(store))};
    struct sql *sql = NULL;

    if (store_connection(store, &sql, err) < 0)
        return -1;
    return sql_run(
        sql,
        "SELECT sandbox_id, keep_ms, count(*) FROM (SELECT executions.sandbox_id AS sandbox_id, "
        "sandboxes.keep_ms AS keep_ms FROM executions JOIN sandboxes ON sandboxes.id = "
        "executions.sandbox_id WHERE executions.organisation IN (SELECT id FROM organisations) AND "
        "executions.created_at < $1 - (SELECT min(keep_ms) FROM sandboxes WHERE keep_ms > 0) AND "
        "sandboxes.keep_ms > 0 AND sandboxes.ended_at = 0 AND sandboxes.node = $3 AND "
        "executions.ended_at > 0 AND "
        "executions.ended_at < $1 - sandboxes.keep_ms LIMIT $2) AS old GROUP BY sandbox_id, "
        "keep_ms",
        args, ARRAY_SIZE(args), take_past, out, NULL, err);
}

#define OLDEST                                                                                     \
    "(SELECT id FROM executions WHERE sandbox_id = $1 AND ended_at > 0 AND ended_at < $2 "         \
    "ORDER BY number LIMIT $3)"

static int purge_once(struct store_call *call, const struct past *past, int64_t now,
                      int64_t *removed, struct error *err)
{
    struct sql_value args[] = {sql_text(past->sandbox_id), sql_number(past->before),
                               sql_number(past->count), sql_number(now)};
    struct sql_value events[] = {args[0], args[1], sql_number(2 * past->count)};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        store_run(
            call,
            "UPDATE streams SET expires_at = $4 WHERE expires_at = 0 AND completed_at <> 0 "
            "AND kind <> 'user' AND id IN (SELECT stdout_stream FROM executions WHERE id IN " OLDEST
            " UNION SELECT stderr_stream FROM executions WHERE id IN " OLDEST ")",
            args, 4, NULL, NULL, NULL, err) < 0 ||
        store_run(call,
                  "DELETE FROM events WHERE sandbox_id = $1 AND number IN (SELECT number FROM "
                  "events WHERE sandbox_id = $1 AND type IN ('started', 'completed') AND "
                  "created_at < $2 AND serial <= (SELECT forgotten FROM event_numbers) ORDER BY "
                  "number LIMIT $3)",
                  events, ARRAY_SIZE(events), NULL, NULL, NULL, err) < 0 ||
        store_run(call,
                  "DELETE FROM executions WHERE id IN " OLDEST " AND NOT EXISTS (SELECT 1 FROM "
                  "streams WHERE streams.id IN (executions.stdout_stream, "
                  "executions.stderr_stream) AND streams.kind <> 'user')",
                  args, 3, NULL, NULL, removed, err) < 0)
        return error_wrap(err, "forget old executions");
    return store_call_done(call, err);
}

/* One sandbox at a time, by its own indexes: others write in between. */
static int purge_past(struct store *store, const struct past *past, int64_t now, int64_t *removed,
                      struct error *err)
{
    autocall call = {.store = store};
    int64_t here = 0;
    int result;

    do
        result = purge_once(&call, past, now, &here, err);
    while (result < 0 && store_call_again(&call, err));
    if (result == 0)
        *removed += here;
    return result;
}

int store_execution_purge(struct store *store, int64_t now, int64_t limit, int64_t *removed,
                          struct error *err)
{
    __attribute__((cleanup(pasts_clear))) struct pasts pasts = {.now = now};
    int64_t total = 0;

    if (find_pasts(store, limit, &pasts, err) < 0)
        return error_wrap(err, "look for old executions");
    for (size_t i = 0; i < pasts.count; i++) {
        if (purge_past(store, &pasts.items[i], now, &total, err) < 0)
            return -1;
    }
    *removed = total;
    return 0;
}
