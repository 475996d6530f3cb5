/* SPDX-License-Identifier: Apache-2.0 */
/* Counts and sums over all owners; see space_counts.h. */
#include "store/space_counts.h"

#include "store/store_impl.h"

static int take_counts(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct store_space *space = data;

    (void)n_columns;
    (void)err;
    space->snapshots = row[0].number;
    space->checkpoints = row[1].number;
    space->sandboxes = row[2].number;
    space->streams = row[3].number;
    space->stream_bytes = row[4].number;
    return 0;
}

static int take_need(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    struct store_space *space = data;

    (void)n_columns;
    (void)err;
    space->layers[row[0].number] = row[1].number;
    space->layer_bytes[row[0].number] = row[2].number;
    return 0;
}

static int take_count(void *data, const struct sql_value *row, size_t n_columns, struct error *err)
{
    (void)n_columns;
    (void)err;
    *(int64_t *)data = row[0].number;
    return 0;
}

/* Of all, of organisation $2, and of its member $3; $1 is enough. */
static const char *const count_queries[][3] = {
    [KEPT_STREAMS] =
        {"SELECT count(*) FROM (SELECT 1 FROM streams WHERE kind = 'user' LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM streams WHERE kind = 'user' AND organisation = $2 "
         "LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM streams WHERE kind = 'user' AND organisation = $2 "
         "AND member = $3 LIMIT $1) AS found"},
    [KEPT_SNAPSHOTS] =
        {"SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE deleted_at = 0 AND is_step = 0 "
         "LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE deleted_at = 0 AND is_step = 0 AND "
         "organisation = $2 LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE deleted_at = 0 AND is_step = 0 AND "
         "organisation = $2 AND member = $3 LIMIT $1) AS found"},
    [KEPT_CHECKPOINTS] =
        {"SELECT count(*) FROM (SELECT 1 FROM checkpoints LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM sandboxes, checkpoints WHERE ended_at = 0 AND "
         "organisation = $2 AND sandbox_id = sandboxes.id LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM sandboxes, checkpoints WHERE ended_at = 0 AND "
         "organisation = $2 AND member = $3 AND sandbox_id = sandboxes.id LIMIT $1) AS found"},
    [KEPT_BUILDS] =
        {"SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE state = 'building' LIMIT $1) AS "
         "found",
         "SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE state = 'building' AND organisation "
         "= $2 LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE state = 'building' AND organisation "
         "= $2 AND coalesce(member, '') = $3 LIMIT $1) AS found"},
};

int store_count_kept(struct store *store, enum store_kept kind, const char *organisation,
                     const char *member, int64_t enough, int64_t *out, struct error *err)
{
    struct sql_value args[] = {sql_number(enough), sql_text(organisation), sql_text(member)};
    size_t whose = organisation && member ? 2 : organisation ? 1 : 0;
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 || store_run(&call, count_queries[kind][whose], args,
                                                     whose + 1, take_count, out, NULL, err) < 0)
        return error_wrap(err, "count what is kept");
    return 0;
}

int store_saved_bytes(struct store *store, const char *organisation, const char *key_id,
                      int64_t *out, struct error *err)
{
    struct sql_value args[] = {sql_text(organisation), sql_text(key_id)};
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 ||
        store_run(
            &call,
            key_id
                ? "SELECT CAST(coalesce(sum(size_bytes), 0) AS BIGINT) FROM layers WHERE name IN "
                  "(SELECT mine.layer FROM snapshots, layer_uses AS mine WHERE organisation = $1 "
                  "AND key_id = $2 AND deleted_at = 0 AND is_step = 0 AND mine.user_id = "
                  "snapshots.id AND NOT EXISTS (SELECT 1 FROM layer_uses AS other, snapshots AS "
                  "older WHERE other.layer = mine.layer AND older.id = other.user_id AND "
                  "older.deleted_at = 0 AND older.is_step = 0 AND older.created_at < "
                  "snapshots.created_at AND coalesce(older.key_id, '') <> $2) "
                  "UNION SELECT layer_uses.layer FROM sandboxes, checkpoints, layer_uses WHERE "
                  "ended_at = 0 "
                  "AND organisation = $1 AND key_id = $2 AND sandbox_id = sandboxes.id AND user_id "
                  "= checkpoints.id)"
                : "SELECT CAST(coalesce(sum(size_bytes), 0) AS BIGINT) FROM layers WHERE name IN "
                  "(SELECT layer FROM snapshots, layer_uses WHERE organisation = $1 AND deleted_at "
                  "= 0 AND is_step = 0 AND user_id = snapshots.id "
                  "UNION SELECT layer_uses.layer FROM sandboxes, checkpoints, layer_uses WHERE "
                  "ended_at = 0 "
                  "AND organisation = $1 AND sandbox_id = sandboxes.id AND user_id = "
                  "checkpoints.id)",
            args, key_id ? 2 : 1, take_count, out, NULL, err) < 0)
        return error_wrap(err, "add up what snapshots take");
    return 0;
}

int store_space_get(struct store *store, struct store_space *out, struct error *err)
{
    struct sql_value node = sql_text(store_node(store));
    struct store_space found = {0};
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 ||
        store_run(
            &call,
            "SELECT (SELECT count(*) FROM snapshots WHERE state = 'ready' AND node = $1), "
            "(SELECT count(*) FROM checkpoints WHERE sandbox_id IN (SELECT id FROM sandboxes "
            "WHERE node = $1)), "
            "(SELECT count(*) FROM sandboxes WHERE ended_at = 0 AND node = $1), "
            "(SELECT count(*) FROM streams WHERE node = $1), "
            "(SELECT CAST(coalesce(sum(size_bytes - dropped_bytes), 0) AS BIGINT) FROM streams "
            "WHERE node = $1)",
            &node, 1, take_counts, &found, NULL, err) < 0 ||
        store_run(&call,
                  "SELECT need, count(*), CAST(sum(size_bytes) AS BIGINT) FROM (SELECT size_bytes, "
                  "CASE WHEN EXISTS (SELECT 1 FROM layer_uses, snapshots WHERE layer_uses.layer = "
                  "layers.name AND snapshots.id = user_id) THEN 0 "
                  "WHEN EXISTS (SELECT 1 FROM layer_uses, checkpoints WHERE layer_uses.layer = "
                  "layers.name AND checkpoints.id = user_id) THEN 1 "
                  "WHEN EXISTS (SELECT 1 FROM layer_uses WHERE layer = layers.name) THEN 2 "
                  "ELSE 3 END AS need FROM layers WHERE node = $1) AS needs GROUP BY need",
                  &node, 1, take_need, &found, NULL, err) < 0)
        return error_wrap(err, "add up what is kept");
    *out = found;
    return 0;
}
