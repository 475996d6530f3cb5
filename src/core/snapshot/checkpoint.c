/* SPDX-License-Identifier: Apache-2.0 */
/* Checkpoints of a sandbox; see checkpoint.h. */
#include "core/snapshot/checkpoint.h"

#include "model/log_ids.h"
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
#include "core/core_impl.h"

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

static int find(struct core *core, const char *sandbox_id, const char *reference,
                struct checkpoint_record *out, struct error *err)
{
    if (store_checkpoint_get(core->store, sandbox_id, reference, out, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "checkpoint", reference) : -1;
}

/* The name of the newest one, or "". */
static int find_parent(struct core *core, const char *sandbox_id, struct checkpoint_list *all,
                       const char **parent, struct error *err)
{
    if (store_checkpoint_list(core->store, sandbox_id, all, err) < 0)
        return -1;
    *parent = all->count ? all->rows[all->count - 1].name : "";
    return 0;
}

/* In turn: when a sandbox ends, its checkpoints go, and none comes behind that. */
static int put_in_turn(struct sandbox *sandbox, const struct checkpoint_record *record,
                       struct error *err)
{
    struct event event = {.type = EVENT_CHECKPOINT, .reason = "created", .now = record->created_at};
    autotransaction together = {0};

    if (sandbox_is_over(sandbox))
        return sandbox_refuse_ending(err);
    event_fact(&event, "checkpoint", record->id);
    event_fact(&event, "name", record->name);
    if (store_begin(sandbox->sandboxes->store, STORE_DURABLE, &together, err) < 0 ||
        layers_put(sandbox->sandboxes->core, record->layer, (uint64_t)record->size_bytes,
                   record->id, err) < 0)
        return -1;
    if (store_checkpoint_put(sandbox->sandboxes->store, record, err) < 0) {
        if (error_is(err, ERROR_CONFLICT))
            return error_refuse(err, ERROR_EXISTS, "checkpoint",
                                "the sandbox has a checkpoint '%s' already", record->name);
    }
    if (event_put(sandbox, &event, err) < 0)
        return -1;
    return store_commit(&together, err);
}

static int put(struct sandbox *sandbox, const struct checkpoint_record *record, struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->record_lock);
    int result = put_in_turn(sandbox, record, err);
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    return result;
}

static int is_name_free(struct core *core, const char *sandbox_id, const char *name,
                        struct error *err)
{
    autocheckpoint other = {0};

