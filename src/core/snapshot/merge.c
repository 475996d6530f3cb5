/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps stacks of layers short; see merge.h. */
#include "core/snapshot/merge.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "loop/background.h"
#include "base/log_ids.h"
#include "core/layer/layers.h"
#include "store/chains.h"
#include "store/snapshots.h"
#include "core/snapshot/snapshots.h"

#include <stdio.h>

#define MOST_OF_A_BOX 48 // saved layers that every kernel takes, beside a runtime's own
#define TRIES 3          // against others who change the same

struct merging {
    struct snapshots *snapshots;
    const atomic_bool *is_cancelled;
    struct strings stack;     // of the snapshot
    const char *const *names; // the lowest of it, that become one
    char *merged_of;          // the same, packed
};

static void merging_clear(struct merging *merging)
{
    strings_clear(&merging->stack);
    free(merging->merged_of);
}

/* 1: this one's stack is too long; 0: it is not, or the snapshot is gone. */
static int look_at(struct merging *merging, const char *id, struct error *err)
{
    autosnapshot record = {0};

    if (store_snapshot_get(merging->snapshots->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    if (record.state != SNAPSHOT_READY)
        return 0;
    strings_unpack(record.layers, &merging->stack);
    if (merging->stack.count <= LAYER_MERGE_AT)
        return 0;
    merging->names =
        (const char *const *)merging->stack.items + merging->stack.count - LAYER_MERGE_AT;
    merging->merged_of = strings_pack(merging->names);
    return 1;
}

/* One transaction: all snapshots on these layers stand on the one instead, or none does. *n_changed 0: there is none any more. */
static int put_in_place(struct merging *merging, const struct layer_record *layer, bool is_new,
                        int64_t *n_changed, struct error *err)
{
    struct store *store = merging->snapshots->store;
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(store, STORE_DURABLE, &together, err) == 0 &&
                 (!is_new || store_layer_put(store, layer, err) == 0) &&
                 store_chain_replace(store, layer->name, merging->merged_of, merging->names,
                                     n_changed, err) == 0 &&
                 (*n_changed == 0 || store_commit(&together, err) == 0);
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* A new layer has no row until it has users, so a crash leaves nothing that the next start does not sweep. */
static int make_layer(struct merging *merging, struct error *err)
{
    struct volume *volume = merging->snapshots->volume;
    struct error ignored = {0};
    char name[LAYER_NAME];
    uint64_t bytes = 0;
    int64_t n_changed = 0;

    if (layer_merge(volume, merging->names, LAYER_MERGE_AT, layers_name(name), &bytes,
                    merging->is_cancelled, err) < 0)
        return -1;
    const struct layer_record layer = {.name = name,
                                       .merged_of = merging->merged_of,
                                       .size_bytes = (int64_t)bytes,
                                       .created_at = (int64_t)clock_wall_ms()};
    int result = put_in_place(merging, &layer, true, &n_changed, err);
    if (result < 0 || n_changed == 0)
        (void)layer_remove(volume, name, &ignored); // else swept
    return result;
}

/* A snapshot of a sandbox that was started before its layers were merged: the merged one is there. */
static int use_or_make(struct merging *merging, struct error *err)
{
    autolayer layer = {0};
    int64_t n_changed = 0;

    if (store_chain_find(merging->snapshots->store, merging->merged_of, &layer, err) == 0)
        return put_in_place(merging, &layer, false, &n_changed, err);
    return error_is(err, ERROR_NOT_FOUND) ? make_layer(merging, err) : -1;
}

/* 1: shortened, perhaps not enough; 0: it is short, or gone. The layers are held, so that whoever deletes the snapshot meanwhile leaves them. */
static int merge_once(struct snapshots *snapshots, const char *id, const atomic_bool *is_cancelled,
                      struct error *err)
{
    __attribute__((cleanup(merging_clear))) struct merging merging = {.snapshots = snapshots,
                                                                      .is_cancelled = is_cancelled};
    autopin pin = {.layers = snapshots->layers};

    int result = look_at(&merging, id, err);
    if (result <= 0)
        return result;
    if (layers_pin(&pin, merging.merged_of, err) < 0 || use_or_make(&merging, err) < 0)
        return -1;
    return 1;
}

/* What others changed meanwhile is looked at anew. */
static bool is_worth_another_try(const struct error *err)
{
    return error_is(err, ERROR_CONFLICT) || error_is(err, ERROR_NOT_FOUND);
}

static int merge_all(struct snapshots *snapshots, const char *id, const atomic_bool *is_cancelled,
                     struct error *err)
{
    unsigned failed = 0;

    for (;;) {
        int result = merge_once(snapshots, id, is_cancelled, err);
        if (result == 0)
            return 0;
        if (result < 0 && (!is_worth_another_try(err) || ++failed == TRIES))
            return -1;
    }
}

void merge_snapshot(void *owner, const char *id)
{
    struct snapshots *snapshots = owner;
    const atomic_bool *is_stopping = background_is_stopping(snapshots->background);
    struct error err = {0};

    if (merge_all(snapshots, id, is_stopping, &err) < 0 && !*is_stopping)
        log_warn("a long chain of snapshots could not be merged; sandboxes from it start slower",
                 F_SNAPSHOT(id), F("error", (const char *)err.text));
}

static bool has_more(const char *layers, size_t maximum)
{
    autostrings stack = {0};

    strings_unpack(layers, &stack);
    return stack.count > maximum;
}

void merge_later(struct snapshots *snapshots, const char *id, const char *layers)
{
    if (has_more(layers, LAYER_MERGE_AT))
        background_run(snapshots->background, merge_snapshot, snapshots, id);
}

int merge_for_start(struct snapshots *snapshots, const char *id, const char *layers,
                    struct error *err)
{
    return has_more(layers, MOST_OF_A_BOX) ? merge_all(snapshots, id, NULL, err) : 0;
}

/* One layer of those that are pinned, with a row of its own. */
static int make_pinned(struct merging *merging, struct layers_pin *pin, char name[LAYER_NAME],
                       struct error *err)
{
    struct snapshots *snapshots = merging->snapshots;
    struct error ignored = {0};
    autotransaction together = {0};
    uint64_t bytes = 0;
    bool is_put;

    if (layer_merge(snapshots->volume, merging->names, LAYER_MERGE_AT, layers_name(name), &bytes,
                    NULL, err) < 0)
        return -1;
    const struct layer_record layer = {.name = name,
                                       .merged_of = merging->merged_of,
                                       .size_bytes = (int64_t)bytes,
                                       .created_at = (int64_t)clock_wall_ms()};
    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 store_layer_put(snapshots->store, &layer, err) == 0 &&
                 store_layer_use(snapshots->store, name, pin->user, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put)
        (void)layer_remove(snapshots->volume, name, &ignored); // else swept
    return is_put ? 0 : -1;
}

/* The one there is, if it can be pinned before somebody removes it. */
static int find_pinned(struct merging *merging, struct layers_pin *pin, char name[LAYER_NAME],
                       struct error *err)
{
    autolayer layer = {0};

    if (store_chain_find(merging->snapshots->store, merging->merged_of, &layer, err) < 0)
        return -1;
    const char *one[] = {layer.name, NULL};
    autofree char *packed = strings_pack(one);
    (void)snprintf(name, LAYER_NAME, "%s", layer.name);
    return layers_pin(pin, packed, err);
}

int merge_stack(struct snapshots *snapshots, const char *layers, struct layers_pin *pin, char **out,
                struct error *err)
{
    __attribute__((cleanup(merging_clear))) struct merging merging = {.snapshots = snapshots};
    char name[LAYER_NAME];

    strings_unpack(layers, &merging.stack);
    if (merging.stack.count <= MOST_OF_A_BOX) {
        *out = xstrdup(layers);
        return 0;
    }
    size_t kept = merging.stack.count - LAYER_MERGE_AT;
    merging.names = (const char *const *)merging.stack.items + kept;
    merging.merged_of = strings_pack(merging.names);
    if (find_pinned(&merging, pin, name, err) < 0 &&
        (!error_is(err, ERROR_NOT_FOUND) || make_pinned(&merging, pin, name, err) < 0))
        return -1;
    autostrings shorter = {0};
    for (size_t i = 0; i < kept; i++)
        strings_add(&shorter, merging.stack.items[i]);
    strings_add(&shorter, name);
    *out = strings_pack((const char *const *)shorter.items);
    return 0;
}
