/* SPDX-License-Identifier: Apache-2.0 */
/* The right to use a sandbox's box, and new boxes for old sandboxes; see sandbox_box.h. */
#include "core/sandbox/sandbox_box.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/layer/layers.h"
#include "core/sandbox/monitor.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/sandbox_network.h"
#include "core/network/outlet.h"

#include <stdlib.h>

void sandbox_leave_box(struct sandbox **held)
{
    struct sandbox *sandbox = *held;

    if (!sandbox)
        return;
    lock_release(&sandbox->box_lock);
    if (atomic_exchange(&sandbox->has_events, false))
        monitor_arm(sandbox->sandboxes->monitor, sandbox);
}

struct sandbox *sandbox_share_box(struct sandbox *sandbox)
{
    (void)lock_take(&sandbox->box_lock);
    return sandbox;
}

struct sandbox *sandbox_hold_box(struct sandbox *sandbox)
{
    (void)lock_take(&sandbox->box_lock);
    while (sandbox->is_copied)
        (void)lock_condition_wait(&sandbox->box_is_free, &sandbox->box_lock, 0);
    return sandbox;
}

static bool has_box(const struct sandbox *sandbox)
{
    return sandbox->box && !sandbox->is_box_over;
}

struct sandbox *sandbox_use_box(struct sandbox *sandbox, struct error *err)
{
    autobox held = sandbox_hold_box(sandbox);

    if (has_box(sandbox))
        return take(held);
    if (sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSING)))
        (void)sandbox_went_back(err);
    else
        (void)sandbox_refuse_ending(err);
    return NULL;
}

struct sandbox *sandbox_try_box(struct sandbox *sandbox)
{
    if (!lock_try(&sandbox->box_lock))
        return NULL;
    if (has_box(sandbox))
        return sandbox;
    lock_release(&sandbox->box_lock);
    return NULL;
}

// ---- a new box ----

/* From here on a restart of the server finds it. The caller holds the box_lock. */
static int put_box(struct sandbox *sandbox, struct error *err)
{
    autosandbox next = {0};

    autolock(&sandbox->record_lock);
    {
        autolock(&sandbox->lock);
        sandbox->record.box_slot = box_slot(sandbox->box);
        sandbox_record_copy(&next, &sandbox->record);
    }
    return store_sandbox_update(sandbox->sandboxes->store, &next, SANDBOX_PART_BOX, SANDBOX_ALIVE,
                                err);
}

/* Whose counters begin again. */
static void set_box(struct sandbox *sandbox, struct pooled *pooled)
{
    {
        autolock(&sandbox->lock);
        sandbox->has_resident = box_has_resident(pooled->box);
    }
    sandbox->box = take(pooled->box);
    sandbox->is_box_over = false;
    sandbox->sampled_ms = (int64_t)clock_monotonic_ms();
    sandbox->sampled_memory = 0;
    sandbox->counted_cpu_ms = 0;
    sandbox->counted_egress_bytes = 0;
    if (!sandbox->runtime_env)
        sandbox->runtime_env = take(pooled->env);
    pooled_clear(pooled);
}

int sandbox_launch_again(struct sandbox *sandbox, struct error *err)
{
    struct pooled pooled = {0};
    struct error ignored = {0};
    bool is_paused = sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED)); // somebody wants its files
    autosandbox record = {0};

    sandbox_copy(sandbox, &record);
    if (pool_launch_record(sandbox->sandboxes->pool, &record, &pooled, err) < 0)
        return -1;
    set_box(sandbox, &pooled);
    if (sandbox_admit(sandbox, true, err) == 0 &&
        (!is_paused || box_freeze(sandbox->box, err) == 0) && put_box(sandbox, err) == 0 &&
        monitor_watch(sandbox->sandboxes->monitor, sandbox, err) == 0)
        return 0;
    outlet_remove(sandbox->sandboxes->outlets, box_slot(sandbox->box));
    (void)box_end(sandbox->box, &ignored);
    box_free(take(sandbox->box));
    return -1;
}

/*
 * Many may want it at once; one of them makes it. Whoever ends the sandbox says so before it comes for the box, so none is made
 * behind its back.
 */
int sandbox_bring_back(struct sandbox *sandbox, struct error *err)
{
    autobox held = sandbox_hold_box(sandbox);

    if (sandbox->box)
        return 0;
    if (sandbox_is_in(sandbox, SANDBOX_ENDING))
        return sandbox_refuse_ending(err);
    return sandbox_launch_again(sandbox, err);
}

/* Whether its files stay when its box goes. */
static bool keeps_files(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->record.scratch && !(sandbox_in(sandbox->record.state) & SANDBOX_OVER);
}

int sandbox_ensure_box(struct sandbox *sandbox, struct error *err)
{
    return keeps_files(sandbox) ? sandbox_bring_back(sandbox, err) : 0;
}

// ---- its files as a layer ----

struct copy {
    char *scratch;
    bool is_thawed_after;
};

static void copy_clear(struct copy *copy)
{
    free(copy->scratch);
}

/* Until end_copy nobody else freezes, thaws, ends or changes the box. Where every file is copied, they must not change either. */
static int begin_copy(struct sandbox *sandbox, struct copy *copy, struct error *err)
{
    bool is_cheap = layer_is_cheap(engine_volume(sandbox->sandboxes->engine));
    autobox held = sandbox_hold_box(sandbox);

    copy->scratch = sandbox_scratch(sandbox);
    if (!copy->scratch && sandbox->box)
        copy->scratch = xstrdup(box_scratch(sandbox->box));
    if (!copy->scratch)
        return sandbox_refuse_ending(err);
    copy->is_thawed_after =
        has_box(sandbox) && !is_cheap && !sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED));
    if (copy->is_thawed_after && box_freeze(sandbox->box, err) < 0)
        return -1;
    sandbox->is_copied = true;
    return 0;
}

static void end_copy(struct sandbox *sandbox, const struct copy *copy)
{
    struct error ignored = {0};
    autobox held = sandbox_share_box(sandbox);

    if (copy->is_thawed_after && has_box(sandbox))
        (void)box_thaw(sandbox->box, &ignored);
    sandbox->is_copied = false;
    lock_condition_wake(&sandbox->box_is_free);
}

int sandbox_save_files(struct sandbox *sandbox, const char *name, uint64_t *bytes,
                       struct error *err)
{
    struct volume *volume = engine_volume(sandbox->sandboxes->engine);
    __attribute__((cleanup(copy_clear))) struct copy copy = {0};

    if (begin_copy(sandbox, &copy, err) < 0)
        return -1;
    int result = layer_save(volume, copy.scratch, name, bytes, err);
    end_copy(sandbox, &copy);
    if (result == 0)
        return 0;
    return sandbox_is_in(sandbox, SANDBOX_ENDING) ? sandbox_refuse_ending(err)
                                                  : layers_explain_no_room(err);
}
