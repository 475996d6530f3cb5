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

int store_space_get(struct store *store, struct store_space *out, struct error *err)
{
    struct sql_value node = sql_text(store_node(store));
    struct store_space found = {0};
    autocall call = {.store = store};

    if (store_call_read(&call, err) < 0 ||
        store_run(&call,
                  "SELECT (SELECT count(*) FROM snapshots WHERE state = 'ready' AND node = $1), "
                  "(SELECT count(*) FROM checkpoints WHERE sandbox_id IN (SELECT id FROM sandboxes "
                  "WHERE node = $1)), "
                  "(SELECT count(*) FROM sandboxes WHERE ended_at = 0 AND node = $1), "
                  "(SELECT count(*) FROM streams WHERE node = $1), "
                  "(SELECT CAST(coalesce(sum(size_bytes), 0) AS BIGINT) FROM streams WHERE node = "
                  "$1)",
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
