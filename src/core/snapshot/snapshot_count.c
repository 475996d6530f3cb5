/* SPDX-License-Identifier: Apache-2.0 */
/* How many files are in a snapshot, and how large they are: counted in the background, or by whoever cannot wait; see snapshot_impl.h. */
#include "base/clock.h"
#include "base/log.h"
#include "loop/background.h"
#include "core/sandbox/lookup.h"
#include "base/log_ids.h"
#include "base/mem.h"
#include "core/sandbox/pool.h"
#include "core/snapshot/merge.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/layer/stack.h"

#include "store/chains.h"

#include <stdlib.h>
#include <sys/stat.h>

#define QUICK_ENTRIES 250 // looked at before a snapshot is there, a few microseconds each

static int put_pin(struct snapshots *snapshots, struct snapshot_record *record, const char *user,
                   struct store_transaction *together, struct error *err)
{
    autosnapshot now = {0};

    if (store_begin(snapshots->store, STORE_FAST, together, err) < 0)
        return -1;
    if (store_snapshot_get(snapshots->store, record->id, &now, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "snapshot", record->id) : -1;
    if (now.state != SNAPSHOT_READY)
        return error_missing(err, "snapshot", record->id);
    if (layers_use(snapshots->layers, now.layers, user, err) < 0 || store_commit(together, err) < 0)
        return -1;
    const char *before = record->layers;
    record->layers = now.layers;
    now.layers = before;
    return 0;
}

int snapshot_pin(struct snapshots *snapshots, struct snapshot_record *record,
                 struct layers_pin *pin, struct error *err)
{
    autotransaction together = {0};
    int result;

    if (!pin->user[0])
        (void)id_make(pin->user);
    do
        result = put_pin(snapshots, record, pin->user, &together, err);
    while (result < 0 && store_again(&together, err));
    return result;
}

int snapshot_walk(struct snapshots *snapshots, const struct snapshot_record *record,
                  const struct layer_diff_options *options, layer_on_change on_change, void *data,
                  struct error *err)
{
    struct snapshot_record now = {.id = record->id};
    autopin pin = {.layers = snapshots->layers};
    autostack stack = {0};

    if (snapshot_pin(snapshots, &now, &pin, err) < 0)
        return -1;
    autofree char *additions = additions_of(record->dependencies, record->packages);
    int result =
        stack_open(snapshots->runtimes, record->runtime, additions, now.layers, &stack, err);
    free((char *)now.layers);
    if (result < 0)
        return -1;
    return layer_diff(snapshots->volume, &stack.base, &stack.full, options, on_change, data, NULL,
                      err);
}

struct totals {
    int64_t files;
    int64_t bytes; // on the disk
    int64_t left;  // entries that may be looked at
};

static int count_one(void *data, const struct layer_change *change, struct error *err)
{
    struct totals *totals = data;

    if (totals->left-- == 0)
        return error_set(err, ERROR_TIMEOUT, "there are too many files to be counted at once");
    if (change->kind == LAYER_REMOVED || !S_ISREG(change->item.mode))
        return 0;
    totals->files++;
    if (!change->item.is_hard_link)
        totals->bytes += (int64_t)change->disk_bytes;
    return 0;
}

void snapshot_count_quickly(struct snapshots *snapshots, struct snapshot_record *record)
{
    struct totals totals = {.left = QUICK_ENTRIES};
    const struct layer_diff_options options = {.is_unopened = true, .max_names = QUICK_ENTRIES};
    struct error ignored = {0};
    autostack stack = {0};

    autofree char *additions = additions_of(record->dependencies, record->packages);
    if (stack_open(snapshots->runtimes, record->runtime, additions, record->layers, &stack,
                   &ignored) < 0 ||
        layer_diff(snapshots->volume, &stack.base, &stack.full, &options, count_one, &totals, NULL,
                   &ignored) < 0)
        return;
    record->file_count = totals.files;
    record->size_bytes = totals.bytes;
}

static int count(struct snapshots *snapshots, struct snapshot_record *record,
                 const atomic_bool *is_cancelled, struct error *err)
{
    const struct layer_diff_options options = {.is_unopened = true, .is_cancelled = is_cancelled};
    struct totals totals = {.left = INT64_MAX};

    if (snapshot_walk(snapshots, record, &options, count_one, &totals, err) < 0)
        return error_is(err, ERROR_NOT_FOUND)
                   ? -1
                   : error_wrap(err, "count the files of snapshot '%s'", record->id);
    record->file_count = totals.files;
    // The quota told more: with simple quotas a sandbox pays for what older layers of its own still hold.
    record->size_bytes = totals.bytes;
    record->updated_at = (int64_t)clock_wall_ms();
    return store_snapshot_update(snapshots->store, record, SNAPSHOT_PART_COUNT,
                                 snapshot_in(SNAPSHOT_READY), err);
}

int snapshot_count(struct snapshots *snapshots, struct snapshot_record *record, struct error *err)
{
    return count(snapshots, record, NULL, err);
}

static void count_later(void *owner, const char *id)
{
    struct snapshots *snapshots = owner;
    const atomic_bool *is_stopping = background_is_stopping(snapshots->background);
    autosnapshot record = {0};
    struct error err = {0};

    if (store_snapshot_get(snapshots->store, id, &record, &err) == 0 &&
        record.state == SNAPSHOT_READY && record.file_count == SNAPSHOT_NOT_COUNTED &&
        count(snapshots, &record, is_stopping, &err) < 0 && !error_is(&err, ERROR_CONFLICT) &&
        !error_is(&err, ERROR_NOT_FOUND) && !*is_stopping)
        log_warn("a snapshot's files could not be counted; whoever asks tries again",
                 F_SNAPSHOT(record.id), F("error", (const char *)err.text));
}

void snapshot_count_all(struct snapshots *snapshots, const struct owner *owner)
{
    autochains uncounted = {0};
    struct error ignored = {0};

    if (store_chain_list_uncounted(snapshots->store, owner->organisation, &uncounted, &ignored) < 0)
        return;
    for (size_t i = 0; i < uncounted.count; i++) {
        autosnapshot record = {0};
        if (store_snapshot_get(snapshots->store, uncounted.ids[i], &record, &ignored) == 0)
            (void)count(snapshots, &record, NULL,
                        &ignored); // deleted meanwhile, or whoever asks is told
    }
}

void snapshot_finish_later(struct snapshots *snapshots, const struct snapshot_record *record)
{
    if (record->file_count == SNAPSHOT_NOT_COUNTED)
        background_run(snapshots->background, count_later, snapshots, record->id);
    merge_later(snapshots, record->id, record->layers);
}

static void run_all(struct snapshots *snapshots, background_fn fn, const struct chain_list *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        background_run(snapshots->background, fn, snapshots, ids->ids[i]);
}

static void find_unfinished(void *owner, const char *id)
{
    struct snapshots *snapshots = owner;
    autochains uncounted = {0};
    autochains too_long = {0};
    struct error err = {0};

    (void)id;
    if (store_chain_list_long(snapshots->store, LAYER_MERGE_AT, &too_long, &err) < 0 ||
        store_chain_list_uncounted(snapshots->store, NULL, &uncounted, &err) < 0)
        log_warn("what is left to do for snapshots could not be found",
                 F("error", (const char *)err.text));
    run_all(snapshots, count_later, &uncounted);
    run_all(snapshots, merge_snapshot, &too_long);
}

void snapshot_resume_work(struct snapshots *snapshots)
{
    background_run(snapshots->background, find_unfinished, snapshots, "");
}
