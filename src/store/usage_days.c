/* SPDX-License-Identifier: Apache-2.0 */
/* What was used, by the day; see usage_days.h. */
#include "store/usage_days.h"

#include "base/mem.h"
#include "model/execution.h"
#include "store/sql_query.h"
#include "store/tables.h"
#include "store/usage_impl.h"

#include <stdlib.h>
#include <string.h>

#define DAY_MS ((int64_t)24 * 3600 * 1000)

static int64_t day_of(int64_t ms)
{
    return ms - ms % DAY_MS;
}

int usage_day_add(struct store_call *call, const char *sandbox_id, const char *key_id, int64_t now,
                  const struct usage_total *more, int64_t disk_bytes, struct error *err)
{
    struct sql_value args[] = {
        sql_text(sandbox_id),           sql_text(key_id),         sql_number(day_of(now)),
        sql_number(more->executions),   sql_number(more->cpu_ms), sql_number(more->memory_mib_ms),
        sql_number(more->egress_bytes), sql_number(disk_bytes),
    };

    if (store_run(
            call,
            "INSERT INTO usage_days (organisation, day_at, sandbox_id, key_id, labels, "
            "member, runs, cpu_ms, memory_mib_ms, disk_bytes, egress_bytes) "
            "SELECT organisation, CAST($3 AS BIGINT), id, coalesce($2, key_id, ''), "
            "coalesce(labels, ''), coalesce(member, ''), CAST($4 AS BIGINT), CAST($5 AS BIGINT), "
            "CAST($6 AS BIGINT), CAST($8 AS BIGINT), CAST($7 AS BIGINT) FROM sandboxes WHERE id = "
            "$1 "
            "ON CONFLICT (organisation, day_at, sandbox_id, key_id, labels, member) DO "
            "UPDATE SET runs = usage_days.runs + excluded.runs, "
            "cpu_ms = usage_days.cpu_ms + excluded.cpu_ms, "
            "memory_mib_ms = usage_days.memory_mib_ms + excluded.memory_mib_ms, "
            "disk_bytes = CASE WHEN excluded.disk_bytes > usage_days.disk_bytes THEN "
            "excluded.disk_bytes ELSE usage_days.disk_bytes END, "
            "egress_bytes = usage_days.egress_bytes + excluded.egress_bytes",
            args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "count usage of the day");
    return 0;
}

int store_usage_runs(struct store *store, const char *organisation, const char *key_id, int64_t day,
                     int64_t *out, struct error *err)
{
    struct sql_value args[] = {sql_text(organisation), sql_number(day), sql_text(key_id)};
    autocall call = {.store = store};
    int64_t runs = 0;

    if (store_call_read(&call, err) < 0 ||
        store_run(&call,
                  key_id ? "SELECT CAST(coalesce((SELECT sum(runs) FROM usage_days WHERE "
                           "organisation = $1 AND day_at = $2 AND key_id = $3), 0) + "
                           "(SELECT count(*) FROM executions WHERE ended_at = 0 AND organisation = "
                           "$1 AND created_at >= $2 AND key_id = $3) AS BIGINT)"
                         : "SELECT CAST(coalesce((SELECT sum(runs) FROM usage_days WHERE "
                           "organisation = $1 AND day_at = $2), 0) + "
                           "(SELECT count(*) FROM executions WHERE ended_at = 0 AND organisation = "
                           "$1 AND created_at >= $2 AND (key_id IS NOT NULL OR kind <> 'context' "
                           "OR coalesce(tag, '') <> '" EXECUTION_STRANGER "')) AS BIGINT)",
                  args, key_id ? 3 : 2, store_take_number, &runs, NULL, err) < 0)
        return error_wrap(err, "count the runs of a day");
    *out = runs;
    return 0;
}

static int add_run_once(struct store_call *call, const char *sandbox_id, const char *key_id,
                        int64_t now, struct error *err)
{
    static const struct usage_total one = {.executions = 1};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        usage_day_add(call, sandbox_id, key_id, now, &one, 0, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int store_usage_add_run(struct store *store, const char *sandbox_id, const char *key_id,
                        int64_t now, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = add_run_once(&call, sandbox_id, key_id, now, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

// ---- telling ----

static const char *const columns[] = {
    [USAGE_BY_DAY] = "day_at",
    [USAGE_BY_SANDBOX] = "sandbox_id",
    [USAGE_BY_KEY] = "key_id",
    [USAGE_BY_LABEL] = "labels",
};

void usage_list_clear(struct usage_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->rows[i].id);
    free(list->rows);
    *list = (struct usage_list){0};
}

static int take_row(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct usage_list *list = data;

    (void)n_columns;
    (void)err;
    list->rows = xrealloc(list->rows, list->count + 1, sizeof *list->rows);
    list->rows[list->count++] = (struct usage_group_total){
        .id = row[0].type == SQL_TEXT ? xstrndup(row[0].data, row[0].length) : NULL,
        .day_at = row[1].number,
        .used = {.executions = row[2].number,
                 .cpu_ms = row[3].number,
                 .memory_mib_ms = row[4].number,
                 .egress_bytes = row[5].number},
        .disk_bytes = row[6].number,
    };
    return 0;
}

int store_usage_list(struct store *store, const struct usage_filter *filter, struct usage_list *out,
                     struct error *err)
{
    const char *column = columns[filter->by];
    autocall call = {.store = store};
    autousages found = {0};
    struct query query;

    query_init(&query);
    query_add(&query, "SELECT ");
    query_add(&query, column);
    query_add(&query, ", min(day_at), CAST(sum(runs) AS BIGINT), CAST(sum(cpu_ms) AS BIGINT), "
                      "CAST(sum(memory_mib_ms) AS BIGINT), CAST(sum(egress_bytes) AS BIGINT), "
                      "max(disk_bytes) FROM usage_days");
    query_where_text(&query, "organisation", filter->owner.organisation);
    query_where_text(&query, "member", filter->owner.member);
    query_where(&query, "day_at >=", sql_number(day_of(filter->from)));
    query_where(&query, "day_at <", sql_number(filter->to));
    query_where_text(&query, "sandbox_id", filter->sandbox_id);
    query_where_text(&query, "key_id", filter->key_id);
    query_add(&query, " GROUP BY ");
    query_add(&query, column);
    query_add(&query, filter->by == USAGE_BY_DAY ? " ORDER BY day_at" : " ORDER BY 4 DESC, 1");
    query_add(&query, " LIMIT ");
    query_add_value(&query, sql_number(filter->limit));
    if (store_call_read(&call, err) < 0 ||
        store_run(&call, query.text, query.args, query.n_args, take_row, &found, NULL, err) < 0)
        return error_wrap(err, "add up what was used");
    *out = found;
    found = (struct usage_list){0};
    return 0;
}

// ---- growing old ----

static int merge_once(struct store_call *call, const struct sql_value *args, int64_t *changed,
                      struct error *err)
{
    int64_t merged = 0, forgotten = 0;

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        store_run(call,
                  "INSERT INTO usage_days (organisation, day_at, sandbox_id, key_id, labels, "
                  "member, runs, cpu_ms, memory_mib_ms, disk_bytes, egress_bytes) "
                  "SELECT organisation, day_at, '', key_id, labels, member, CAST(sum(runs) AS "
                  "BIGINT), CAST(sum(cpu_ms) AS BIGINT), CAST(sum(memory_mib_ms) AS BIGINT), "
                  "max(disk_bytes), CAST(sum(egress_bytes) AS BIGINT) FROM usage_days "
                  "WHERE day_at < $1 AND sandbox_id <> '' "
                  "GROUP BY organisation, day_at, key_id, labels, member "
                  "ON CONFLICT (organisation, day_at, sandbox_id, key_id, labels, member) DO "
                  "UPDATE SET runs = usage_days.runs + excluded.runs, "
                  "cpu_ms = usage_days.cpu_ms + excluded.cpu_ms, "
                  "memory_mib_ms = usage_days.memory_mib_ms + excluded.memory_mib_ms, "
                  "egress_bytes = usage_days.egress_bytes + excluded.egress_bytes",
                  args, 1, NULL, NULL, NULL, err) < 0 ||
        store_run(call, "DELETE FROM usage_days WHERE day_at < $1 AND sandbox_id <> ''", args, 1,
                  NULL, NULL, &merged, err) < 0 ||
        store_run(call, "DELETE FROM usage_days WHERE day_at < $1", args + 1, 1, NULL, NULL,
                  &forgotten, err) < 0)
        return error_wrap(err, "add up old usage");
    *changed = merged + forgotten;
    return store_call_done(call, err);
}

int store_usage_merge(struct store *store, int64_t before, int64_t forget, int64_t *changed,
                      struct error *err)
{
    const struct sql_value args[] = {sql_number(before), sql_number(forget)};
    autocall call = {.store = store};
    int result;

    do
        result = merge_once(&call, args, changed, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}
