/* SPDX-License-Identifier: Apache-2.0 */
/* Pausing sandboxes and waking them; see sandbox.h. */
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/ending.h"
#include "core/keeper.h"
#include "core/live.h"
#include "core/lookup.h"
#include "core/note.h"
#include "core/pool.h"

/* A state that is only passed through: in memory, so after a crash it is as it was before. */
int live_pass(struct live *live, enum lifecycle_step step, struct error *err)
{
    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    int result = lifecycle_take(&live->record, step, NULL, (int64_t)clock_wall_ms(), err);
    (void)pthread_cond_broadcast(&live->changed);
    (void)pthread_mutex_unlock(&live->lock);
    (void)pthread_mutex_unlock(&live->turn);
    return result;
}

static int put(struct live *live, enum lifecycle_step step, const struct note *note,
               struct sandbox_record *next, struct error *err)
{
    unsigned parts = SANDBOX_PART_LIVING | SANDBOX_PART_BOX | SANDBOX_PART_DEADLINES;
    autotransaction together = {0};
    bool is_put;

    live_copy(live, next);
    if (lifecycle_take(next, step, NULL, note->now, err) < 0)
        return -1;
    next->updated_at = next->active_at = note->now;
    do
        is_put = store_begin(live->core->store, STORE_DURABLE, &together, err) == 0 &&
                 store_sandbox_update(live->core->store, next, parts, SANDBOX_ALIVE, err) == 0 &&
                 (!note->type || note_put(live, note, err) == 0) &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* The step back to what it was doing, from a state that it only passes through. The caller has the turn. */
static enum lifecycle_step awake_step(const struct live *live)
{
    for (const struct running *running = live->commands; running; running = running->next) {
        if (running->is_recorded && running->told_at == 0 &&
            running->record.kind == EXECUTION_COMMAND)
            return STEP_BEGIN;
    }
    return STEP_READY;
}

/* Writes the state down and shows it. */
static int settle(struct live *live, bool is_awake, const struct note *note, struct error *err)
{
    autosandbox next = {0};

    (void)pthread_mutex_lock(&live->turn);
    int result = put(live, is_awake ? awake_step(live) : STEP_PAUSED, note, &next, err);
    if (result == 0)
        live_change(live, &next);
    (void)pthread_mutex_unlock(&live->turn);
    if (result == 0)
        hub_tell(live->core->hub, live->id);
    return result;
}

void live_pass_back(struct live *live)
{
    struct error ignored = {0}; // it is about to end

    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    (void)lifecycle_take(&live->record, awake_step(live), NULL, (int64_t)clock_wall_ms(), &ignored);
    (void)pthread_cond_broadcast(&live->changed);
    (void)pthread_mutex_unlock(&live->lock);
    (void)pthread_mutex_unlock(&live->turn);
}

static int freeze(struct live *live, struct error *err)
{
    if (live_lock_box(live, err) < 0)
        return -1;
    int result = box_freeze(live->box, err);
    live_unlock_box(live);
    return result;
}

static int thaw(struct live *live, struct error *err)
{
    if (live_lock_box(live, err) < 0)
        return -1;
    int result = box_thaw(live->box, err);
    live_unlock_box(live);
    return result;
}

static int put_to_sleep(struct live *live, struct error *err)
{
    struct note note = {.type = EVENT_PAUSE, .reason = "asked", .now = (int64_t)clock_wall_ms()};
    struct error later = {0};

    if (live_pass(live, STEP_PAUSE, err) < 0)
        return -1;
    if (freeze(live, err) == 0 && settle(live, false, &note, err) == 0)
        return 0;
    (void)thaw(live, &later);
    live_pass_back(live);
    return error_wrap(err, "pause the sandbox");
}

int sandbox_pause(struct core *core, const struct actor *actor, const char *id,
                  struct sandbox_record *out, struct error *err)
{
    autoptr(live) live = NULL;

