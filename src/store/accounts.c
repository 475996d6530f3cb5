/* SPDX-License-Identifier: Apache-2.0 */
/* The tables of organisations and of SSH keys; see accounts.h. */
#include "store/accounts.h"

#include "store/tables.h"

#define USED_EVERY_MS 60000

#define AT(member) offsetof(struct organisation_record, member)
static const struct field organisation_fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"name", FIELD_TEXT, 1, AT(name)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"max_sandboxes", FIELD_NUMBER, 1, AT(ceilings.sandboxes)},
    {"max_memory_bytes", FIELD_NUMBER, 1, AT(ceilings.memory_bytes)},
    {"max_cpu_millicores", FIELD_NUMBER, 1, AT(ceilings.cpu_millicores)},
    {"max_disk_bytes", FIELD_NUMBER, 1, AT(ceilings.disk_bytes)},
    {"max_processes", FIELD_NUMBER, 1, AT(ceilings.processes)},
    {"max_runs_per_day", FIELD_NUMBER, 1, AT(ceilings.runs_per_day)},
};
#undef AT

const struct record organisation_table = {
    .noun = "organisation",
    .table = "organisations",
    .size = sizeof(struct organisation_record),
    .fields = organisation_fields,
    .n_fields = ARRAY_SIZE(organisation_fields),
};

#define AT(member) offsetof(struct ssh_key_record, member)
static const struct field ssh_key_fields[] = {
    {"fingerprint", FIELD_TEXT, 0, AT(fingerprint)},
    {"organisation", FIELD_TEXT, 0, AT(organisation)},
    {"type", FIELD_TEXT, 0, AT(type)},
    {"comment", FIELD_TEXT, 0, AT(comment)},
    {"public_key", FIELD_TEXT, 0, AT(public_key)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"name", FIELD_TEXT, 0, AT(name)},
    {"member", FIELD_TEXT, 0, AT(member)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"used_at", FIELD_NUMBER, 0, AT(used_at)},
};

const struct record ssh_key_table = {
    .noun = "ssh key",
    .table = "ssh_keys",
    .size = sizeof(struct ssh_key_record),
    .fields = ssh_key_fields,
    .n_fields = ARRAY_SIZE(ssh_key_fields),
};

void organisation_record_clear(struct organisation_record *record)
{
    record_clear(&organisation_table, record);
}

void organisation_list_clear(struct organisation_list *list)
{
    record_rows_clear(&organisation_table, list->rows, list->count);
    *list = (struct organisation_list){0};
}

int store_organisation_put(struct store *store, const struct organisation_record *record,
                           struct error *err)
{
    return record_put(store, STORE_DURABLE, &organisation_table, record, err);
}

int store_organisation_change(struct store *store, const struct organisation_record *record,
                              struct error *err)
{
    return record_update(store, STORE_DURABLE, &organisation_table, record, 1, 0, err);
}

int store_organisation_get(struct store *store, const char *id, struct organisation_record *out,
                           struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &organisation_table, "id = $1", &arg, 1, id, out, err);
}

int store_organisation_list(struct store *store, const struct page *page,
                            struct organisation_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    if (record_list(store, &organisation_table, &where, "created_at, id", page, PAGE_MAX, &rows,
                    err) < 0)
        return -1;
    *out = (struct organisation_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

void ssh_key_record_clear(struct ssh_key_record *record)
{
    record_clear(&ssh_key_table, record);
}

void ssh_key_list_clear(struct ssh_key_list *list)
{
    record_rows_clear(&ssh_key_table, list->rows, list->count);
    *list = (struct ssh_key_list){0};
}

int store_ssh_key_put(struct store *store, const struct ssh_key_record *record, struct error *err)
{
    return record_put(store, STORE_DURABLE, &ssh_key_table, record, err);
}

#define ONE_SSH_KEY "fingerprint = $1 AND organisation = $2 AND coalesce(member, '') = $3"

int store_ssh_key_get(struct store *store, const struct owner *owner, const char *fingerprint,
                      struct ssh_key_record *out, struct error *err)
{
    struct sql_value args[] = {sql_text(fingerprint), sql_text(owner->organisation),
                               sql_text(owner->member ? owner->member : "")};

    return record_get(store, &ssh_key_table, ONE_SSH_KEY, args, ARRAY_SIZE(args), fingerprint, out,
                      err);
}

int store_ssh_key_rename(struct store *store, const struct owner *owner, const char *fingerprint,
                         const char *name, struct error *err)
{
    struct sql_value args[] = {sql_text(fingerprint), sql_text(owner->organisation),
                               sql_text(owner->member ? owner->member : ""), sql_text(name)};

    if (store_run_alone(store, STORE_DURABLE, "UPDATE ssh_keys SET name = $4 WHERE " ONE_SSH_KEY,
                        args, ARRAY_SIZE(args), NULL, err) < 0)
        return error_wrap(err, "rename ssh key '%s'", fingerprint);
    return 0;
}

int store_ssh_key_used(struct store *store, const struct owner *owner, const char *fingerprint,
                       int64_t now, struct error *err)
{
    struct sql_value args[] = {sql_text(fingerprint), sql_text(owner->organisation),
                               sql_text(owner->member ? owner->member : ""), sql_number(now),
                               sql_number(now - USED_EVERY_MS)};

    if (store_run_alone(store, STORE_FAST,
                        "UPDATE ssh_keys SET used_at = $4 WHERE " ONE_SSH_KEY " AND used_at <= $5",
                        args, ARRAY_SIZE(args), NULL, err) < 0)
        return error_wrap(err, "note the use of ssh key '%s'", fingerprint);
    return 0;
}

int store_ssh_key_remove(struct store *store, const struct owner *owner, const char *fingerprint,
                         bool *found, struct error *err)
{
    struct sql_value args[] = {sql_text(fingerprint), sql_text(owner->organisation),
                               sql_text(owner->member ? owner->member : "")};
    int64_t removed = 0;

    if (store_run_alone(store, STORE_DURABLE, "DELETE FROM ssh_keys WHERE " ONE_SSH_KEY, args,
                        ARRAY_SIZE(args), &removed, err) < 0)
        return error_wrap(err, "remove ssh key '%s'", fingerprint);
    *found = removed > 0;
    return 0;
}

int store_ssh_key_list_same(struct store *store, const char *organisation, const char *fingerprint,
                            int64_t most, struct ssh_key_list *out, struct error *err)
{
    const struct page page = {.limit = most};
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_text(&where, "fingerprint", fingerprint);
    query_where_text(&where, "organisation", organisation);
    if (record_list(store, &ssh_key_table, &where, "created_at, coalesce(member, '')", &page, most,
                    &rows, err) < 0)
        return -1;
    *out = (struct ssh_key_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_ssh_key_list(struct store *store, const struct owner *owner, const struct page *page,
                       struct ssh_key_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_text(&where, "organisation", owner->organisation);
    query_where_text(&where, "member", owner->member);
    if (record_list(store, &ssh_key_table, &where, "created_at, fingerprint", page, PAGE_MAX, &rows,
                    err) < 0)
        return -1;
    *out = (struct ssh_key_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}
