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

/* Of all, and of organisation $2; $1 is enough. */
static const char *const count_queries[][2] = {
    [KEPT_STREAMS] =
        {"SELECT count(*) FROM (SELECT 1 FROM streams WHERE kind = 'user' LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM streams WHERE kind = 'user' AND organisation = $2 "
         "LIMIT $1) AS found"},
    [KEPT_SNAPSHOTS] =
        {"SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE deleted_at = 0 AND is_step = 0 "
         "LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM snapshots WHERE deleted_at = 0 AND is_step = 0 AND "
         "organisation = $2 LIMIT $1) AS found"},
    [KEPT_CHECKPOINTS] =
        {"SELECT count(*) FROM (SELECT 1 FROM checkpoints LIMIT $1) AS found",
         "SELECT count(*) FROM (SELECT 1 FROM sandboxes, checkpoints WHERE ended_at = 0 AND "
         "organisation = $2 AND sandbox_id = sandboxes.id LIMIT $1) AS found"},
};

int store_count_kept(struct store *store, enum store_kept kind, const char *organisation,
                     int64_t enough, int64_t *out, struct error *err)
{
    struct sql_value args[] = {sql_number(enough), sql_text(organisation)};
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 ||
        store_run(&call, count_queries[kind][organisation != NULL], args, organisation ? 2 : 1,
                  take_count, out, NULL, err) < 0)
        return error_wrap(err, "count what is kept");
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
