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
    {"name", FIELD_TEXT, 0, AT(name)},
    {"organisation", FIELD_TEXT, 0, AT(organisation)},
    {"scopes", FIELD_TEXT, 0, AT(scopes)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"used_at", FIELD_NUMBER, 0, AT(used_at)},
    {"expires_at", FIELD_NUMBER, 0, AT(expires_at)},
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
    return error_refuse(err, ERROR_STATE, "key", "key '%s' is revoked already", id);
}

int store_key_revoke(struct store *store, const char *id, int64_t now, struct error *err)
{
    struct sql_value args[] = {sql_text(id), sql_number(now)};
    int64_t changed = 0;

    if (store_run_alone(store, STORE_DURABLE,
                        "UPDATE keys SET revoked_at = $2 WHERE id = $1 AND revoked_at = 0", args,
                        ARRAY_SIZE(args), &changed, err) < 0)
        return error_wrap(err, "revoke key '%s'", id);
    return changed ? 0 : explain_no_revoke(store, id, err);
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

int store_key_list(struct store *store, const char *organisation, const struct page *page,
                   struct key_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_text(&where, "organisation", organisation);
    if (record_list(store, &key_table, &where, "created_at, id", page, PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct key_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}
