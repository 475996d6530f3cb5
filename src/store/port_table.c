/* SPDX-License-Identifier: Apache-2.0 */
/* The table of exposed ports; see ports.h. */
#include "store/ports.h"

#include "store/tables.h"

static const char *const protocols[] = {[PORT_HTTP] = "http", [PORT_TCP] = "tcp", NULL};

#define AT(member) offsetof(struct port_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"port", FIELD_NUMBER, 0, AT(port)},
    {"protocol", FIELD_NAME, 0, AT(protocol), protocols},
    {"host_port", FIELD_NUMBER, 0, AT(host_port)},
    {"is_private", FIELD_FLAG, 0, AT(is_private)},
    {"token_hash", FIELD_HASH, 0, AT(token_hash)},
    {"token_expires_at", FIELD_NUMBER, 0, AT(token_expires_at)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"released_at", FIELD_NUMBER, 0, AT(released_at)},
};
#undef AT

const struct record port_table = {
    .noun = "port",
    .table = "exposed_ports",
    .size = sizeof(struct port_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

void port_record_clear(struct port_record *record)
{
    record_clear(&port_table, record);
}

void port_list_clear(struct port_list *list)
{
    record_rows_clear(&port_table, list->rows, list->count);
    *list = (struct port_list){0};
}

int store_port_put(struct store *store, const struct port_record *record, struct error *err)
{
    return record_put(store, STORE_DURABLE, &port_table, record, err);
}

int store_port_change(struct store *store, const struct port_record *record, struct error *err)
{
    struct sql_value args[] = {
        sql_text(record->id),
        sql_text(protocols[record->protocol]),
        sql_number(record->host_port),
        sql_number(record->is_private),
        sql_bytes(record->token_hash, PORT_HASH),
        sql_number(record->token_expires_at),
        sql_text(record->key_id),
    };

    return store_run_alone(store, STORE_DURABLE,
                           "UPDATE exposed_ports SET protocol = $2, host_port = $3, is_private = "
                           "$4, token_hash = $5, token_expires_at = $6, key_id = $7 WHERE id = $1",
                           args, ARRAY_SIZE(args), NULL, err);
}

int store_port_end_token(struct store *store, const char *id, const char *key_id, int64_t now,
                         struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_number(now), sql_text(key_id)};

    return store_run_alone(store, STORE_DURABLE,
                           "UPDATE exposed_ports SET token_expires_at = $2 WHERE id = $1 AND "
                           "key_id = $3 AND (token_expires_at = 0 OR token_expires_at > $2)",
                           args, ARRAY_SIZE(args), NULL, err);
}

int store_port_list(struct store *store, struct port_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where(&where, "node =", sql_text(store_node(store)));
    query_add(&where, " ORDER BY created_at, id");
    if (record_list_all(store, &port_table, &where, &rows, err) < 0)
        return -1;
    *out = (struct port_list){.rows = rows.rows, .count = rows.count};
    return 0;
}

int store_port_release(struct store *store, const char *id, int64_t now, struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_number(now)};

    return store_run_alone(store, STORE_DURABLE,
                           "UPDATE exposed_ports SET released_at = $2 WHERE id = $1", args,
                           ARRAY_SIZE(args), NULL, err);
}

int store_port_purge(struct store *store, int64_t before, struct error *err)
{
    struct sql_value args[] = {sql_text(store_node(store)), sql_number(before)};

    return store_run_alone(
        store, STORE_FAST,
        "DELETE FROM exposed_ports WHERE node = $1 AND released_at > 0 AND released_at < $2", args,
        ARRAY_SIZE(args), NULL, err);
}
