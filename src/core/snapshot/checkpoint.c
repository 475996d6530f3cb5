/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a sandbox; see checkpoint.h. */
#include "core/snapshot/checkpoint.h"

#include "base/log_ids.h"
#include "core/snapshot/checkpoint_info_impl.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/pause.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/monitor.h"
#include "core/layer/layers.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/pool.h"
#include "core/snapshot/snapshots.h"
#include "core/event/hub.h"
#include "core/account/ceiling.h"
#include "core/account/quota.h"

#include <stdio.h>
#include <string.h>

#define NAME_MAX_BYTES 128
#define GONE_BACK "the sandbox went back to a checkpoint"

static int check_name(const char *name, struct error *err)
{
    if (!name || !*name)
        return error_set(err, ERROR_INVALID, "a checkpoint needs a name");
    if (strlen(name) > NAME_MAX_BYTES)
        return error_set(err, ERROR_INVALID, "the name of a checkpoint has at most %d bytes",
                         NAME_MAX_BYTES);
    if (strchr(name, '/'))
        return error_set(err, ERROR_INVALID, "'/' cannot be in the name of a checkpoint");
    return 0;
}

static int refuse_paused(struct error *err)
{
    return error_refuse(err, ERROR_STATE, "sandbox", "the sandbox is paused; resume it first");
}

static int not_while_paused(struct sandbox *sandbox, struct error *err)
{
    return sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED)) ? refuse_paused(err) : 0;
}

