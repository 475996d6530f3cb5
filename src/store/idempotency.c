/* SPDX-License-Identifier: Apache-2.0 */
/* The table of requests that happen once; see idempotency.h. */
#include "store/idempotency.h"

#include "store/tables.h"

#include <string.h>

static const char *const state_names[] = {
    [IDEMPOTENCY_PENDING] = "pending",
    [IDEMPOTENCY_DONE] = "done",
    NULL,
};

#define AT(member) offsetof(struct idempotency_record, member)
static const struct field fields[] = {
    {"key", FIELD_TEXT, 0, AT(key)},
    {"organisation", FIELD_TEXT, 0, AT(organisation)},
    {"realm", FIELD_TEXT, 0, AT(realm)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"request_hash", FIELD_HASH, 0, AT(request_hash)},
    {"state", FIELD_NAME, 0, AT(state), state_names},
    {"subject_id", FIELD_TEXT, 0, AT(subject_id)},
    {"answer", FIELD_TEXT, 0, AT(answer)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
};

const struct record idempotency_table = {
    .noun = "idempotency key",
    .table = "idempotency",
    .size = sizeof(struct idempotency_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
};

void idempotency_record_clear(struct idempotency_record *record)
{
    record_clear(&idempotency_table, record);
}

static int get_record(struct store *store, const struct idempotency_record *wanted,
                      struct idempotency_record *out, struct error *err)
{
    struct sql_value args[] = {sql_text(wanted->organisation), sql_text(wanted->realm),
                               sql_text(wanted->key)};

    return record_get(store, &idempotency_table, "organisation = $1 AND realm = $2 AND key = $3",
                      args, ARRAY_SIZE(args), wanted->key, out, err);
}

static int insert_pending(struct store_call *call, const struct idempotency_record *record,
                          bool *is_new, struct error *err)
{
    struct sql_value args[] = {
        sql_text(record->organisation),
        sql_text(record->realm),
        sql_text(record->key),
        sql_bytes(record->request_hash, REQUEST_HASH),
        sql_text(record->subject_id),
        sql_number(record->created_at),
        sql_text(store_node(call->store)),
    };
    int64_t added = 0;

    if (store_run(call,
                  "INSERT INTO idempotency (organisation, realm, key, request_hash, state, "
                  "subject_id, answer, created_at, node) "
                  "VALUES ($1, $2, $3, $4, 'pending', $5, NULL, $6, $7) "
                  "ON CONFLICT (organisation, realm, key) DO NOTHING",
                  args, ARRAY_SIZE(args), NULL, NULL, &added, err) < 0)
        return error_wrap(err, "take idempotency key '%s'", record->key);
    *is_new = added > 0;
    return 0;
}

static int claim_once(struct store_call *call, const struct idempotency_record *record,
                      bool *is_new, struct idempotency_record *out, struct error *err)
{
    autoidempotency earlier = {0};

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        insert_pending(call, record, is_new, err) < 0 ||
        get_record(call->store, record, &earlier, err) < 0)
        return -1;
    if (memcmp(earlier.request_hash, record->request_hash, REQUEST_HASH) != 0)
        return error_refuse(err, ERROR_MISMATCH, "idempotency key",
                            "idempotency key '%s' came with another request before", record->key);
    if (store_call_done(call, err) < 0)
        return -1;
    *out = earlier;
    earlier = (struct idempotency_record){0};
    return 0;
}

int store_idempotency_claim(struct store *store, const struct idempotency_record *record,
                            bool *is_new, struct idempotency_record *out, struct error *err)
{
    autocall call = {.store = store};
    bool is_first = false;
    int result;

    do
        result = claim_once(&call, record, &is_first, out, err);
    while (result < 0 && store_call_again(&call, err));
    if (result == 0)
        *is_new = is_first;
    return result;
}

static int explain_no_finish(struct store *store, const struct idempotency_record *record,
                             struct error *err)
{
    autoidempotency there = {0};

    if (get_record(store, record, &there, err) < 0)
        return -1;
    return error_refuse(err, ERROR_STATE, "idempotency key",
                        "the request of idempotency key '%s' is done already", record->key);
}

int store_idempotency_finish(struct store *store, const struct idempotency_record *record,
                             struct error *err)
{
    struct sql_value args[] = {
        sql_text(record->organisation), sql_text(record->realm),  sql_text(record->key),
        sql_text(record->subject_id),   sql_text(record->answer),
    };
    int64_t changed = 0;

    if (store_run_alone(store, STORE_FAST,
                        "UPDATE idempotency SET state = 'done', subject_id = $4, answer = $5 "
                        "WHERE organisation = $1 AND realm = $2 AND key = $3 AND state = 'pending'",
                        args, ARRAY_SIZE(args), &changed, err) < 0)
        return error_wrap(err, "finish idempotency key '%s'", record->key);
    return changed ? 0 : explain_no_finish(store, record, err);
}

int store_idempotency_release(struct store *store, const char *organisation, const char *realm,
                              const char *key, struct error *err)
{
    struct sql_value args[] = {sql_text(organisation), sql_text(realm), sql_text(key)};

    if (store_run_alone(store, STORE_FAST,
                        "DELETE FROM idempotency WHERE organisation = $1 AND realm = $2 AND "
                        "key = $3 AND state = 'pending'",
                        args, ARRAY_SIZE(args), NULL, err) < 0)
        return error_wrap(err, "give idempotency key '%s' back", key);
    return 0;
}

int store_idempotency_release_all(struct store *store, int64_t *released, struct error *err)
{
    struct sql_value arg = sql_text(store_node(store));

    if (store_run_alone(store, STORE_FAST,
                        "DELETE FROM idempotency WHERE state = 'pending' AND node = $1", &arg, 1,
                        released, err) < 0)
        return error_wrap(err, "give pending idempotency keys back");
    return 0;
}

int store_idempotency_purge(struct store *store, int64_t before, int64_t most, int64_t limit,
                            int64_t *removed, struct error *err)
{
    struct sql_value args[] = {sql_number(before), sql_number(limit), sql_text(store_node(store)),
                               sql_number(most)};

    if (store_run_alone(
            store, STORE_FAST,
            "DELETE FROM idempotency WHERE (organisation, realm, key) IN (SELECT organisation, "
            "realm, key FROM idempotency WHERE node = $3 AND (created_at < $1 OR created_at < "
            "(SELECT created_at FROM idempotency WHERE node = $3 ORDER BY created_at DESC LIMIT 1 "
            "OFFSET $4)) ORDER BY created_at LIMIT $2)",
            args, ARRAY_SIZE(args), removed, err) < 0)
        return error_wrap(err, "forget old idempotency keys");
    return 0;
}