    if (lookup_live(core, actor, id, &live, err) < 0)
        return -1;
    if (live->record.mode == SANDBOX_ONE_SHOT) {
        error_set(err, ERROR_CONFLICT, "a one-shot sandbox cannot be paused");
        return error_about(err, "sandbox", "state");
    }
    if (put_to_sleep(live, err) < 0)
        return -1;
    live_copy(live, out);
    return 0;
}

static bool has_box(struct live *live)
{
    (void)pthread_mutex_lock(&live->box_lock);
    bool has_box = live->box != NULL;
    (void)pthread_mutex_unlock(&live->box_lock);
    return has_box;
}

/* From here on a restart of the server finds it. The caller has the box_lock. */
static int put_box(struct live *live, struct error *err)
{
    autosandbox next = {0};

    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    live->record.box_slot = box_slot(live->box);
    (void)pthread_mutex_unlock(&live->lock);
    live_copy(live, &next);
    int result =
        store_sandbox_update(live->core->store, &next, SANDBOX_PART_BOX, SANDBOX_ALIVE, err);
    (void)pthread_mutex_unlock(&live->turn);
    return result;
}

int live_launch_again(struct live *live, struct error *err)
{
    struct pooled pooled = {0};
    struct error ignored = {0};
    bool is_paused = live_is_in(live, sandbox_in(SANDBOX_PAUSED)); // somebody wants its files

    if (pool_launch_record(live->core->pool, &live->record, &pooled, err) < 0)
        return -1;
    live->box = pooled.box;
    live->is_box_over = false;
    live->sampled_at = (int64_t)clock_wall_ms(); // and its counters begin again
    live->sampled_memory = 0;
    live->counted_cpu_ms = 0;
    if (!live->runtime_env) {
        live->runtime_env = pooled.env;
        pooled.env = NULL;
    }
    pooled_clear(&pooled);
    if ((!is_paused || box_freeze(live->box, err) == 0) && put_box(live, err) == 0 &&
        keeper_watch(live->core->keeper, live, err) == 0)
        return 0;
    (void)box_end(live->box, &ignored);
    box_free(take(live->box));
    return -1;
}

int live_refuse_ending(struct error *err)
{
    error_set(err, ERROR_GONE, "the sandbox has ended");
    return error_about(err, "sandbox", "ended");
}

/*
 * Many may want it at once; one of them makes it. Whoever ends the sandbox says so before it comes for the box, so none is made
 * behind its back.
 */
int live_bring_back(struct live *live, struct error *err)
{
    int result = 0;

    (void)pthread_mutex_lock(&live->box_lock);
    if (!live->box && live_is_in(live, LIVE_ENDING))
        result = live_refuse_ending(err);
    else if (!live->box)
        result = live_launch_again(live, err);
    live_unlock_box(live);
    return result;
}

/* Takes the step to sleep if it is still idle: whoever wants to use it has touched it before looking at its state. */
static bool begin_rest(struct live *live)
{
    struct error ignored = {0};
    int64_t now = (int64_t)clock_wall_ms();

    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    bool is_idle = live->record.state == SANDBOX_IDLE && live->n_executions == 0 &&
                   live->n_jobs == 0 && live->active_at + live->record.idle_timeout_ms <= now &&
                   lifecycle_take(&live->record, STEP_PAUSE, NULL, now, &ignored) == 0;
    (void)pthread_cond_broadcast(&live->changed);
    (void)pthread_mutex_unlock(&live->lock);
    (void)pthread_mutex_unlock(&live->turn);
    return is_idle;
}

static void rest(void *data)
{
    autoptr(live) live = data;
    struct note note = {.type = EVENT_PAUSE, .reason = "idle", .now = (int64_t)clock_wall_ms()};
    struct error err = {0};

    if (begin_rest(live)) {
        ending_drop_box(live);
        (void)pthread_mutex_lock(&live->lock);
        live->record.box_slot = SANDBOX_NO_SLOT;
        (void)pthread_mutex_unlock(&live->lock);
        if (settle(live, false, &note, &err) < 0 && !live_is_in(live, LIVE_ENDING)) {
            log_warn("a sandbox without a box could not be recorded as paused",
                     F("sandbox", (const char *)live->id), F("error", (const char *)err.text));
            (void)live_pass(live, STEP_READY, &err); // it gets a box when it is used
        }
    }
    live->is_dropping = false;
}

void live_rest(struct live *live)
{
    struct error full = {0};

    if (atomic_exchange(&live->is_dropping, true))
        return;
    if (workers_submit(live->core->crew, WORKERS_SLOW, rest, live_ref(live), &full) == 0)
        return;
    live->is_dropping = false; // the keeper comes by again
    live_free(live);
}

int live_ensure_box(struct live *live, struct error *err)
{
    return live->record.scratch && !live_is_over(live) ? live_bring_back(live, err) : 0;
}

int live_wake(struct live *live, struct error *err)
{
    struct note note = {.type = EVENT_RESUME, .now = (int64_t)clock_wall_ms()};
    struct error later = {0};

    if (live_pass(live, STEP_RESUME, err) < 0)
        return -1;
    bool had_box = has_box(live); // nobody else is at it now
    note.reason = had_box ? "asked" : "files_only";
    if ((had_box ? thaw(live, err) : live_bring_back(live, err)) == 0 &&
        settle(live, true, &note, err) == 0)
        return 0;
    if (had_box)
        (void)freeze(live, &later);
    (void)live_pass(live, STEP_PAUSED, &later);
    return error_wrap(err, "resume the sandbox");
}

int live_awake(struct live *live, bool *was_paused, struct error *err)
{
    *was_paused = false;
    for (;;) {
        if (live_await_calm(live, err) < 0)
            return -1;
        if (!live_is_in(live, sandbox_in(SANDBOX_PAUSED)))
            return 0;
        *was_paused = true;
        if (live_wake(live, err) < 0 && err->kind != ERROR_CONFLICT) // somebody else may be at it
            return -1;
    }
}

int sandbox_resume(struct core *core, const struct actor *actor, const char *id, struct error *err)
{
    autoptr(live) live = NULL;

    if (lookup_live(core, actor, id, &live, err) < 0)
        return -1;
    return live_wake(live, err);
}