static int find(struct snapshots *snapshots, const char *sandbox_id, const char *reference,
                struct checkpoint_record *out, struct error *err)
{
    if (store_checkpoint_get(snapshots->store, sandbox_id, reference, out, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "checkpoint", reference) : -1;
}

/* The name of the newest one, or "". */
static int find_parent(struct snapshots *snapshots, const char *sandbox_id,
                       struct checkpoint_list *all, const char **parent, struct error *err)
{
    if (store_checkpoint_list(snapshots->store, sandbox_id, all, err) < 0)
        return -1;
    *parent = all->count ? all->rows[all->count - 1].name : "";
    return 0;
}

static int refuse_name(const char *name, struct error *err)
{
    return error_refuse(err, ERROR_EXISTS, "checkpoint",
                        "the sandbox has a checkpoint '%s' already", name);
}

static int put_record(struct snapshots *snapshots, const struct checkpoint_record *record,
                      struct error *err)
{
    if (store_checkpoint_put(snapshots->store, record, err) == 0)
        return 0;
    if (!error_is(err, ERROR_CONFLICT))
        return -1;
    return error_refuse(err, ERROR_EXISTS, "checkpoint", "the sandbox has a checkpoint %s already",
                        record->name);
}

/* Under record_lock: when a sandbox ends its checkpoints are removed, and none may come after that. */
static int put_under_lock(struct snapshots *snapshots, struct sandbox *sandbox,
                          const struct checkpoint_record *record, struct error *err)
{
    struct event event = {.type = EVENT_CHECKPOINT, .reason = "created", .now = record->created_at};
    uint64_t bytes = (uint64_t)record->size_bytes;
    autotransaction together = {0};
    bool is_put;

    if (sandbox_is_over(sandbox))
        return sandbox_refuse_ending(err);
    event_fact(&event, "checkpoint", record->id);
    event_fact(&event, "name", record->name);
    do
        is_put = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                 layers_put(snapshots->layers, record->layer, bytes, record->id, err) == 0 &&
                 put_record(snapshots, record, err) == 0 && event_put(sandbox, &event, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int put(struct snapshots *snapshots, struct sandbox *sandbox,
               const struct checkpoint_record *record, struct error *err)
{
    autolock(&sandbox->record_lock);
    int result = put_under_lock(snapshots, sandbox, record, err);
    return result;
}

static const char *key_of(const struct sandbox *sandbox)
{
    return sandbox->record.key_id ? sandbox->record.key_id : "";
}

static int put_within_quota(struct snapshots *snapshots, const struct actor *actor,
                            struct sandbox *sandbox, const struct checkpoint_record *record,
                            struct error *err)
{
    struct quota_saving saving = {0};

    if (quota_save(snapshots->accounts, actor, key_of(sandbox), (uint64_t)record->size_bytes,
                   &saving, err) < 0)
        return -1;
    int result = put(snapshots, sandbox, record, err);
    quota_saved(snapshots->accounts, &saving);
    return result;
}

static int is_name_free(struct snapshots *snapshots, const char *sandbox_id, const char *name,
                        struct error *err)
{
    autocheckpoint other = {0};

    if (store_checkpoint_get(snapshots->store, sandbox_id, name, &other, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    return refuse_name(name, err);
}

static int check_count(struct snapshots *snapshots, const struct sandbox *sandbox,
                       struct error *err)
{
    const struct ceilings *ceilings = &snapshots->settings->ceilings;
    return ceiling_check(snapshots->store, KEPT_CHECKPOINTS, ceilings->total.checkpoints,
                         ceilings->organisation.checkpoints, &sandbox->record.owner, err);
}

int checkpoint_create(struct snapshots *snapshots, const struct actor *actor,
                      const char *sandbox_id, const char *name, struct checkpoint_info *out,
                      struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autocheckpoint made = {0};
    autocheckpoints all = {0};
    char id[ID_TEXT];
    char layer[LAYER_NAME];
    uint64_t bytes = 0;
    struct checkpoint_record record = {.id = id_make(id), .sandbox_id = sandbox_id, .name = name};

    if (check_name(name, err) < 0 ||
        lookup_sandbox(snapshots->sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        not_while_paused(sandbox, err) < 0 || is_name_free(snapshots, sandbox_id, name, err) < 0 ||
        check_count(snapshots, sandbox, err) < 0 ||
        quota_check_saved(snapshots->accounts, actor, key_of(sandbox), err) < 0 ||
        find_parent(snapshots, sandbox_id, &all, &record.parent, err) < 0 ||
        sandbox_ensure_box(sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    if (sandbox_save_files(sandbox, layers_name(layer), &bytes, err) < 0)
        return error_wrap(err, "keep the files of the sandbox");
    record.layer = layer;
    record.size_bytes = (int64_t)bytes;
    record.created_at = (int64_t)clock_wall_ms();
    if (put_within_quota(snapshots, actor, sandbox, &record, err) < 0) {
        struct error ignored = {0};
        (void)layer_remove(snapshots->volume, layer, &ignored); // else swept
        return -1;
    }
    if (find(snapshots, sandbox_id, id, &made, err) == 0) {
        checkpoint_info_take(out, &made);
        return 0;
    }
    return error_is(err, ERROR_NOT_FOUND) && sandbox_is_in(sandbox, SANDBOX_ENDING)
               ? sandbox_refuse_ending(err)
               : -1;
}

int checkpoint_list(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                    struct checkpoint_infos *out, struct error *err)
{
    autosandbox row = {0};
    autocheckpoints found = {0};

    if (lookup_record(snapshots->sandboxes, actor, sandbox_id, &row, err) < 0 ||
        store_checkpoint_list(snapshots->store, sandbox_id, &found, err) < 0)
        return -1;
    checkpoint_infos_take(out, &found);
    return 0;
}

int checkpoint_remove(struct snapshots *snapshots, const struct actor *actor,
                      const char *sandbox_id, const char *reference, struct error *err)
{
    autosandbox row = {0};
    autocheckpoint record = {0};
    autotransaction together = {0};
    bool is_gone;

    if (lookup_record(snapshots->sandboxes, actor, sandbox_id, &row, err) < 0 ||
        find(snapshots, sandbox_id, reference, &record, err) < 0)
        return -1;
    if (row.state == SANDBOX_PAUSED)
        return refuse_paused(err);
    struct event event = {
        .type = EVENT_CHECKPOINT, .reason = "deleted", .now = (int64_t)clock_wall_ms()};
    event_fact(&event, "checkpoint", record.id);
    event_fact(&event, "name", record.name);
    do
        is_gone = store_begin(snapshots->store, STORE_DURABLE, &together, err) == 0 &&
                  store_layer_release(snapshots->store, record.id, err) == 0 &&
                  store_checkpoint_remove(snapshots->store, record.id, err) == 0 &&
                  event_write(snapshots->store, sandbox_id, &row.owner, &event, err) == 0 &&
                  store_commit(&together, err) == 0;
    while (!is_gone && store_again(&together, err));
    if (!is_gone)
        return -1;
    layers_remove_unused_later(snapshots->layers);
    return 0;
}

/* Records what it will be, in one transaction, under record_lock. */
static int put_restored(struct sandbox *sandbox, const struct checkpoint_record *record,
                        const char *scratch, struct sandbox_record *next, struct error *err)
{
    struct event event = {
        .type = EVENT_CHECKPOINT, .reason = "restored", .now = (int64_t)clock_wall_ms()};
    const struct execution_ops *ops = sandbox->sandboxes->execution_ops;
    unsigned parts = SANDBOX_PART_LIVING | SANDBOX_PART_BOX;
    struct store *store = sandbox->sandboxes->store;
    autotransaction together = {0};
    bool is_put;

    event_fact(&event, "checkpoint", record->id);
    event_fact(&event, "name", record->name);
    sandbox_copy(sandbox, next);
    if (lifecycle_take(next, STEP_READY, NULL, event.now, err) < 0)
        return -1;
    free((char *)next->scratch);
    next->scratch = xstrdup(scratch);
    next->box_slot = SANDBOX_NO_SLOT;
    next->updated_at = next->active_at = event.now;
    do
        is_put = store_begin(store, STORE_DURABLE, &together, err) == 0 &&
                 ops->put_ends(sandbox, EXECUTION_CANCELLED, GONE_BACK, event.now, err) == 0 &&
                 store_sandbox_update(store, next, parts, SANDBOX_ALIVE, err) == 0 &&
                 event_put(sandbox, &event, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static int record_restored(struct sandbox *sandbox, const struct checkpoint_record *record,
                           const char *scratch, struct error *err)
{
    autosandbox next = {0};

    autolock(&sandbox->record_lock);
    int result = put_restored(sandbox, record, scratch, &next, err);
    if (result == 0) {
        sandbox->sandboxes->execution_ops->end_all(sandbox, EXECUTION_CANCELLED, GONE_BACK,
                                                   next.updated_at);
        sandbox_change(sandbox, &next);
    }
    return result;
}

static int pin_layer(struct layers_pin *pin, const struct checkpoint_record *record,
                     struct error *err)
{
    autofree char *packed = layers_on_top(record->layer, NULL);

    if (layers_pin(pin, packed, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "checkpoint", record->name) : -1;
}

/* From here on nobody else uses it until it is ready again, and no command is recorded that began before. */
static int begin_restore(struct sandbox *sandbox, struct error *err)
{
    autolock(&sandbox->record_lock);
    if (sandbox_take_step(sandbox, STEP_PAUSE, NULL, err) < 0)
        return -1;
    autolock(&sandbox->lock);
    sandbox->restore_count++;
    return 0;
}

/*
 * One commit leads from the old state to the new. Until then nothing of the old one is touched, but what runs stands still; from then on its
 * box and its files are nobody's, and a crash leaves them to the next start. The caller has the box_lock.
 */
static int exchange_files(struct sandbox *sandbox, const struct checkpoint_record *record,
                          const char *scratch, struct error *err)
{
    bool has_box = sandbox->box && !sandbox->is_box_over;
    struct error later = {0};

    if (sandbox_is_in(sandbox, SANDBOX_ENDING))
        return sandbox_refuse_ending(err);
    if (has_box && box_freeze(sandbox->box, err) < 0)
        return -1;
    if (record_restored(sandbox, record, scratch, err) < 0) {
        if (has_box)
            (void)box_thaw(sandbox->box, &later);
        return -1;
    }
    ending_exchange_files(sandbox, scratch);
    if (sandbox_launch_again(sandbox, &later) < 0)
        log_warn("a sandbox that went back to a checkpoint is started when it is used",
                 F_SANDBOX(sandbox->id), F("error", (const char *)later.text));
    return 0;
}

static int exchange_held(struct sandbox *sandbox, const struct checkpoint_record *record,
                         const char *scratch, struct error *err)
{
    autobox held = sandbox_hold_box(sandbox);

    return exchange_files(sandbox, record, scratch, err);
}

static int restore_files(struct snapshots *snapshots, struct sandbox *sandbox,
                         const struct checkpoint_record *record, struct error *err)
{
    const struct volume_limits limits = {.bytes = (uint64_t)sandbox->record.limits.disk_bytes};
    struct volume *volume = snapshots->volume;
    struct error ignored = {0};
    char id[ID_TEXT];
    char scratch[80];

    (void)snprintf(scratch, sizeof scratch, POOL_SCRATCH "-%s", id_make(id));
    if (layer_restore(volume, record->layer, (uint64_t)record->size_bytes, scratch, &limits, err) <
        0)
        return layers_explain_no_room(err);
    if (exchange_held(sandbox, record, scratch, err) < 0) {
        (void)volume_scratch_remove(volume, scratch, &ignored); // else swept
        return -1;
    }
    hub_announce(sandbox->sandboxes->hub, sandbox->id);
    return 0;
}

int checkpoint_restore(struct snapshots *snapshots, const struct actor *actor,
                       const char *sandbox_id, const char *reference, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autocheckpoint record = {0};
    autopin pin = {.layers = snapshots->layers}; // it may be removed meanwhile

    if (lookup_sandbox(snapshots->sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        not_while_paused(sandbox, err) < 0 ||
        find(snapshots, sandbox_id, reference, &record, err) < 0 ||
        pin_layer(&pin, &record, err) < 0)
        return -1;
    if (sandbox->record.mode == SANDBOX_ONE_SHOT)
        return error_set(err, ERROR_CONFLICT, "a one-shot sandbox cannot go back");
    if (begin_restore(sandbox, err) < 0)
        return -1;
    if (restore_files(snapshots, sandbox, &record, err) == 0)
        return 0;
    sandbox_pass_back(sandbox);
    return error_wrap(err, "go back to checkpoint '%s'", record.name);
}
