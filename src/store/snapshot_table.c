/* SPDX-License-Identifier: Apache-2.0 */
/* The table of snapshots; see snapshots.h. */
#include "store/snapshots.h"

#include "store/tables.h"

static const char *const state_names[] = {
    [SNAPSHOT_BUILDING] = "building",
    [SNAPSHOT_READY] = "ready",
    [SNAPSHOT_FAILED] = "failed",
    [SNAPSHOT_DELETED] = "deleted",
    NULL,
};

#define AT(member) offsetof(struct snapshot_record, member)
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"state", FIELD_NAME, SNAPSHOT_PART_STATE, AT(state), state_names},
    {"organisation", FIELD_TEXT, 0, AT(owner.organisation)},
    {"tenant", FIELD_TEXT, 0, AT(owner.tenant)},
    {"scope", FIELD_TEXT, 0, AT(owner.scope)},
    {"project", FIELD_TEXT, 0, AT(owner.project)},
    {"member", FIELD_TEXT, 0, AT(owner.member)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"name", FIELD_TEXT, SNAPSHOT_PART_ABOUT, AT(name)},
    {"tag", FIELD_TEXT, SNAPSHOT_PART_ABOUT, AT(tag)},
    {"description", FIELD_TEXT, SNAPSHOT_PART_ABOUT, AT(description)},
    {"message", FIELD_TEXT, SNAPSHOT_PART_ABOUT, AT(message)},
    {"is_public", FIELD_FLAG, SNAPSHOT_PART_ABOUT, AT(is_public)},
    {"parent_id", FIELD_TEXT, 0, AT(parent_id)},
    {"sandbox_id", FIELD_TEXT, 0, AT(sandbox_id)},
    {"is_step", FIELD_FLAG, 0, AT(is_step)},
    {"runtime", FIELD_TEXT, SNAPSHOT_PART_CONTENT, AT(runtime)},
    {"dependencies", FIELD_TEXT, SNAPSHOT_PART_CONTENT, AT(dependencies)},
    {"packages", FIELD_TEXT, SNAPSHOT_PART_CONTENT, AT(packages)},
    {"layers", FIELD_TEXT, SNAPSHOT_PART_CONTENT, AT(layers)},
    {"env", FIELD_TEXT, SNAPSHOT_PART_CONTENT, AT(env)},
    {"metadata", FIELD_TEXT, SNAPSHOT_PART_CONTENT, AT(metadata)},
    {"git", FIELD_TEXT, 0, AT(git)},
    {"content_hash", FIELD_TEXT, 0, AT(content_hash)},
    {"upload_secret", FIELD_TEXT, 0, AT(upload_secret)},
    {"size_bytes", FIELD_NUMBER, SNAPSHOT_PART_COUNT, AT(size_bytes)},
    {"file_count", FIELD_NUMBER, SNAPSHOT_PART_COUNT, AT(file_count)},
    {"error", FIELD_TEXT, SNAPSHOT_PART_STATE, AT(error)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"updated_at", FIELD_NUMBER, EVERY_PART, AT(updated_at)},
    {"deleted_at", FIELD_NUMBER, SNAPSHOT_PART_STATE, AT(deleted_at)},
};

const struct record snapshot_table = {
    .noun = "snapshot",
    .table = "snapshots",
    .size = sizeof(struct snapshot_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
    .id = 0,
    .state = 1,
};

void snapshot_record_clear(struct snapshot_record *record)
{
    record_clear(&snapshot_table, record);
}

void snapshot_list_clear(struct snapshot_list *list)
{
    record_rows_clear(&snapshot_table, list->rows, list->count);
    *list = (struct snapshot_list){0};
}

int store_snapshot_put(struct store *store, const struct snapshot_record *record, struct error *err)
{
    return record_put(store, STORE_DURABLE, &snapshot_table, record, err);
}

int store_snapshot_get(struct store *store, const char *id, struct snapshot_record *out,
                       struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &snapshot_table, "id = $1", &arg, 1, id, out, err);
}

int store_snapshot_update(struct store *store, const struct snapshot_record *record, unsigned parts,
                          unsigned from, struct error *err)
{
    enum store_durability durability = parts == SNAPSHOT_PART_COUNT ? STORE_FAST : STORE_DURABLE;
    return record_update(store, durability, &snapshot_table, record, parts, from, err);
}

