/* SPDX-License-Identifier: Apache-2.0 */
/* The table of sandboxes; see sandboxes.h. */
#include "store/sandboxes.h"

#include "store/record.h"
#include "store/sandbox_counts.h"
#include "store/sandbox_labels.h"
#include "store/tables.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const mode_names[] = {
    [SANDBOX_INTERACTIVE] = "interactive",
    [SANDBOX_ONE_SHOT] = "one_shot",
    NULL,
};
static const char *const on_idle_names[] = {
    [SANDBOX_IDLE_ENDS] = "end",
    [SANDBOX_IDLE_DROPS_BOX] = "drop_box",
    [SANDBOX_IDLE_PAUSES] = "pause",
    NULL,
};

static const char *const default_names[] = {
    [NETWORK_UNSAID] = "unsaid",
    [NETWORK_ALLOW] = "allow",
    [NETWORK_DENY] = "deny",
    NULL,
};
static const char *const on_expiry_names[] = {
    [SANDBOX_EXPIRY_WAITS] = "wait",
    [SANDBOX_EXPIRY_ENDS] = "end",
    [SANDBOX_EXPIRY_PAUSES] = "pause",
    [SANDBOX_EXPIRY_DROPS_BOX] = "drop_box",
    NULL,
};

#define AT(member) offsetof(struct sandbox_record, member)
#define LIMIT_FIELD(member, ...)                                                                   \
    {                                                                                              \
        .column = #member, .kind = FIELD_NUMBER, .parts = SANDBOX_PART_LIMITS,                     \
        .offset = AT(limits.member)                                                                \
    }
