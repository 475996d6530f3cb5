/* SPDX-License-Identifier: Apache-2.0 */
/* What was used, added up; see usage.h. */
#include "store/usage.h"

#include "store/tables.h"
#include "store/usage_impl.h"

#include <string.h>

#define MINUTE_MS 60000
#define HOUR_MS ((int64_t)3600 * 1000)
#define MOST_HOURS (24 * 31)

static int64_t minute_of(int64_t ms)
{
    return ms - ms % MINUTE_MS;
}

int usage_count(struct store_call *call, const struct owner *owner, int64_t now,
                const struct usage_total *more, struct error *err)
{
    struct sql_value args[] = {
        sql_text(owner->organisation),
        sql_text(owner->project ? owner->project : ""),
        sql_text(owner->member ? owner->member : ""),
        sql_number(minute_of(now)),
        sql_number(more->executions),
        sql_number(more->cpu_ms),
        sql_number(more->memory_mib_ms),
        sql_number(more->egress_bytes),
    };

    if (store_run(call,
                  "INSERT INTO usage (organisation, project, member, minute_at, executions, "
                  "cpu_ms, memory_mib_ms, egress_bytes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8) "
                  "ON CONFLICT (organisation, project, member, minute_at) DO UPDATE SET "
                  "executions = usage.executions + excluded.executions, "
                  "cpu_ms = usage.cpu_ms + excluded.cpu_ms, "
                  "memory_mib_ms = usage.memory_mib_ms + excluded.memory_mib_ms, "
                  "egress_bytes = usage.egress_bytes + excluded.egress_bytes",
                  args, ARRAY_SIZE(args), NULL, NULL, NULL, err) < 0)
        return error_wrap(err, "count usage");
    return 0;
}

// Whose the sandbox is.
struct payer {
    char organisation[128];
    char project[256];
    char member[128];
    bool is_found;
};

static int take_payer(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct payer *payer = data;

    if (row[0].length >= sizeof payer->organisation || row[1].length >= sizeof payer->project ||
        row[2].length >= sizeof payer->member)
        return error_set(err, ERROR_SYSTEM, "an organisation or project with too long a name");
    memcpy(payer->organisation, row[0].data, row[0].length + 1);
    if (row[1].type == SQL_TEXT)
        memcpy(payer->project, row[1].data, row[1].length + 1);
    if (row[2].type == SQL_TEXT)
        memcpy(payer->member, row[2].data, row[2].length + 1);
    payer->is_found = true;
    return 0;
}

static int charge_sandbox(struct store_call *call, const struct usage_sample *sample,
                          struct payer *payer, struct error *err)
{
    struct sql_value args[] = {
        sql_text(sample->sandbox_id),
        sql_number(sample->more.cpu_ms),
        sql_number(sample->more.memory_mib_ms),
        sql_number(sample->more.egress_bytes),
        sql_number(sample->counted_cpu_ms),
        sql_number(sample->now),
        sql_number(sample->counted_egress_bytes),
    };

    return store_run(
        call,
        "UPDATE sandboxes SET cpu_ms = cpu_ms + $2, memory_mib_ms = memory_mib_ms + $3, "
        "egress_bytes = egress_bytes + $4, counted_cpu_ms = $5, counted_at = $6, "
        "counted_egress_bytes = $7 "
        "WHERE id = $1 RETURNING organisation, project, member",
        args, ARRAY_SIZE(args), take_payer, payer, NULL, err);
}

/*
 * By the hour, when it was long ago: most of a sandbox's life nothing is measured, because nothing happens. Processor time is of the
 * last hour then.
 */
static int spread(struct store_call *call, const struct usage_sample *sample,
                  const struct payer *payer, struct error *err)
{
    int64_t since = sample->since > 0 && sample->since < sample->now ? sample->since : sample->now;
    int64_t hours = (sample->now - since) / HOUR_MS;
    struct usage_total rest = sample->more;
    const struct owner owner = {payer->organisation, NULL, NULL, payer->project, payer->member};
    const struct usage_total hourly = {.memory_mib_ms = rest.memory_mib_ms / (hours + 1)};

    if (hours > MOST_HOURS)
        hours = MOST_HOURS;
    for (int64_t i = hours; i > 0; i--) {
        if (usage_count(call, &owner, sample->now - i * HOUR_MS, &hourly, err) < 0)
            return -1;
        rest.memory_mib_ms -= hourly.memory_mib_ms;
    }
    return usage_count(call, &owner, sample->now, &rest, err);
}

static int add_once(struct store_call *call, const struct usage_sample *sample, struct error *err)
{
    struct payer payer = {0};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        charge_sandbox(call, sample, &payer, err) < 0)
        return error_wrap(err, "count usage of sandbox '%s'", sample->sandbox_id);
    if (!payer.is_found)
        return record_missing(&sandbox_table, sample->sandbox_id, err);
    if (spread(call, sample, &payer, err) < 0 ||
        usage_day_add(call, sample->sandbox_id, NULL, sample->now, &sample->more,
                      sample->disk_bytes, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int store_usage_add(struct store *store, const struct usage_sample *sample, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = add_once(&call, sample, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

static int take_total(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    *(struct usage_total *)data = (struct usage_total){
        .executions = row[0].number,
        .cpu_ms = row[1].number,
        .memory_mib_ms = row[2].number,
        .egress_bytes = row[3].number,
    };
    return 0;
}

int store_usage_sum(struct store *store, const struct owner *owner, int64_t from, int64_t to,
                    struct usage_total *out, struct error *err)
{
    struct query query;
    struct sql *sql = NULL;

    query_init(&query);
    query_add(&query, "SELECT CAST(coalesce(sum(executions), 0) AS BIGINT), "
                      "CAST(coalesce(sum(cpu_ms), 0) AS BIGINT), "
                      "CAST(coalesce(sum(memory_mib_ms), 0) AS BIGINT), "
                      "CAST(coalesce(sum(egress_bytes), 0) AS BIGINT) FROM usage");
    query_where_text(&query, "organisation", owner->organisation);
    query_where_text(&query, "project", owner->project);
    query_where_text(&query, "member", owner->member);
    query_where(&query, "minute_at >=", sql_number(minute_of(from)));
    if (to)
        query_where(&query, "minute_at <", sql_number(to));
    if (store_connection(store, &sql, err) < 0)
        return -1;
    return sql_run(sql, query.text, query.args, query.n_args, take_total, out, NULL, err);
}

int store_usage_purge(struct store *store, int64_t before, int64_t *removed, struct error *err)
{
    struct sql_value arg = sql_number(before);

    if (store_run_alone(store, STORE_FAST, "DELETE FROM usage WHERE minute_at < $1", &arg, 1,
                        removed, err) < 0)
        return error_wrap(err, "forget old usage");
    return 0;
}
