/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox as an object; see sandbox_object.h. */
#include "core/sandbox/sandbox_object.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/watchlist.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define PATIENCE_MS 300000

void sandbox_settle(struct sandbox *sandbox)
{
    const struct execution_ops *ops = sandbox->sandboxes->execution_ops;

    if (!ops->is_ahead(sandbox))
        return;
    autolock(&sandbox->record_lock);
    ops->record_shown(sandbox);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* From what the wall clock said when the record was written. What it says was used or paused in the future was so just now. */
static void set_deadlines(struct sandbox *sandbox)
{
    const struct sandbox_record *record = &sandbox->record;
    int64_t now = (int64_t)clock_monotonic_ms();
    int64_t active_ms = clock_monotonic_at(record->active_at);
    int64_t paused_ms = clock_monotonic_at(record->paused_at);

    sandbox->active_ms = earlier(active_ms, now);
    sandbox->paused_ms = earlier(paused_ms, now);
    sandbox->expires_ms = clock_monotonic_at(record->expires_at);
    sandbox->created_ms =
        clock_monotonic_at(record->started_at ? record->started_at : record->created_at);
}

struct sandbox *sandbox_new(struct sandboxes *sandboxes, const struct sandbox_record *record)
{
    struct sandbox *sandbox = xnew(struct sandbox);
    sandbox->refs = 1;
    sandbox->sandboxes = sandboxes;
    (void)snprintf(sandbox->id, sizeof sandbox->id, "%s", record->id);
    sandbox->known = (struct id_entry){.id = sandbox->id, .hash = id_hash(sandbox->id)};
    lock_init(&sandbox->box_lock, LOCK_SANDBOX_BOX);
    lock_condition_init(&sandbox->box_is_free);
    lock_init(&sandbox->record_lock, LOCK_SANDBOX_RECORD);
    lock_init(&sandbox->lock, LOCK_SANDBOX);
    lock_condition_init(&sandbox->changed);
    lock_init(&sandbox->mailbox.lock, LOCK_MAILBOX);
    sandbox_record_copy(&sandbox->record, record);
    sandbox->last_number =
        record->process_count > SPARE_RESIDENT ? (uint32_t)record->process_count : SPARE_RESIDENT;
    sandbox->counted_cpu_ms = record->counted_cpu_ms;
    sandbox->counted_egress_bytes = record->counted_egress_bytes;
    sandbox->n_noticed = 1;
    set_deadlines(sandbox);
    if (record->counted_at >
        0) // by an earlier server, perhaps before the clock went back; else since its start
        sandbox->sampled_ms =
            earlier(clock_monotonic_at(record->counted_at), (int64_t)clock_monotonic_ms());
    return sandbox;
}

struct sandbox *sandbox_ref(struct sandbox *sandbox)
{
    sandbox->refs++;
    return sandbox;
}

void sandbox_free(struct sandbox *sandbox)
{
    if (!sandbox || --sandbox->refs > 0)
        return;
    assert(!sandbox->is_watched && !sandbox->mailbox.first);
    sandbox->sandboxes->execution_ops->free_all(sandbox);
    box_free(sandbox->box);
    gauge_history_forget(sandbox->sandboxes->histories, &sandbox->history);
    free((void *)sandbox->runtime_env);
    sandbox_record_clear(&sandbox->record);
    lock_clear(&sandbox->mailbox.lock);
    lock_condition_clear(&sandbox->changed);
    lock_clear(&sandbox->lock);
    lock_clear(&sandbox->record_lock);
    lock_condition_clear(&sandbox->box_is_free);
    lock_clear(&sandbox->box_lock);
    free(sandbox);
}

int sandbox_went_back(struct error *err)
{
    return error_refuse(err, ERROR_STATE, "sandbox",
                        "the sandbox has just gone back to a checkpoint; try again");
}

int sandbox_refuse_ending(struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended");
}

bool sandbox_is_in(struct sandbox *sandbox, unsigned states)
{
    autolock(&sandbox->lock);
    return (sandbox_in(sandbox->record.state) & states) != 0;
}

bool sandbox_is_over(struct sandbox *sandbox)
{
    return sandbox_is_in(sandbox, SANDBOX_OVER);
}

/* The state that it is in when it is in none of `states`, or when patience ends. */
static enum sandbox_state await_other_state(struct sandbox *sandbox, unsigned states)
{
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;

    autolock(&sandbox->lock);
    while ((sandbox_in(sandbox->record.state) & states) &&
           lock_condition_wait(&sandbox->changed, &sandbox->lock, until_ms))
        ;
    return sandbox->record.state;
}

int sandbox_await_calm(struct sandbox *sandbox, struct error *err)
{
    const unsigned restless =
        sandbox_in(SANDBOX_CREATING) | sandbox_in(SANDBOX_PAUSING) | sandbox_in(SANDBOX_RESUMING);
    enum sandbox_state state = await_other_state(sandbox, restless);

    if (!(sandbox_in(state) & restless))
        return 0;
    return error_set(err, ERROR_TIMEOUT, "the sandbox is still %s; try again",
                     sandbox_state_name(state));
}

uint32_t sandbox_next_number(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->last_number + 1;
}

void sandbox_touch(struct sandbox *sandbox)
{
    sandbox->active_ms = (int64_t)clock_monotonic_ms();
    watchlist_notice(sandbox);
}

void sandbox_copy(struct sandbox *sandbox, struct sandbox_record *out)
{
    autolock(&sandbox->lock);
    sandbox_record_copy(out, &sandbox->record);
}

char *sandbox_scratch(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    return sandbox->record.scratch ? xstrdup(sandbox->record.scratch) : NULL;
}

int sandbox_pass(struct sandbox *sandbox, enum lifecycle_step step, struct error *err)
{
    autolock(&sandbox->record_lock);
    return sandbox_take_step(sandbox, step, NULL, err);
}

int sandbox_take_step(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                      struct error *err)
{
    autolock(&sandbox->lock);
    int64_t paused_at = sandbox->record.paused_at;
    int result = lifecycle_take(&sandbox->record, step, reason, (int64_t)clock_wall_ms(), err);
    if (sandbox->record.paused_at != paused_at)
        sandbox->paused_ms = (int64_t)clock_monotonic_ms();
    lock_condition_wake(&sandbox->changed);
    watchlist_notice(sandbox);
    return result;
}

/* What a change of state changes. All other strings of a record stay where they are as long as it lives. */
static void move_state(struct sandbox_record *to, struct sandbox_record *from)
{
    const char *strings[] = {to->reason, to->error};

    to->state = from->state;
    to->reason = from->reason;
    to->error = from->error;
    to->exit_code = from->exit_code;
    to->started_at = from->started_at;
    to->paused_at = from->paused_at;
    to->ended_at = from->ended_at;
    to->deleted_at = from->deleted_at;
    to->box_slot = from->box_slot;
    to->active_at = from->active_at;
    to->updated_at = from->updated_at;
    from->reason = strings[0];
    from->error = strings[1];
}

/* Whether it is over with that, and was not before. */
static bool show_state(struct sandbox *sandbox, struct sandbox_record *next)
{
    autolock(&sandbox->lock);
    bool was_over = (sandbox_in(sandbox->record.state) & SANDBOX_OVER) != 0;
    if (next->paused_at != sandbox->record.paused_at)
        sandbox->paused_ms = (int64_t)clock_monotonic_ms();
    move_state(&sandbox->record, next);
    lock_condition_wake(&sandbox->changed);
    watchlist_notice(sandbox);
    return !was_over && (sandbox_in(sandbox->record.state) & SANDBOX_OVER);
}

void sandbox_tell_over(struct sandbox *sandbox)
{
    const struct sandbox_end_watch *watch = &sandbox->sandboxes->end_watch;

    if (watch->on_over)
        watch->on_over(watch->data, sandbox->id);
}

void sandbox_show(struct sandbox *sandbox, struct sandbox_record *next)
{
    if (!show_state(sandbox, next))
        return;
    registry_end(sandbox->sandboxes->registry, sandbox, false);
    sandbox_tell_over(sandbox);
}

void sandbox_change(struct sandbox *sandbox, struct sandbox_record *next)
{
    sandbox_show(sandbox, next);
    sandbox_record_clear(next);
}
