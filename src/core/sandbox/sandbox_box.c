/* SPDX-License-Identifier: Apache-2.0 */
/* The right to use a sandbox's box, and new boxes for old sandboxes; see sandbox_box.h. */
#include "core/sandbox/sandbox_box.h"

#include "base/clock.h"
#include "core/sandbox/monitor.h"
#include "core/sandbox/pool.h"
#include "core/layer/layers.h"

int sandbox_lock_box(struct sandbox *sandbox, struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->box_lock);
    if (sandbox->box && !sandbox->is_box_over)
        return 0;
    (void)pthread_mutex_unlock(&sandbox->box_lock);
    if (sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSING)))
        return sandbox_went_back(err);
    return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended");
}

bool sandbox_try_box(struct sandbox *sandbox)
{
    if (pthread_mutex_trylock(&sandbox->box_lock) != 0)
        return false;
    if (sandbox->box && !sandbox->is_box_over)
        return true;
    (void)pthread_mutex_unlock(&sandbox->box_lock);
    return false;
}

void sandbox_unlock_box(struct sandbox *sandbox)
{
    (void)pthread_mutex_unlock(&sandbox->box_lock);
    if (atomic_exchange(&sandbox->has_events, false))
        monitor_arm(sandbox->sandboxes->monitor, sandbox);
}

/* From here on a restart of the server finds it. The caller has the box_lock. */
static int put_box(struct sandbox *sandbox, struct error *err)
{
    autosandbox next = {0};

    (void)pthread_mutex_lock(&sandbox->record_lock);
    (void)pthread_mutex_lock(&sandbox->lock);
    sandbox->record.box_slot = box_slot(sandbox->box);
    (void)pthread_mutex_unlock(&sandbox->lock);
    sandbox_copy(sandbox, &next);
    int result = store_sandbox_update(sandbox->sandboxes->store, &next, SANDBOX_PART_BOX,
                                      SANDBOX_ALIVE, err);
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    return result;
}

int sandbox_launch_again(struct sandbox *sandbox, struct error *err)
{
    struct pooled pooled = {0};
    struct error ignored = {0};
    bool is_paused = sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED)); // somebody wants its files

    if (pool_launch_record(sandbox->sandboxes->pool, &sandbox->record, &pooled, err) < 0)
        return -1;
    sandbox->box = pooled.box;
    sandbox->is_box_over = false;
    sandbox->sampled_at = (int64_t)clock_wall_ms(); // and its counters begin again
    sandbox->sampled_memory = 0;
    sandbox->counted_cpu_ms = 0;
    if (!sandbox->runtime_env) {
        sandbox->runtime_env = pooled.env;
        pooled.env = NULL;
    }
    pooled_clear(&pooled);
    if ((!is_paused || box_freeze(sandbox->box, err) == 0) && put_box(sandbox, err) == 0 &&
        monitor_watch(sandbox->sandboxes->monitor, sandbox, err) == 0)
        return 0;
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
    int result = 0;

    (void)pthread_mutex_lock(&sandbox->box_lock);
    if (!sandbox->box && sandbox_is_in(sandbox, SANDBOX_ENDING))
        result = sandbox_refuse_ending(err);
    else if (!sandbox->box)
        result = sandbox_launch_again(sandbox, err);
    sandbox_unlock_box(sandbox);
    return result;
}

int sandbox_ensure_box(struct sandbox *sandbox, struct error *err)
{
    return sandbox->record.scratch && !sandbox_is_over(sandbox) ? sandbox_bring_back(sandbox, err)
                                                                : 0;
}

/* Where every file is copied, they must not change meanwhile. */
static int save_frozen(struct sandbox *sandbox, const char *scratch, const char *name,
                       uint64_t *bytes, struct error *err)
{
    struct error ignored = {0};
    bool is_paused = sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED));

    if (!is_paused && box_freeze(sandbox->box, err) < 0)
        return -1;
    int result = layer_save(engine_volume(sandbox->sandboxes->engine), scratch, name, bytes, err);
    if (!is_paused)
        (void)box_thaw(sandbox->box, &ignored);
    return result;
}

int sandbox_save_files(struct sandbox *sandbox, const char *name, uint64_t *bytes,
                       struct error *err)
{
    struct volume *volume = engine_volume(sandbox->sandboxes->engine);

    (void)pthread_mutex_lock(&sandbox->box_lock);
    const char *scratch = sandbox->record.scratch;
    if (!scratch && sandbox->box)
        scratch = box_scratch(sandbox->box);
    int result = -1;
    if (!scratch)
        sandbox_refuse_ending(err);
    else if (sandbox->box && !layer_is_cheap(volume))
        result = save_frozen(sandbox, scratch, name, bytes, err);
    else
        result = layer_save(volume, scratch, name, bytes, err);
    sandbox_unlock_box(sandbox);
    if (result < 0)
        return sandbox_is_in(sandbox, SANDBOX_ENDING) ? sandbox_refuse_ending(err)
                                                      : layers_explain(err);
    return 0;
}
