/* SPDX-License-Identifier: Apache-2.0 */
/* How many files are in a snapshot, and how large they are: counted in the background, or by whoever cannot wait; see snapshot_impl.h. */
#include "base/clock.h"
#include "base/log.h"
#include "loop/background.h"
#include "core/sandbox/lookup.h"
#include "model/log_ids.h"
#include "core/snapshot/merge.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/layer/stack.h"

#include "store/chains.h"
#include "core/core_impl.h"

#include <stdlib.h>
#include <sys/stat.h>

#define QUICK_ENTRIES 250 // looked at before a snapshot is there, a few microseconds each

int snapshot_hold(struct core *core, struct snapshot_record *record, struct layers_hold *hold,
                  struct error *err)
{
    autosnapshot now = {0};
    autotransaction together = {0};

    if (!hold->user[0])
        (void)id_make(hold->user);
    if (store_begin(core->store, STORE_FAST, &together, err) < 0)
        return -1;
    if (store_snapshot_get(core->store, record->id, &now, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "snapshot", record->id) : -1;
    if (now.state != SNAPSHOT_READY)
        return error_missing(err, "snapshot", record->id);
    if (layers_use(core, now.layers, hold->user, err) < 0 || store_commit(&together, err) < 0)
        return -1;
    const char *before = record->layers;
    record->layers = now.layers;
    now.layers = before;
    return 0;
}

int snapshot_walk(struct core *core, const struct snapshot_record *record,
                  const struct layer_diff_options *options, layer_on_change on_change, void *data,
                  struct error *err)
{
    struct snapshot_record now = {.id = record->id};
    autohold hold = {.core = core};
    autostack stack = {0};

    if (snapshot_hold(core, &now, &hold, err) < 0)
        return -1;
    int result = stack_open(core, record->runtime, now.layers, &stack, err);
    free((char *)now.layers);
    if (result < 0)
        return -1;
    return layer_diff(engine_volume(core->engine), &stack.base, &stack.full, options, on_change,
                      data, NULL, err);
}

struct tally {
    int64_t files;
    int64_t bytes; // on the disk
    int64_t left;  // entries that may be looked at
};

static int count_one(void *data, const struct layer_change *change, struct error *err)
{
    struct tally *tally = data;

    if (tally->left-- == 0)
        return error_set(err, ERROR_TIMEOUT, "there are too many files to be counted at once");
    if (change->kind == LAYER_REMOVED || !S_ISREG(change->item.mode))
        return 0;
    tally->files++;
    if (!change->item.is_hard_link)
        tally->bytes += (int64_t)change->disk_bytes;
    return 0;
}

void snapshot_count_quickly(struct core *core, struct snapshot_record *record)
{
    struct tally tally = {.left = QUICK_ENTRIES};
    const struct layer_diff_options options = {.is_unopened = true, .max_names = QUICK_ENTRIES};
    struct error ignored = {0};
    autostack stack = {0};

    if (stack_open(core, record->runtime, record->layers, &stack, &ignored) < 0 ||
        layer_diff(engine_volume(core->engine), &stack.base, &stack.full, &options, count_one,
                   &tally, NULL, &ignored) < 0)
        return;
    record->file_count = tally.files;
    record->size_bytes = tally.bytes;
}

static int count(struct core *core, struct snapshot_record *record, const atomic_bool *is_cancelled,
                 struct error *err)
{
    const struct layer_diff_options options = {.is_unopened = true, .is_cancelled = is_cancelled};
    struct tally tally = {.left = INT64_MAX};

    if (snapshot_walk(core, record, &options, count_one, &tally, err) < 0)
        return error_is(err, ERROR_NOT_FOUND)
                   ? -1
                   : error_wrap(err, "count the files of snapshot '%s'", record->id);
    record->file_count = tally.files;
    // The quota told more: with simple quotas a sandbox pays for what older layers of its own still hold.
    record->size_bytes = tally.bytes;
    record->updated_at = (int64_t)clock_wall_ms();
    return store_snapshot_update(core->store, record, SNAPSHOT_PART_COUNT,
                                 snapshot_in(SNAPSHOT_READY), err);
}

int snapshot_count(struct core *core, struct snapshot_record *record, struct error *err)
{
    return count(core, record, NULL, err);
}

void snapshot_count_later(void *owner, const char *id)
{
    struct core *core = owner;
    const atomic_bool *is_stopping = background_is_stopping(core->background);
    autosnapshot record = {0};
    struct error err = {0};

    if (store_snapshot_get(core->store, id, &record, &err) == 0 && record.state == SNAPSHOT_READY &&
        record.file_count == SNAPSHOT_NOT_COUNTED && count(core, &record, is_stopping, &err) < 0 &&
        !error_is(&err, ERROR_CONFLICT) && !error_is(&err, ERROR_NOT_FOUND) && !*is_stopping)
        log_warn("a snapshot's files could not be counted; whoever asks tries again",
                 F_SNAPSHOT(record.id), F("error", (const char *)err.text));
}

void snapshot_count_all(struct core *core, const struct owner *owner)
{
    autochains uncounted = {0};
    struct error ignored = {0};

    if (store_chain_list_uncounted(core->store, owner->organisation, &uncounted, &ignored) < 0)
        return;
    for (size_t i = 0; i < uncounted.count; i++) {
        autosnapshot record = {0};
        if (store_snapshot_get(core->store, uncounted.ids[i], &record, &ignored) == 0)
            (void)count(core, &record, NULL,
                        &ignored); // deleted meanwhile, or whoever asks is told
    }
}

void snapshot_look_after(struct core *core, const struct snapshot_record *record)
{
    if (record->file_count == SNAPSHOT_NOT_COUNTED)
        background_run(core->background, snapshot_count_later, core, record->id);
    merge_look_after(core, record->id, record->layers);
}

static void run_all(struct core *core, background_fn fn, const struct chain_list *ids)
{
    for (size_t i = 0; i < ids->count; i++)
        background_run(core->background, fn, core, ids->ids[i]);
}

static void find_unfinished(void *owner, const char *id)
{
    struct core *core = owner;
    autochains uncounted = {0};
    autochains too_long = {0};
    struct error err = {0};

    (void)id;
    if (store_chain_list_long(core->store, LAYER_MERGE_AT, &too_long, &err) < 0 ||
        store_chain_list_uncounted(core->store, NULL, &uncounted, &err) < 0)
        log_warn("what is left to do for snapshots could not be found",
                 F("error", (const char *)err.text));
    run_all(core, snapshot_count_later, &uncounted);
    run_all(core, merge_snapshot, &too_long);
}

void snapshot_resume_work(struct core *core)
{
    background_run(core->background, find_unfinished, core, "");
}