static const struct field fields[] = {
    {"id", FIELD_TEXT, 0, AT(id)},
    {"state", FIELD_NAME, SANDBOX_PART_STATE | SANDBOX_PART_LIVING, AT(state), sandbox_state_names},
    {"organisation", FIELD_TEXT, 0, AT(owner.organisation)},
    {"tenant", FIELD_TEXT, 0, AT(owner.tenant)},
    {"scope", FIELD_TEXT, 0, AT(owner.scope)},
    {"project", FIELD_TEXT, 0, AT(owner.project)},
    {"member", FIELD_TEXT, 0, AT(owner.member)},
    {"key_id", FIELD_TEXT, 0, AT(key_id)},
    {"node", FIELD_NODE, 0, AT(node)},
    {"name", FIELD_TEXT, SANDBOX_PART_ABOUT, AT(name)},
    {"description", FIELD_TEXT, SANDBOX_PART_ABOUT, AT(description)},
    {"metadata", FIELD_TEXT, SANDBOX_PART_ABOUT, AT(metadata)},
    {"labels", FIELD_STRINGS, SANDBOX_PART_LABELS, AT(labels)},
    {"scopes", FIELD_TEXT, 0, AT(scopes)},
    {"dependencies", FIELD_TEXT, 0, AT(dependencies)},
    {"packages", FIELD_TEXT, 0, AT(packages)},
    {"mounts", FIELD_TEXT, 0, AT(mounts)},
    {"asked", FIELD_TEXT, SANDBOX_PART_ASKED, AT(asked)},
    {"front_data", FIELD_TEXT, SANDBOX_PART_FRONT, AT(front_data)},
    {"mode", FIELD_NAME, 0, AT(mode), mode_names},
    {"runtime", FIELD_TEXT, 0, AT(runtime)},
    {"snapshot", FIELD_TEXT, 0, AT(snapshot)},
    {"layers", FIELD_TEXT, 0, AT(layers)},
    {"command", FIELD_STRINGS, 0, AT(command.argv)},
    {"execution_id", FIELD_TEXT, 0, AT(execution_id)},
    {"max_executions", FIELD_NUMBER, 0, AT(max_executions)},
    {"box_user", FIELD_TEXT, 0, AT(command.user)},
    {"home", FIELD_TEXT, 0, AT(home)},
    {"working_directory", FIELD_TEXT, 0, AT(command.directory)},
    LIMITS_ROWS(LIMIT_FIELD),
    {"env", FIELD_STRINGS, SANDBOX_PART_ENV, AT(command.env)},
    {"has_network", FIELD_FLAG, SANDBOX_PART_NETWORK, AT(network.is_enabled)},
    {"network_allow", FIELD_STRINGS, SANDBOX_PART_NETWORK, AT(network.allow)},
    {"network_deny", FIELD_STRINGS, SANDBOX_PART_NETWORK, AT(network.deny)},
    {"network_default", FIELD_NAME, SANDBOX_PART_NETWORK, AT(network.otherwise), default_names},
    {"network_observe", FIELD_FLAG, SANDBOX_PART_NETWORK, AT(network.is_observed)},
    {"network_rate", FIELD_NUMBER, SANDBOX_PART_NETWORK, AT(network.rate_bytes)},
    {"network_secrets", FIELD_STRINGS, SANDBOX_PART_NETWORK, AT(network.secrets)},
    {"network_generation", FIELD_NUMBER, SANDBOX_PART_NETWORK, AT(network_generation)},
    {"port", FIELD_NUMBER, SANDBOX_PART_NETWORK, AT(port)},
    {"idle_timeout_ms", FIELD_NUMBER, SANDBOX_PART_DEADLINES, AT(idle_timeout_ms)},
    {"execution_timeout_ms", FIELD_NUMBER, SANDBOX_PART_DEADLINES, AT(command.timeout_ms)},
    {"paused_timeout_ms", FIELD_NUMBER, SANDBOX_PART_DEADLINES, AT(paused_timeout_ms)},
    {"on_idle", FIELD_NAME, SANDBOX_PART_DEADLINES, AT(on_idle), on_idle_names},
    {"active_at", FIELD_NUMBER, SANDBOX_PART_DEADLINES, AT(active_at)},
    {"expires_at", FIELD_NUMBER, SANDBOX_PART_DEADLINES, AT(expires_at)},
    {"on_expiry", FIELD_NAME, SANDBOX_PART_DEADLINES, AT(on_expiry), on_expiry_names},
    {"keep_ms", FIELD_NUMBER, 0, AT(keep_ms)},
    {"reason", FIELD_TEXT, SANDBOX_PART_STATE | SANDBOX_PART_LIVING, AT(reason)},
    {"error", FIELD_TEXT, SANDBOX_PART_STATE | SANDBOX_PART_LIVING, AT(error)},
    {"exit_code", FIELD_NUMBER, SANDBOX_PART_STATE | SANDBOX_PART_LIVING, AT(exit_code)},
    {"started_at", FIELD_NUMBER, SANDBOX_PART_STATE | SANDBOX_PART_LIVING, AT(started_at)},
    {"paused_at", FIELD_NUMBER, SANDBOX_PART_STATE | SANDBOX_PART_LIVING, AT(paused_at)},
    {"ended_at", FIELD_NUMBER, SANDBOX_PART_STATE, AT(ended_at)},
    {"deleted_at", FIELD_NUMBER, SANDBOX_PART_STATE, AT(deleted_at)},
    {"box_slot", FIELD_NUMBER, SANDBOX_PART_BOX, AT(box_slot)},
    {"scratch", FIELD_TEXT, SANDBOX_PART_BOX, AT(scratch)},
    {"execution_count", FIELD_NUMBER, 0, AT(execution_count)},
    {"process_count", FIELD_NUMBER, 0, AT(process_count)},
    {"event_count", FIELD_NUMBER, 0, AT(event_count)},
    {"cpu_ms", FIELD_NUMBER, 0, AT(cpu_ms)},
    {"memory_mib_ms", FIELD_NUMBER, 0, AT(memory_mib_ms)},
    {"egress_bytes", FIELD_NUMBER, 0, AT(egress_bytes)},
    {"network_refused", FIELD_NUMBER, 0, AT(network_refused)},
    {"counted_cpu_ms", FIELD_NUMBER, 0, AT(counted_cpu_ms)},
    {"counted_egress_bytes", FIELD_NUMBER, 0, AT(counted_egress_bytes)},
    {"counted_at", FIELD_NUMBER, 0, AT(counted_at)},
    {"created_at", FIELD_NUMBER, 0, AT(created_at)},
    {"updated_at", FIELD_NUMBER, EVERY_PART, AT(updated_at)},
};

