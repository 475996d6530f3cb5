/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what was refused; see network_seen.h. */
#include "store/network_seen.h"

#include "store/tables.h"

#define AT(member) offsetof(struct network_seen, member)
static const struct field fields[] = {
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)}, {"host", FIELD_TEXT, 0, AT(host)},
    {"port", FIELD_NUMBER, 0, AT(port)},           {"protocol", FIELD_TEXT, 0, AT(protocol)},
    {"is_refused", FIELD_FLAG, 0, AT(is_refused)}, {"rule", FIELD_TEXT, 0, AT(rule)},
    {"attempts", FIELD_NUMBER, 0, AT(attempts)},   {"first_at", FIELD_NUMBER, 0, AT(first_at)},
    {"last_at", FIELD_NUMBER, 0, AT(last_at)},
};
#undef AT

const struct record network_seen_table = {
    .noun = "destination",
    .table = "network_seen",
    .size = sizeof(struct network_seen),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

void network_seen_list_clear(struct network_seen_list *list)
{
    record_rows_clear(&network_seen_table, list->rows, list->count);
    *list = (struct network_seen_list){0};
}

static int keep(struct store_call *call, const struct network_seen *seen, struct error *err)
{
    struct sql_value args[] = {
        sql_text(seen->sandbox_id), sql_text(seen->host),         sql_number(seen->port),
        sql_text(seen->protocol),   sql_number(seen->is_refused), sql_text(seen->rule),
        sql_number(seen->attempts), sql_number(seen->last_at),    sql_number(NETWORK_SEEN_MOST),
    };

    return store_run(
        call,
        "INSERT INTO network_seen (sandbox_id, host, port, protocol, is_refused, rule, attempts, "
        "first_at, last_at) SELECT $1, $2, $3, $4, $5, $6, $7, $8, $8 WHERE (SELECT count(*) FROM "
        "network_seen WHERE sandbox_id = $1) < $9 OR EXISTS (SELECT 1 FROM network_seen WHERE "
        "sandbox_id = $1 AND host = $2 AND port = $3 AND protocol = $4 AND is_refused = $5) "
        "ON CONFLICT (sandbox_id, host, port, protocol, is_refused) DO UPDATE SET "
        "attempts = network_seen.attempts + excluded.attempts, rule = excluded.rule, "
        "last_at = excluded.last_at",
        args, ARRAY_SIZE(args), NULL, NULL, NULL, err);
}

static int note_once(struct store_call *call, const struct network_seen *seen, struct error *err)
{
    struct sql_value args[] = {
        sql_text(seen->sandbox_id),
        sql_number(seen->is_refused ? seen->attempts : 0),
    };
    int64_t changed = 0;

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        store_run(call, "UPDATE sandboxes SET network_refused = network_refused + $2 WHERE id = $1",
                  args, ARRAY_SIZE(args), NULL, NULL, &changed, err) < 0 ||
        (changed > 0 && keep(call, seen, err) < 0))
        return error_wrap(err, "note what sandbox '%s' was refused", seen->sandbox_id);
    return store_call_done(call, err);
}

int store_network_note(struct store *store, const struct network_seen *seen, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = note_once(&call, seen, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_network_list(struct store *store, const char *sandbox_id, bool is_refused,
                       struct network_seen_list *out, struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_text(&tail, "sandbox_id", sandbox_id);
    query_where(&tail, "is_refused =", sql_number(is_refused));
    query_add(&tail, " ORDER BY attempts DESC, host, port");
    if (record_list_all(store, &network_seen_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct network_seen_list){rows.rows, rows.count};
    return 0;
}

int store_network_forget(struct store *store, const char *sandbox_id, struct error *err)
{
    struct sql_value arg = sql_text(sandbox_id);

    if (store_run_alone(store, STORE_FAST, "DELETE FROM network_seen WHERE sandbox_id = $1", &arg,
                        1, NULL, err) < 0)
        return error_wrap(err, "forget what sandbox '%s' was refused", sandbox_id);
    return 0;
}
