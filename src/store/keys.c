/* SPDX-License-Identifier: Apache-2.0 */
/* The table of API keys; see keys.h. */
#include "store/keys.h"

#include "store/tables.h"

#define USED_EVERY_MS 60000

#define AT(member) offsetof(struct key_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"hash", FIELD_HASH, 0, AT(hash)},
    {"prefix", FIELD_TEXT, 0, AT(prefix)},
    {"name", FIELD_TEXT, KEY_PART_ABOUT, AT(name)},
    {"organisation", FIELD_TEXT, 0, AT(organisation)},
    {"member", FIELD_TEXT, 0, AT(member)},
    {"made_by", FIELD_TEXT, 0, AT(made_by)},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"scopes", FIELD_TEXT, KEY_PART_ABOUT, AT(scopes)},
    {"runtimes", FIELD_STRINGS, KEY_PART_ABOUT, AT(runtimes)},
    {"has_no_network", FIELD_FLAG, KEY_PART_ABOUT, AT(has_no_network)},
    {"network_allow", FIELD_STRINGS, KEY_PART_ABOUT, AT(network_allow)},
    {"selector", FIELD_TEXT, KEY_PART_ABOUT, AT(selector)},
    {"tools", FIELD_TEXT, KEY_PART_ABOUT, AT(tools)},
    {"max_sandboxes", FIELD_NUMBER, KEY_PART_ABOUT, AT(quota.sandboxes)},
    {"max_memory_bytes", FIELD_NUMBER, KEY_PART_ABOUT, AT(quota.memory_bytes)},
    {"max_cpu_millicores", FIELD_NUMBER, KEY_PART_ABOUT, AT(quota.cpu_millicores)},
    {"max_disk_bytes", FIELD_NUMBER, KEY_PART_ABOUT, AT(quota.disk_bytes)},
    {"max_processes", FIELD_NUMBER, KEY_PART_ABOUT, AT(quota.processes)},
    {"max_runs_per_day", FIELD_NUMBER, KEY_PART_ABOUT, AT(quota.runs_per_day)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"used_at", FIELD_NUMBER, 0, AT(used_at)},
    {"expires_at", FIELD_NUMBER, KEY_PART_ABOUT, AT(expires_at)},
    {"revoked_at", FIELD_NUMBER, 0, AT(revoked_at)},
};

const struct record key_table = {
    .noun = "key",
    .table = "keys",
    .size = sizeof(struct key_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

void key_record_clear(struct key_record *record)
{
    record_clear(&key_table, record);
}

void key_list_clear(struct key_list *list)
{
    record_rows_clear(&key_table, list->rows, list->count);
    *list = (struct key_list){0};
}

int store_key_put(struct store *store, const struct key_record *record, struct error *err)
{
    return record_put(store, STORE_DURABLE, &key_table, record, err);
}

int store_key_get(struct store *store, const char *id, struct key_record *out, struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &key_table, "id = $1", &arg, 1, id, out, err);
}

int store_key_find(struct store *store, const unsigned char hash[KEY_HASH], struct key_record *out,
                   struct error *err)
{
    struct sql_value arg = sql_bytes(hash, KEY_HASH);
    return record_get(store, &key_table, "hash = $1", &arg, 1, "(by its hash)", out, err);
}

static int explain_no_revoke(struct store *store, const char *id, struct error *err)
{
    autokey key = {0};

    if (store_key_get(store, id, &key, err) < 0)
        return -1;
    return error_refuse(err, ERROR_STATE, "key", "key 'key_%s' is revoked already", id);
}

int store_key_revoke(struct store *store, const char *id, int64_t now, struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_number(now)};
    int64_t changed = 0;

    if (store_run_alone(store, STORE_DURABLE,
                        "UPDATE keys SET revoked_at = $2 WHERE revoked_at = 0 AND (id = $1 OR "
                        "(made_by = $1 AND sandbox_id IS NOT NULL AND EXISTS (SELECT 1 FROM keys "
                        "AS maker WHERE maker.id = $1 AND maker.revoked_at = 0)))",
                        args, ARRAY_SIZE(args), &changed, err) < 0)
        return error_wrap(err, "revoke key '%s'", id);
    return changed ? 0 : explain_no_revoke(store, id, err);
}