const struct record sandbox_table = {
    .noun = "sandbox",
    .table = "sandboxes",
    .size = sizeof(struct sandbox_record),
    .fields = fields,
    .n_fields = ARRAY_SIZE(fields),
    .id = 0,
    .state = 1,
};

void sandbox_record_clear(struct sandbox_record *record)
{
    record_clear(&sandbox_table, record);
}

void sandbox_record_copy(struct sandbox_record *to, const struct sandbox_record *from)
{
    record_copy(&sandbox_table, from, to);
}

void sandbox_list_clear(struct sandbox_list *list)
{
    record_rows_clear(&sandbox_table, list->rows, list->count);
    *list = (struct sandbox_list){0};
}

static const char *class_of(const struct sandbox_record *record)
{
    return record->ended_at == 0 ? "alive" : sandbox_state_names[record->state];
}

static int put_once(struct store_call *call, const struct sandbox_record *record, struct error *err)
{
    bool is_kept = record->mode != SANDBOX_ONE_SHOT;

    if (store_call_begin(call, is_kept ? STORE_DURABLE : STORE_FAST, err) < 0 ||
        record_insert(call, &sandbox_table, record, err) < 0 ||
        sandbox_labels_put(call, record->id, record->labels, err) < 0 ||
        sandbox_counts_add(call, record->id, class_of(record), 1, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int store_sandbox_put(struct store *store, const struct sandbox_record *record, struct error *err)
{
    autocall call = {.store = store};
    int result;

    do
        result = put_once(&call, record, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

int store_sandbox_get(struct store *store, const char *id, struct sandbox_record *out,
                      struct error *err)
{
    struct sql_value arg = sql_text(id);
    return record_get(store, &sandbox_table, "id = $1", &arg, 1, id, out, err);
}

/* It counts as another than before. */
static int end_once(struct store_call *call, const struct sandbox_record *record, unsigned parts,
                    unsigned from, struct error *err)
{
    char before[16];

    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        sandbox_counts_class(call, record->id, before, err) < 0 ||
        record_update_in(call, &sandbox_table, record, parts, from, err) < 0)
        return -1;
    if (strcmp(before, class_of(record)) != 0 &&
        (sandbox_counts_add(call, record->id, before, -1, err) < 0 ||
         sandbox_counts_add(call, record->id, class_of(record), 1, err) < 0))
        return -1;
    return store_call_done(call, err);
}

static int relabel_once(struct store_call *call, const struct sandbox_record *record,
                        unsigned parts, unsigned from, struct error *err)
{
    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        record_update_in(call, &sandbox_table, record, parts, from, err) < 0 ||
        sandbox_labels_replace(call, record->id, record->labels, err) < 0)
        return -1;
    return store_call_done(call, err);
}

int store_sandbox_update(struct store *store, const struct sandbox_record *record, unsigned parts,
                         unsigned from, struct error *err)
{
    bool is_end = (parts & SANDBOX_PART_STATE) && record->ended_at != 0;
    bool is_relabelled = (parts & SANDBOX_PART_LABELS) != 0;
    autocall call = {.store = store};
    int result;

    assert(!is_end || !is_relabelled); // nobody does both
    if (!is_end && !is_relabelled)
        return record_update(store, STORE_FAST, &sandbox_table, record, parts, from, err);
    do
        result = is_end ? end_once(&call, record, parts, from, err)
                        : relabel_once(&call, record, parts, from, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}

/* Living ones of the owner that have the name, the query being filled from its WHERE on. */
static void where_name(struct query *query, const struct owner *owner, const char *name)
{
    struct owner all_projects = *owner;

    all_projects.project = NULL;
    query_where_owner(query, &all_projects);
    query_where_that(query, "ended_at = 0 AND name IS NOT NULL");
    query_where_text(query, "name", name);
}

/* Of this member's alone, who may be nobody. */
static void where_own_name(struct query *query, const struct owner *owner, const char *name)
{
    where_name(query, owner, name);
    if (!owner->member)
        query_where_that(query, "member IS NULL");
}

int store_sandbox_check_name(struct store *store, const struct sandbox_record *record,
                             struct error *err)
{
    autocall call = {.store = store};
    struct query query;
    int64_t count = 0;

    if (!record->name)
        return 0;
    query_init(&query);
    query_add(&query, "SELECT count(*) FROM sandboxes");
    where_own_name(&query, &record->owner, record->name);
    query_where(&query, "id <>", sql_text(record->id));
    if (store_call_begin(&call, STORE_FAST, err) < 0 ||
        store_run(&call, query.text, query.args, query.n_args, store_take_number, &count, NULL,
                  err) < 0)
        return error_wrap(err, "look for sandbox '%.80s'", record->name);
    if (count > 0)
        return error_refuse(err, ERROR_EXISTS, "name",
                            "name: another sandbox that is alive is called '%.80s'", record->name);
    return store_call_done(&call, err);
}

struct named {
    char *id; // ID_TEXT
    int64_t count;
};

static int take_named(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct named *named = data;

    (void)n_columns;
    (void)err;
    named->count++;
    (void)snprintf(named->id, ID_TEXT, "%s", row[0].data);
    return 0;
}

static int find_named(struct store *store, struct query *query, const char *name, char id[ID_TEXT],
                      struct error *err)
{
    struct named named = {.id = id};
    struct sql *sql = NULL;

    query_add(query, " LIMIT 2");
    if (store_connection(store, &sql, err) < 0 ||
        sql_run(sql, query->text, query->args, query->n_args, take_named, &named, NULL, err) < 0)
        return error_wrap(err, "look for sandbox '%.80s'", name);
    if (named.count > 1)
        return error_refuse(
            err, ERROR_AMBIGUOUS, "sandbox",
            "several sandboxes that are alive are called '%.80s': use the id of one", name);
    return named.count == 1 ? 0 : record_missing(&sandbox_table, name, err);
}

int store_sandbox_find_name(struct store *store, const struct owner *owner, const char *name,
                            char id[ID_TEXT], struct error *err)
{
    struct query query;

    query_init(&query);
    query_add(&query, "SELECT id FROM sandboxes");
    where_name(&query, owner, name);
    return find_named(store, &query, name, id, err);
}

int store_sandbox_find_own_name(struct store *store, const struct owner *owner, const char *name,
                                char id[ID_TEXT], struct error *err)
{
    struct query query;

    query_init(&query);
    query_add(&query, "SELECT id FROM sandboxes");
    where_own_name(&query, owner, name);
    return find_named(store, &query, name, id, err);
}

static const char *const orders[][2] = {
    [SANDBOX_BY_CREATED] = {"created_at, id", "created_at DESC, id DESC"},
    [SANDBOX_BY_UPDATED] = {"updated_at, id", "updated_at DESC, id DESC"},
    [SANDBOX_BY_NAME] = {"coalesce(name, ''), id", "coalesce(name, '') DESC, id DESC"},
    [SANDBOX_BY_STATE] = {"state, id", "state DESC, id DESC"},
    [SANDBOX_BY_MODE] = {"mode, id", "mode DESC, id DESC"},
    [SANDBOX_BY_EXECUTIONS] = {"execution_count, id", "execution_count DESC, id DESC"},
};

static void select_sandboxes(struct query *query, const struct sandbox_filter *filter)
{
    query_init(query);
    query_where_owner(query, &filter->owner);
    query_where_text(query, "name", filter->name);
    query_where_text(query, "runtime", filter->runtime);
    query_where_text(query, "snapshot", filter->snapshot);
    query_where_text(query, "mode", filter->mode ? mode_names[*filter->mode] : NULL);
    query_where_labels(query, filter->labels);
    if (filter->created_from)
        query_where(query, "created_at >=", sql_number(filter->created_from));
    // By what the indexes know, where that says the same.
    if (filter->states && !(filter->states & ~(unsigned)SANDBOX_ALIVE)) {
        query_where_that(query, "ended_at = 0");
        if (filter->states != SANDBOX_ALIVE)
            query_where_names(query, "state", sandbox_state_names, filter->states);
        return;
    }
    if (!(filter->states & sandbox_in(SANDBOX_DELETED)))
        query_where_that(query, "deleted_at = 0");
    if (filter->states != (SANDBOX_ANY & ~sandbox_in(SANDBOX_DELETED)))
        query_where_names(query, "state", sandbox_state_names, filter->states);
}

int store_sandbox_list(struct store *store, const struct sandbox_filter *filter,
                       struct sandbox_list *out, struct error *err)
{
    struct record_rows rows;
    struct query where;
    struct query count;
    struct record_listing listing = {
        .where = &where,
        .count = sandbox_counts_select(filter, &count) ? &count : NULL,
        .order = orders[filter->sort][filter->is_descending],
        .reverse = orders[filter->sort][!filter->is_descending],
        .page = &filter->page,
        .maximum = PAGE_MAX,
    };

    select_sandboxes(&where, filter);
    if (record_list_long(store, &sandbox_table, &listing, &rows, err) < 0)
        return -1;
    *out = (struct sandbox_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_sandbox_list_alive(struct store *store, struct sandbox_list *out, struct error *err)
{
    struct record_rows rows;
    struct query tail;

    query_init(&tail);
    query_where_that(&tail, "ended_at = 0");
    query_where_here(&tail, store);
    query_add(&tail, " ORDER BY created_at, id");
    if (record_list_all(store, &sandbox_table, &tail, &rows, err) < 0)
        return -1;
    *out = (struct sandbox_list){rows.rows, rows.count, rows.total, rows.next};
    return 0;
}

int store_sandbox_count(struct store *store, const struct owner *owner,
                        int64_t counts[SANDBOX_STATES], struct error *err)
{
    struct record_counts into = {&fields[sandbox_table.state], counts};
    struct query query;
    struct sql *sql = NULL;

    for (unsigned i = 0; i < SANDBOX_STATES; i++)
        counts[i] = 0;
    query_init(&query);
    query_add(&query, "SELECT state, count(*) FROM sandboxes WHERE ended_at = 0");
    query.has_where = true;
    query_where_owner(&query, owner);
    query_add(&query, " GROUP BY state UNION ALL SELECT class, CAST(sum(n) AS BIGINT) FROM "
                      "sandbox_counts WHERE class <> 'alive'");
    query_where_owner(&query, owner);
    query_add(&query, " GROUP BY class");
    if (store_connection(store, &sql, err) < 0)
        return -1;
    return sql_run(sql, query.text, query.args, query.n_args, record_take_count, &into, NULL, err);
}

/* Those whose time is over. */
#define PURGED                                                                                     \
    "SELECT id FROM sandboxes WHERE ended_at <> 0 "                                                \
    "AND ended_at < $1 - CASE WHEN keep_ms > 0 THEN keep_ms ELSE $3 END AND node = $4 "            \
    "AND NOT EXISTS (SELECT 1 FROM streams WHERE streams.sandbox_id = sandboxes.id) "              \
    "ORDER BY ended_at LIMIT $2"

static int purge_once(struct store_call *call, const struct sql_value *args, size_t n_args,
                      int64_t *removed, struct error *err)
{
    if (store_call_begin(call, STORE_FAST, err) < 0 ||
        sandbox_counts_remove(call, PURGED, args, n_args, err) < 0 ||
        store_run(call,
                  "DELETE FROM events WHERE sandbox_id IN (" PURGED ") AND serial <= (SELECT "
                  "forgotten FROM event_numbers)",
                  args, n_args, NULL, NULL, NULL, err) < 0 ||
        store_run(call, "DELETE FROM sandboxes WHERE id IN (" PURGED ")", args, n_args, NULL, NULL,
                  removed, err) < 0)
        return error_wrap(err, "forget old sandboxes");
    return store_call_done(call, err);
}

int store_sandbox_purge(struct store *store, int64_t now, int64_t keep_ms, int64_t limit,
                        int64_t *removed, struct error *err)
{
    struct sql_value args[] = {sql_number(now), sql_number(limit), sql_number(keep_ms),
                               sql_text(store_node(store))};
    autocall call = {.store = store};
    int result;

    do
        result = purge_once(&call, args, ARRAY_SIZE(args), removed, err);
    while (result < 0 && store_call_again(&call, err));
    return result;
}
