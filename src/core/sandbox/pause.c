/* SPDX-License-Identifier: Apache-2.0 */
/* Pausing sandboxes and waking them; see pause.h. */
#include "core/sandbox/pause.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/log_ids.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/sandbox_object.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/sandbox_info_impl.h"
#include "core/event/hub.h"
#include "core/sandbox/sandbox_box.h"

#define WAKE_TRIES 64 // of those who want one awake that others put to sleep

static int put(struct sandbox *sandbox, enum lifecycle_step step, const struct event *event,
               struct sandbox_record *next, struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    sandbox_copy(sandbox, next);
    if (lifecycle_take(next, step, NULL, event->now, err) < 0)
        return -1;
    next->updated_at = next->active_at = event->now;
    if (step == STEP_PAUSED && next->on_expiry != SANDBOX_EXPIRY_WAITS)
        next->expires_at = 0; // whoever wakes it says for how long
    do
        is_put =
            store_begin(sandbox->sandboxes->store, STORE_DURABLE, &together, err) == 0 &&
            store_sandbox_update(sandbox->sandboxes->store, next,
                                 SANDBOX_PART_LIVING | SANDBOX_PART_BOX | SANDBOX_PART_DEADLINES,
                                 SANDBOX_ALIVE, err) == 0 &&
            (!event->type || event_put(sandbox, event, err) == 0) &&
            store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* The step back to what it was doing, from a state that it only passes through. The caller holds record_lock. */
static enum lifecycle_step awake_step(const struct sandbox *sandbox)
{
    return sandbox->sandboxes->execution_ops->is_running(sandbox) ? STEP_BEGIN : STEP_READY;
}

static void set_expiry(struct sandbox *sandbox, int64_t expires_at)
{
    autolock(&sandbox->lock);
    sandbox->record.expires_at = expires_at;
    sandbox->expires_ms = clock_monotonic_at(expires_at);
}

/* Writes the state down and shows it. */
static int settle(struct sandbox *sandbox, bool is_awake, const struct event *event,
                  struct error *err)
{
    autosandbox next = {0};

    autolock(&sandbox->record_lock);
    if (put(sandbox, is_awake ? awake_step(sandbox) : STEP_PAUSED, event, &next, err) < 0)
        return -1;
    set_expiry(sandbox, next.expires_at);
    sandbox_change(sandbox, &next);
    hub_announce(sandbox->sandboxes->hub, sandbox->id);
    return 0;
}

void sandbox_pass_back(struct sandbox *sandbox)
{
    struct error ignored = {0}; // it is about to end

    autolock(&sandbox->record_lock);
    (void)sandbox_take_step(sandbox, awake_step(sandbox), NULL, &ignored);
}

static int freeze(struct sandbox *sandbox, struct error *err)
{
    autobox held = sandbox_use_box(sandbox, err);

    return held ? box_freeze(sandbox->box, err) : -1;
}

static int thaw(struct sandbox *sandbox, struct error *err)
{
    autobox held = sandbox_use_box(sandbox, err);

    return held ? box_thaw(sandbox->box, err) : -1;
}

static int put_to_sleep(struct sandbox *sandbox, struct error *err)
{
    struct event event = {.type = EVENT_PAUSE, .reason = "asked", .now = (int64_t)clock_wall_ms()};
    struct error later = {0};

    if (sandbox_pass(sandbox, STEP_PAUSE, err) < 0)
        return -1;
    if (freeze(sandbox, err) == 0 && settle(sandbox, false, &event, err) == 0)
        return 0;
    (void)thaw(sandbox, &later);
    sandbox_pass_back(sandbox);
    return error_wrap(err, "pause the sandbox");
}

int sandbox_pause(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                  struct sandbox_info *out, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autosandbox record = {0};

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    if (sandbox->record.mode == SANDBOX_ONE_SHOT)
        return error_refuse(err, ERROR_STATE, "sandbox", "a one-shot sandbox cannot be paused");
    if (put_to_sleep(sandbox, err) < 0)
        return -1;
    sandbox_copy(sandbox, &record);
    sandbox_info_take(out, &record);
    lookup_used(sandboxes, sandbox->id, out);
    return 0;
}

static bool has_box(struct sandbox *sandbox)
{
    autobox held = sandbox_hold_box(sandbox);

    return sandbox->box != NULL;
}

/* Whoever wants to use it has touched it before looking at its state. */
static bool is_idle(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->record.state == SANDBOX_IDLE && sandbox->n_executions == 0 &&
           sandbox->n_jobs == 0 && sandbox->n_contexts == 0 &&
           sandbox->active_ms + sandbox->record.idle_timeout_ms <= (int64_t)clock_monotonic_ms();
}

/* Takes the step to sleep if it is still idle. */
static bool begin_rest(struct sandbox *sandbox)
{
    struct error ignored = {0};

    autolock(&sandbox->record_lock);
    return is_idle(sandbox) && sandbox_take_step(sandbox, STEP_PAUSE, NULL, &ignored) == 0;
}

static void forget_slot(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    sandbox->record.box_slot = SANDBOX_NO_SLOT;
}

/* Its files stay, and nothing else. */
static void drop_box(struct sandbox *sandbox, const struct event *event)
{
    struct error err = {0};

    ending_drop_box(sandbox);
    forget_slot(sandbox);
    if (settle(sandbox, false, event, &err) < 0 && !sandbox_is_in(sandbox, SANDBOX_ENDING)) {
        log_warn("a sandbox without processes could not be recorded as paused",
                 F_SANDBOX(sandbox->id), F("error", (const char *)err.text));
        (void)sandbox_pass(sandbox, STEP_READY, &err); // it gets a box when it is used
    }
}

/* Where it cannot be paused it is awake, and tried again soon. */
static void doze(struct sandbox *sandbox, const struct event *event)
{
    struct error err = {0};
    struct error later = {0};

    if (freeze(sandbox, &err) == 0 && settle(sandbox, false, event, &err) == 0)
        return;
    (void)thaw(sandbox, &later);
    sandbox_pass_back(sandbox);
    if (!sandbox_is_in(sandbox, SANDBOX_ENDING))
        log_warn("an idle sandbox could not be paused", F_SANDBOX(sandbox->id),
                 F("error", (const char *)err.text));
}

static void rest(void *data)
{
    autoptr(sandbox) sandbox = data;
    struct event event = {.type = EVENT_PAUSE, .reason = "idle", .now = (int64_t)clock_wall_ms()};

    if (begin_rest(sandbox)) {
        bool keeps_box = sandbox->record.on_idle == SANDBOX_IDLE_PAUSES; // it may be changed later
        (keeps_box ? doze : drop_box)(sandbox, &event);
    }
    sandbox->is_resting = false;
}

void sandbox_rest(struct sandbox *sandbox)
{
    if (!atomic_exchange(&sandbox->is_resting, true))
        workers_run(sandbox->sandboxes->reaper, WORKERS_SLOW, rest, sandbox_ref(sandbox));
}

static bool is_expired(struct sandbox *sandbox)
{
    const unsigned awake = sandbox_in(SANDBOX_IDLE) | sandbox_in(SANDBOX_RUNNING);

    autolock(&sandbox->lock);
    return (sandbox_in(sandbox->record.state) & awake) && sandbox->record.expires_at > 0 &&
           sandbox->expires_ms <= (int64_t)clock_monotonic_ms();
}

/* Takes the step to sleep if its time has not been made longer meanwhile. */
static bool begin_expired(struct sandbox *sandbox)
{
    struct error ignored = {0};

    autolock(&sandbox->record_lock);
    return is_expired(sandbox) && sandbox_take_step(sandbox, STEP_PAUSE, NULL, &ignored) == 0;
}

static void rest_expired(void *data)
{
    autoptr(sandbox) sandbox = data;
    struct event event = {
        .type = EVENT_PAUSE, .reason = "expired", .now = (int64_t)clock_wall_ms()};

    if (begin_expired(sandbox)) {
        bool keeps_box = sandbox->record.on_expiry == SANDBOX_EXPIRY_PAUSES;
        (keeps_box ? doze : drop_box)(sandbox, &event);
    }
    sandbox->is_resting = false;
}

void sandbox_rest_expired(struct sandbox *sandbox)
{
    if (!atomic_exchange(&sandbox->is_resting, true))
        workers_run(sandbox->sandboxes->reaper, WORKERS_SLOW, rest_expired, sandbox_ref(sandbox));
}

int sandbox_pause_files(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                        struct error *err)
{
    struct event event = {.type = EVENT_PAUSE, .reason = "asked", .now = (int64_t)clock_wall_ms()};
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    if (sandbox->record.mode == SANDBOX_ONE_SHOT)
        return error_refuse(err, ERROR_STATE, "sandbox", "a one-shot sandbox cannot be paused");
    if (sandbox_pass(sandbox, STEP_PAUSE, err) < 0)
        return -1;
    drop_box(sandbox, &event);
    return 0;
}

/* Wakes one that is paused. ERROR_CONFLICT, noun "sandbox", reason "state", unless it is. */
static int sandbox_wake(struct sandbox *sandbox, struct error *err)
{
    struct event event = {.type = EVENT_RESUME, .now = (int64_t)clock_wall_ms()};
    struct error later = {0};

    if (sandbox_pass(sandbox, STEP_RESUME, err) < 0)
        return -1;
    bool had_box = has_box(sandbox); // nobody else is at it now
    event.reason = had_box ? "asked" : "files_only";
    if ((had_box ? thaw(sandbox, err) : sandbox_bring_back(sandbox, err)) == 0 &&
        settle(sandbox, true, &event, err) == 0)
        return 0;
    if (had_box)
        (void)freeze(sandbox, &later);
    (void)sandbox_pass(sandbox, STEP_PAUSED, &later);
    return error_wrap(err, "resume the sandbox");
}

int sandbox_awake(struct sandbox *sandbox, bool *was_paused, struct error *err)
{
    *was_paused = false;
    for (unsigned tries = 0; tries < WAKE_TRIES; tries++) {
        if (sandbox_await_calm(sandbox, err) < 0)
            return -1;
        if (!sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED)))
            return 0;
        *was_paused = true;
        if (sandbox_wake(sandbox, err) < 0 &&
            !error_is(err, ERROR_CONFLICT)) // somebody else may be at it
            return -1;
    }
    if (!sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSED)))
        return 0;
    return error_is(err, ERROR_CONFLICT)
               ? -1
               : error_set(err, ERROR_BUSY, "the sandbox is paused again and again: try later");
}

int sandbox_resume(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                   struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(sandboxes, actor, id, &sandbox, err) < 0)
        return -1;
    return sandbox_wake(sandbox, err);
}