    if (store_checkpoint_get(core->store, sandbox_id, name, &other, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    return error_refuse(err, ERROR_EXISTS, "checkpoint",
                        "the sandbox has a checkpoint '%s' already", name);
}

int checkpoint_create(struct core *core, const struct actor *actor, const char *sandbox_id,
                      const char *name, struct checkpoint_info *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autocheckpoint made = {0};
    autocheckpoints all = {0};
    char id[ID_TEXT];
    char layer[LAYER_NAME];
    uint64_t bytes = 0;
    struct checkpoint_record record = {.id = id_make(id), .sandbox_id = sandbox_id, .name = name};

    if (check_name(name, err) < 0 ||
        lookup_sandbox(core->sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        not_while_paused(sandbox, err) < 0 || is_name_free(core, sandbox_id, name, err) < 0 ||
        find_parent(core, sandbox_id, &all, &record.parent, err) < 0 ||
        sandbox_ensure_box(sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    if (sandbox_save_files(sandbox, layers_name(layer), &bytes, err) < 0)
        return error_wrap(err, "keep the files of the sandbox");
    record.layer = layer;
    record.size_bytes = (int64_t)bytes;
    record.created_at = (int64_t)clock_wall_ms();
    if (put(sandbox, &record, err) < 0) {
        struct error ignored = {0};
        (void)layer_remove(engine_volume(core->engine), layer, &ignored); // else swept
        return -1;
    }
    if (find(core, sandbox_id, id, &made, err) == 0) {
        checkpoint_info_take(out, &made);
        return 0;
    }
    return error_is(err, ERROR_NOT_FOUND) && sandbox_is_in(sandbox, SANDBOX_ENDING)
               ? sandbox_refuse_ending(err)
               : -1;
}

int checkpoint_list(struct core *core, const struct actor *actor, const char *sandbox_id,
                    struct checkpoint_infos *out, struct error *err)
{
    autosandbox row = {0};
    autocheckpoints found = {0};

    if (lookup_record(core->sandboxes, actor, sandbox_id, &row, err) < 0 ||
        store_checkpoint_list(core->store, sandbox_id, &found, err) < 0)
        return -1;
    checkpoint_infos_take(out, &found);
    return 0;
}

int checkpoint_remove(struct core *core, const struct actor *actor, const char *sandbox_id,
                      const char *reference, struct error *err)
{
    autosandbox row = {0};
    autocheckpoint record = {0};
    autotransaction together = {0};

    if (lookup_record(core->sandboxes, actor, sandbox_id, &row, err) < 0 ||
        find(core, sandbox_id, reference, &record, err) < 0)
        return -1;
    if (row.state == SANDBOX_PAUSED)
        return refuse_paused(err);
    if (store_begin(core->store, STORE_DURABLE, &together, err) < 0 ||
        store_layer_release(core->store, record.id, err) < 0 ||
        store_checkpoint_remove(core->store, record.id, err) < 0 ||
        store_commit(&together, err) < 0)
        return -1;
    layers_tidy(core);
    return 0;
}

/* What it will be; in turn and in the caller's transaction. */
static int put_restored(struct sandbox *sandbox, const struct checkpoint_record *record,
                        const char *scratch, struct sandbox_record *next, struct error *err)
{
    struct event event = {
        .type = EVENT_CHECKPOINT, .reason = "restored", .now = (int64_t)clock_wall_ms()};
    autotransaction together = {0};

    event_fact(&event, "checkpoint", record->id);
    event_fact(&event, "name", record->name);
    sandbox_copy(sandbox, next);
    if (lifecycle_take(next, STEP_READY, NULL, event.now, err) < 0)
        return -1;
    free((char *)next->scratch);
    next->scratch = xstrdup(scratch);
    next->box_slot = SANDBOX_NO_SLOT;
    next->updated_at = next->active_at = event.now;
    if (store_begin(sandbox->sandboxes->store, STORE_DURABLE, &together, err) < 0 ||
        sandbox->sandboxes->execution_ops->put_ends(sandbox, EXECUTION_CANCELLED, GONE_BACK,
                                                    event.now, err) < 0 ||
        store_sandbox_update(sandbox->sandboxes->store, next,
                             SANDBOX_PART_LIVING | SANDBOX_PART_BOX, SANDBOX_ALIVE, err) < 0 ||
        event_put(sandbox, &event, err) < 0)
        return -1;
    return store_commit(&together, err);
}

static int record_restored(struct sandbox *sandbox, const struct checkpoint_record *record,
                           const char *scratch, struct error *err)
{
    autosandbox next = {0};

    (void)pthread_mutex_lock(&sandbox->record_lock);
    int result = put_restored(sandbox, record, scratch, &next, err);
    if (result == 0) {
        sandbox->sandboxes->execution_ops->end_all(sandbox, EXECUTION_CANCELLED, GONE_BACK,
                                                   next.updated_at);
        sandbox_change(sandbox, &next);
    }
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    return result;
}

static int hold_layer(struct layers_hold *hold, const struct checkpoint_record *record,
                      struct error *err)
{
    const char *one[] = {record->layer, NULL};
    autofree char *packed = strings_pack(one);

    if (layers_hold(hold, packed, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? error_missing(err, "checkpoint", record->name) : -1;
}

/* From here on nobody else touches it until it is there again, and no command is recorded that began before. */
static int leave_era(struct sandbox *sandbox, struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->record_lock);
    (void)pthread_mutex_lock(&sandbox->lock);
    int result = lifecycle_take(&sandbox->record, STEP_PAUSE, NULL, (int64_t)clock_wall_ms(), err);
    sandbox->restore_count += result == 0;
    (void)pthread_cond_broadcast(&sandbox->changed);
    (void)pthread_mutex_unlock(&sandbox->lock);
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    return result;
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

static int go_back(struct sandbox *sandbox, const struct checkpoint_record *record,
                   struct error *err)
{
    const struct volume_limits limits = {.bytes = (uint64_t)sandbox->record.disk_bytes};
    struct volume *volume = engine_volume(sandbox->sandboxes->engine);
    struct error ignored = {0};
    char id[ID_TEXT];
    char scratch[80];

    (void)snprintf(scratch, sizeof scratch, POOL_SCRATCH "-%s", id_make(id));
    if (layer_restore(volume, record->layer, (uint64_t)record->size_bytes, scratch, &limits, err) <
        0)
        return layers_explain(err);
    (void)pthread_mutex_lock(&sandbox->box_lock);
    int result = exchange_files(sandbox, record, scratch, err);
    sandbox_unlock_box(sandbox);
    if (result < 0)
        (void)volume_scratch_remove(volume, scratch, &ignored); // else swept
    else
        hub_announce(sandbox->sandboxes->hub, sandbox->id);
    return result;
}

int checkpoint_restore(struct core *core, const struct actor *actor, const char *sandbox_id,
                       const char *reference, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autocheckpoint record = {0};
    autohold hold = {.core = core}; // it may be removed meanwhile

    if (lookup_sandbox(core->sandboxes, actor, sandbox_id, &sandbox, err) < 0 ||
        not_while_paused(sandbox, err) < 0 || find(core, sandbox_id, reference, &record, err) < 0 ||
        hold_layer(&hold, &record, err) < 0)
        return -1;
    if (!sandbox->record.scratch)
        return error_set(err, ERROR_CONFLICT, "a one-shot sandbox cannot go back");
    if (leave_era(sandbox, err) < 0)
        return -1;
    if (go_back(sandbox, &record, err) == 0)
        return 0;
    sandbox_pass_back(sandbox);
    return error_wrap(err, "go back to checkpoint '%s'", record.name);
}