static int change_once(struct store_call *call, const struct key_record *record, struct error *err)
{
    struct sql_value arg = sql_text(record->id);
    int64_t usable = 0;

    if (store_call_begin(call, STORE_DURABLE, err) < 0 ||
        store_run(call, "SELECT count(*) FROM keys WHERE id = $1 AND revoked_at = 0", &arg, 1,
                  store_take_number, &usable, NULL, err) < 0)
        return error_wrap(err, "change key '%s'", record->id);
    if (!usable)
        return error_refuse(err, ERROR_STATE, "key", "key '%s' is revoked", record->id);
    if (record_update_in(call, &key_table, record, KEY_PART_ABOUT, 0, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int store_key_change(struct store *store, const struct key_record *record, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = change_once(&call, record, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_key_used(struct store *store, const char *id, int64_t now, struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_number(now), sql_number(now - USED_EVERY_MS)};

    if (store_run_alone(store, STORE_FAST,
                        "UPDATE keys SET used_at = $2 WHERE id = $1 AND used_at <= $3", args,
                        ARRAY_SIZE(args), NULL, err) < 0)
        return error_wrap(err, "note the use of key '%s'", id);
    return 0;
}

int store_key_list_of(struct store *store, const struct owner *owner, const struct page *page,
                      struct key_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_text(&where, "organisation", owner->organisation);
    query_where_text(&where, "member", owner->member);
    query_where_that(&where, "sandbox_id IS NULL");
    if (record_list(store, &key_table, &where, "created_at, id", page, PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct key_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_key_list(struct store *store, const char *organisation, const struct page *page,
                   struct key_list *out, struct error *err)
{
    const struct owner owner = {.organisation = organisation};
    return store_key_list_of(store, &owner, page, out, err);
}

int store_token_list(struct store *store, const char *sandbox_id, int64_t now,
                     const struct page *page, struct key_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where(&where, "sandbox_id =", sql_text(sandbox_id));
    query_where_that(&where, "revoked_at = 0");
    query_where(&where, "expires_at >", sql_number(now));
    if (record_list(store, &key_table, &where, "created_at, id", page, PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct key_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_key_list_ended(struct store *store, int64_t since, int64_t now, struct key_list *out,
                         struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, "(revoked_at > ");
    query_add_value(&tail, sql_number(since));
    query_add(&tail, " OR (expires_at > ");
    query_add_value(&tail, sql_number(since));
    query_add(&tail, " AND expires_at <= ");
    query_add_value(&tail, sql_number(now));
    query_add(&tail, ")) ORDER BY CASE WHEN sandbox_id IS NULL THEN 0 ELSE 1 END, id LIMIT 1000");
    if (record_list_all(store, &key_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct key_list){.rows = rows.rows, .count = rows.count};
    return 0;
}

int store_token_is_alive(struct store *store, const char *sandbox_id, bool *out, struct error *err)
{
    struct sql_value arg = sql_text(sandbox_id);
    autocall call = {.store = store};
    int64_t found = 0;

    if (store_call_read(&call, err) < 0 ||
        store_run(&call, "SELECT count(*) FROM sandboxes WHERE id = $1 AND ended_at = 0", &arg, 1,
                  store_take_number, &found, NULL, err) < 0)
        return error_wrap(err, "look for the sandbox of a token");
    *out = found > 0;
    return 0;
}

int store_token_purge(struct store *store, int64_t before, int64_t limit, int64_t *removed,
                      struct error *err)
{
    struct sql_value args[] = {sql_number(before), sql_number(limit)};

    if (store_run_alone(store, STORE_FAST,
                        "DELETE FROM keys WHERE id IN (SELECT id FROM keys WHERE sandbox_id IS NOT "
                        "NULL AND (expires_at < $1 OR (revoked_at <> 0 AND revoked_at < $1)) "
                        "LIMIT $2)",
                        args, ARRAY_SIZE(args), removed, err) < 0)
        return error_wrap(err, "forget old tokens");
    return 0;
}