static void select_ready(struct query *where, const struct snapshot_search *search)
{
    query_init(where);
    query_where_that(where, "state = 'ready'");
    query_where_that(where, search->is_step ? "is_step = 1" : "is_step = 0");
    if (!search->owner.organisation || search->is_public_only)
        query_where_that(where, "is_public = 1");
    query_where_owner(where, &search->owner);
    if (search->is_own && !search->owner.member)
        query_where_that(where, "member IS NULL");
    query_where_text(where, "name", search->name);
    query_where_text(where, "tag", search->tag);
    query_where_text(where, "content_hash", search->content_hash);
}

int store_snapshot_find(struct store *store, const struct snapshot_search *search,
                        struct snapshot_record *out, struct error *err)
{
    const struct page first = {.limit = 1};
    struct record_rows rows;
    struct query where;

    select_ready(&where, search);
    if (record_list(store, &snapshot_table, &where, "created_at DESC, id DESC", &first, 1, &rows,
                    err) < 0)
        return -1;
    if (rows.count == 0) {
        free(rows.rows);
        return record_missing(&snapshot_table,
                              search->name  ? search->name
                              : search->tag ? search->tag
                                            : "",
                              err);
    }
    *out = *(struct snapshot_record *)rows.rows;
    free(rows.rows);
    return 0;
}

int store_snapshot_take_tag(struct store *store, const struct snapshot_record *record,
                            struct error *err)
{
    struct sql_value args[] = {sql_text(record->owner.organisation),
                               sql_text(record->name),
                               sql_text(record->tag),
                               sql_text(record->id),
                               sql_number(record->updated_at),
                               sql_text(record->owner.tenant),
                               sql_text(record->owner.scope),
                               sql_text(record->owner.member)};

    if (store_run_alone(
            store, STORE_DURABLE,
            "UPDATE snapshots SET tag = NULL, updated_at = $5 WHERE organisation = $1 AND "
            "name = $2 AND tag = $3 AND id <> $4 AND state = 'ready' AND "
            "tenant IS NOT DISTINCT FROM $6 AND scope IS NOT DISTINCT FROM $7 AND "
            "member IS NOT DISTINCT FROM $8",
            args, ARRAY_SIZE(args), NULL, err) < 0)
        return error_wrap(err, "give snapshot '%s' its tag", record->id);
    return 0;
}

static const char *const orders[][2] = {
    [SNAPSHOT_BY_CREATED] = {"created_at, id", "created_at DESC, id DESC"},
    [SNAPSHOT_BY_NAME] = {"name, id", "name DESC, id DESC"},
    [SNAPSHOT_BY_SIZE] = {"size_bytes, id", "size_bytes DESC, id DESC"},
    [SNAPSHOT_BY_FILES] = {"file_count, id", "file_count DESC, id DESC"},
};

int store_snapshot_list(struct store *store, const struct snapshot_filter *filter,
                        struct snapshot_list *out, struct error *err)
{
    unsigned states = filter->states ? filter->states : snapshot_in(SNAPSHOT_READY);
    struct record_rows rows;
    struct query where;

    query_init(&where);
    query_where_owner(&where, &filter->owner);
    if (filter->is_own && !filter->owner.member)
        query_where_that(&where, "member IS NULL");
    query_where_text(&where, "sandbox_id", filter->sandbox_id);
    query_where_names(&where, "state", state_names, states);
    if (filter->name)
        query_where_text(&where, "name", filter->name);
    if (filter->with_steps != SNAPSHOT_STEPS_TOO)
        query_where_that(&where, filter->with_steps == SNAPSHOT_STEPS_ALONE ? "is_step = 1"
                                                                            : "is_step = 0");
    if (filter->is_public_only)
        query_where_that(&where, "is_public = 1");
    if (filter->is_here)
        query_where_here(&where, store);
    if (record_list(store, &snapshot_table, &where, orders[filter->sort][filter->is_descending],
                    &filter->page, PAGE_MAX, &rows, err) < 0)
        return -1;
    *out = (struct snapshot_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}
