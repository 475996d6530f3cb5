/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes end; see ending.h. */
#include "core/sandbox/ending.h"

#include "core/network/outlet.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/log_ids.h"
#include "core/event/hub.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/monitor.h"
#include "core/layer/layers.h"
#include "core/sandbox/measure.h"
#include "core/sandbox/sandbox_event.h"
#include "core/sandbox/watchlist.h"
#include "store/checkpoints.h"
#include "store/streams.h"

#include <stdlib.h>
#include <string.h>

#define KILLED 137
#define PATIENCE_MS 60000
#define REMOVALS_MS 10000
#define MANY 8      // boxes that wait to be removed
#define DRAINED 256 // ends of commands that are read before the box goes

static bool is_creating(struct sandbox *sandbox)
{
    return sandbox_is_in(sandbox, sandbox_in(SANDBOX_CREATING));
}

static int put_event(struct sandbox *sandbox, enum lifecycle_step step,
                     const struct sandbox_record *next, struct error *err)
{
    static const char *const types[LIFECYCLE_STEPS] = {
        [STEP_END] = EVENT_TERMINATED, [STEP_DELETE] = EVENT_DESTROY, [STEP_FAIL] = EVENT_FAILED};
    struct event event = {.type = types[step], .reason = next->reason, .now = next->updated_at};

    if (next->exit_code != NO_EXIT_CODE)
        event_number(&event, "exit_code", next->exit_code);
    if (next->error)
        event_fact(&event, "error", next->error);
    return event_put(sandbox, &event, err);
}

int ending_foresee(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                   int64_t exit_code, int64_t now, struct sandbox_record *next, struct error *err)
{
    sandbox_copy(sandbox, next);
    if (lifecycle_take(next, step, reason, now, err) < 0)
        return -1;
    if (next->exit_code == NO_EXIT_CODE && next->mode == SANDBOX_ONE_SHOT)
        next->exit_code = exit_code == NO_EXIT_CODE ? KILLED : exit_code;
    next->box_slot = SANDBOX_NO_SLOT;
    next->updated_at = now;
    return 0;
}

static bool may_hold_layers(const struct sandbox_record *record)
{
    return record->mode != SANDBOX_ONE_SHOT || record->layers;
}

static int let_go_of_layers(struct sandbox *sandbox, struct error *err)
{
    if (store_checkpoint_remove_all(sandbox->sandboxes->store, sandbox->id, err) < 0)
        return -1;
    return store_layer_release(sandbox->sandboxes->store, sandbox->id, err);
}

int ending_put(struct sandbox *sandbox, enum lifecycle_step step, const struct sandbox_record *next,
               struct error *err)
{
    struct sandboxes *sandboxes = sandbox->sandboxes;

    if (store_sandbox_update(sandboxes->store, next, SANDBOX_PART_STATE | SANDBOX_PART_BOX,
                             lifecycle_from(step), err) < 0 ||
        put_event(sandbox, step, next, err) < 0 ||
        (may_hold_layers(next) && let_go_of_layers(sandbox, err) < 0))
        return -1;
    return store_stream_expire(
        sandboxes->store, sandbox->id,
        next->updated_at + (next->keep_ms ? next->keep_ms : sandboxes->settings->keep_ms), err);
}

/* In memory only: after a crash it is as it was before. */
static int mark_stopping(struct sandbox *sandbox, const char *reason, struct error *err)
{
    autolock(&sandbox->record_lock);
    if (sandbox_is_in(sandbox, sandbox_in(SANDBOX_STOPPING)))
        return 0; // an earlier try got no further
    return sandbox_take_step(sandbox, STEP_STOP, reason, err);
}

struct last_words {
    struct process_exit exits[DRAINED];
    unsigned count;
    struct measure measure;
    bool has_measure;
    char *scratch; // whose files go, or NULL
};

static void hear_last_words(struct sandbox *sandbox, struct last_words *words)
{
    struct box_event event = {0};
    struct error ignored = {0};

    while (words->count < DRAINED && box_next(sandbox->box, &event, 0, &ignored) == 0 &&
           (event.kind == BOX_EVENT_EXIT || event.kind == BOX_EVENT_OUTPUT)) {
        if (event.kind == BOX_EVENT_EXIT)
            words->exits[words->count++] = event.exit;
        else
            sandbox->sandboxes->execution_ops->announce_output(sandbox, &event);
    }
    words->has_measure = measure_take(sandbox, &words->measure, &ignored) == 0;
}

/* The caller has the box_lock. */
static void remove_box(struct sandbox *sandbox, struct last_words *words)
{
    struct error err = {0};

    if (sandbox->box && !sandbox->is_box_over) {
        hear_last_words(sandbox, words);
        monitor_unwatch(sandbox->sandboxes->monitor, sandbox);
        outlet_remove(sandbox->sandboxes->outlets, box_slot(sandbox->box));
        if (box_end(sandbox->box, &err) < 0)
            log_error("a sandbox was not removed whole", F_SANDBOX(sandbox->id),
                      F("error", (const char *)err.text));
        sandbox->is_box_over = true;
        box_free(take(sandbox->box));
    }
    // Also of a box that died by itself, or was gone before this server came.
    words->scratch = sandbox_scratch(sandbox);
}

/* Files that are nobody's any more. */
struct removal {
    struct sandboxes *sandboxes;
    char *scratch;
};

static void count_removal(struct sandboxes *sandboxes, int change)
{
    autolock(&sandboxes->endings.lock);
    sandboxes->endings.n_removals += (unsigned)change;
    lock_condition_wake(&sandboxes->endings.removed);
}

void ending_await_removals(struct sandboxes *sandboxes)
{
    uint64_t until = clock_monotonic_ms() + REMOVALS_MS;

    autolock(&sandboxes->endings.lock);
    while (sandboxes->endings.n_removals > 0 &&
           lock_condition_wait(&sandboxes->endings.removed, &sandboxes->endings.lock, until))
        ;
}

static void run_removal(void *data)
{
    autofree struct removal *removal = data;
    autofree char *scratch = removal->scratch;
    struct volume *volume = engine_volume(removal->sandboxes->engine);
    bool is_tight = volume_is_tight(volume);
    struct error err = {0};

    if (volume_scratch_remove(volume, scratch, &err) < 0 ||
        (is_tight && volume_settle(volume, &err) < 0))
        log_warn("files of a sandbox that it has no more could not be removed",
                 F("scratch", (const char *)scratch), F("error", (const char *)err.text));
    count_removal(removal->sandboxes, -1);
}

/* In the background: large trees take long. Should the server die first, the next one sweeps them. */
static void remove_files(struct sandbox *sandbox, struct last_words *words)
{
    if (!words->scratch)
        return;
    struct removal *removal = xnew(struct removal);
    *removal = (struct removal){sandbox->sandboxes, take(words->scratch)};
    count_removal(sandbox->sandboxes, 1);
    workers_run(sandbox->sandboxes->remover, WORKERS_SLOW, run_removal, removal);
}

static void last_words_free(struct last_words *words)
{
    if (words)
        free(words->scratch);
    free(words);
}
DEFINE_AUTOPTR(last_words)

static void record_measure(struct sandbox *sandbox, const struct last_words *words)
{
    struct error err = {0};

    if (words->has_measure && measure_put(sandbox, &words->measure, &err) < 0)
        log_warn("what a sandbox used could not be recorded", F_SANDBOX(sandbox->id),
                 F("error", (const char *)err.text));
}

static void take_box_away(struct sandbox *sandbox, struct last_words *words)
{
    autobox held = sandbox_hold_box(sandbox);

    remove_box(sandbox, words);
}

static void end_box_but(struct sandbox *sandbox, bool are_files_kept)
{
    autoptr(last_words) words = xnew(struct last_words);

    take_box_away(sandbox, words);
    if (!are_files_kept)
        remove_files(sandbox, words);
    for (unsigned i = 0; i < words->count; i++)
        sandbox->sandboxes->execution_ops->ended(sandbox, &words->exits[i]);
    record_measure(sandbox, words);
}

static void end_box(struct sandbox *sandbox)
{
    end_box_but(sandbox, false);
}

void ending_drop_box(struct sandbox *sandbox)
{
    end_box_but(sandbox, true);
}

static void set_scratch(struct sandbox *sandbox, const char *scratch)
{
    autolock(&sandbox->lock);
    free((char *)sandbox->record.scratch);
    sandbox->record.scratch = xstrdup(scratch);
    sandbox->record.box_slot = SANDBOX_NO_SLOT;
}

void ending_exchange_files(struct sandbox *sandbox, const char *scratch)
{
    autoptr(last_words) words = xnew(struct last_words);

    remove_box(sandbox, words);
    set_scratch(sandbox, scratch);
    remove_files(sandbox, words);
    record_measure(sandbox, words);
}

/* Commands that did not end by themselves, and the sandbox. The caller holds record_lock. */
static int put_all(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                   enum execution_state state, const char *error, struct sandbox_record *next,
                   struct error *err)
{
    const struct execution_ops *ops = sandbox->sandboxes->execution_ops;
    enum store_durability durability = step == STEP_DELETE ? STORE_DURABLE : STORE_FAST;
    autotransaction together = {0};
    int64_t now = (int64_t)clock_wall_ms();
    bool is_put;

    if (ending_foresee(sandbox, step, reason, NO_EXIT_CODE, now, next, err) < 0)
        return -1;
    do
        is_put = store_begin(sandbox->sandboxes->store, durability, &together, err) == 0 &&
                 ops->put_ends(sandbox, state, error, now, err) == 0 &&
                 ending_put(sandbox, step, next, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put)
        return -1;
    ops->end_all(sandbox, state, error, now);
    sandbox_change(sandbox, next);
    return 0;
}

/* Unless its last command has ended it just now, and it is only to end. */
static int put_end(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                   struct error *err)
{
    bool is_failure = strcmp(reason, "box_ended") == 0 || strcmp(reason, "restart") == 0;
    enum execution_state state = is_failure ? EXECUTION_FAILED : EXECUTION_CANCELLED;
    const char *error = is_failure ? "its sandbox ended under it" : NULL;
    autosandbox next = {0};

    autolock(&sandbox->record_lock);
    sandbox->sandboxes->execution_ops->record_shown(sandbox);
    if (step != STEP_DELETE && sandbox_is_over(sandbox))
        return 0;
    return put_all(sandbox, step, reason, state, error, &next, err);
}

static int record_end(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                      struct error *err)
{
    if (put_end(sandbox, step, reason, err) < 0)
        return -1;
    hub_announce(sandbox->sandboxes->hub, sandbox->id);
    if (may_hold_layers(&sandbox->record))
        layers_remove_unused_later(sandbox->sandboxes->layers);
    return 0;
}

/* Somebody else ends it. */
static int await_end(struct sandbox *sandbox, struct error *err)
{
    uint64_t until_ms = clock_monotonic_ms() + PATIENCE_MS;

    autolock(&sandbox->lock);
    while (!(sandbox_in(sandbox->record.state) & SANDBOX_OVER) && sandbox->is_being_ended &&
           lock_condition_wait(&sandbox->changed, &sandbox->lock, until_ms))
        ;
    if (sandbox_in(sandbox->record.state) & SANDBOX_OVER)
        return 0;
    return error_set(err, ERROR_TIMEOUT, "the sandbox has not ended in time; try again");
}

static void give_up(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    sandbox->is_being_ended = false;
    lock_condition_wake(&sandbox->changed);
    watchlist_notice(sandbox);
}

static int end_now(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                   struct error *err)
{
    sandbox->end_reason = reason;
    if (mark_stopping(sandbox, reason, err) < 0 && !sandbox_is_over(sandbox))
        return -1;
    end_box(sandbox);
    return record_end(sandbox, step, reason, err);
}

/* Who deletes to make room finds it. */
static void await_room(struct sandboxes *sandboxes)
{
    if (volume_is_tight(engine_volume(sandboxes->engine)))
        ending_await_removals(sandboxes);
}

int ending_run(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
               struct error *err)
{
    if (atomic_exchange(&sandbox->is_being_ended, true)) {
        if (await_end(sandbox, err) < 0)
            return -1;
        return step == STEP_DELETE ? record_end(sandbox, step, reason, err) : 0;
    }
    int result = end_now(sandbox, step, reason, err);
    if (result < 0)
        give_up(sandbox);
    else if (step == STEP_DELETE)
        await_room(sandbox->sandboxes);
    return result;
}

struct task {
    struct sandbox *sandbox;
    const char *reason;
};

static void run_task(void *data)
{
    autofree struct task *task = data;
    struct error err = {0};

    if (end_now(task->sandbox, STEP_END, task->reason, &err) < 0) {
        log_error("a sandbox could not be ended; it is tried again", F_SANDBOX(task->sandbox->id),
                  F("error", (const char *)err.text));
        give_up(task->sandbox);
    }
    sandbox_free(task->sandbox);
}

void ending_start(struct sandbox *sandbox, const char *reason)
{
    // Nothing can be recorded of one that is still being made. Whoever makes it may fail over the same; else the monitor comes by.
    if (is_creating(sandbox)) {
        sandbox->end_reason = reason;
        watchlist_notice(sandbox);
        return;
    }
    if (atomic_exchange(&sandbox->is_being_ended, true))
        return;
    struct task *task = xnew(struct task);
    *task = (struct task){sandbox_ref(sandbox), reason};
    workers_run(sandbox->sandboxes->reaper, WORKERS_SLOW, run_task, task);
}

static void list_ending(struct sandboxes *sandboxes, struct sandbox *sandbox)
{
    autolock(&sandboxes->endings.lock);
    if (sandboxes->endings.first)
        sandboxes->endings.last->next_ending = sandbox_ref(sandbox);
    else
        sandboxes->endings.first = sandbox_ref(sandbox);
    sandboxes->endings.last = sandbox;
    sandboxes->endings.count++;
}

/* The one that waits for longest, or NULL. */
static struct sandbox *take_ending(struct sandboxes *sandboxes)
{
    autolock(&sandboxes->endings.lock);
    struct sandbox *sandbox = sandboxes->endings.first;
    if (sandbox) {
        sandboxes->endings.first = take(sandbox->next_ending);
        sandboxes->endings.count--;
    }
    return sandbox;
}

/*
 * Jobs that a one-shot sandbox's command did not wait for end with its box. The command's end has ended the sandbox, so nobody else
 * records them; should this fail, the next start does.
 */
static void record_rest(struct sandbox *sandbox)
{
    const struct execution_ops *ops = sandbox->sandboxes->execution_ops;
    int64_t now = (int64_t)clock_wall_ms();
    autotransaction together = {0};
    struct error err = {0};
    bool is_put;

    autolock(&sandbox->record_lock);
    ops->record_shown(sandbox);
    if (!sandbox->executions)
        return;
    do
        is_put = store_begin(sandbox->sandboxes->store, STORE_FAST, &together, &err) == 0 &&
                 ops->put_ends(sandbox, EXECUTION_CANCELLED, NULL, now, &err) == 0 &&
                 store_commit(&together, &err) == 0;
    while (!is_put && store_again(&together, &err));
    if (is_put)
        ops->end_all(sandbox, EXECUTION_CANCELLED, NULL, now);
    else
        log_error("jobs that ended with their sandbox could not be recorded",
                  F_SANDBOX(sandbox->id), F("error", (const char *)err.text));
}

static void run_end_box(void *data)
{
    struct sandbox *sandbox = take_ending(data);

    if (!sandbox)
        return; // somebody has helped
    end_box(sandbox);
    record_rest(sandbox);
    sandbox_free(sandbox);
}

void ending_start_box(struct sandbox *sandbox)
{
    list_ending(sandbox->sandboxes, sandbox);
    workers_run(sandbox->sandboxes->reaper, WORKERS_SLOW, run_end_box, sandbox->sandboxes);
}

bool ending_is_behind(struct sandboxes *sandboxes)
{
    return sandboxes->endings.count > MANY;
}

void ending_help(struct sandboxes *sandboxes)
{
    if (ending_is_behind(sandboxes))
        run_end_box(sandboxes);
}

static void set_error(struct sandbox *sandbox, const char *why)
{
    autolock(&sandbox->lock);
    free((char *)sandbox->record.error);
    sandbox->record.error = xstrdup(why);
}

static int put_failure(struct sandbox *sandbox, const char *why, struct sandbox_record *next,
                       struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    set_error(sandbox, why);
    if (ending_foresee(sandbox, STEP_FAIL, "not_started", NO_EXIT_CODE, (int64_t)clock_wall_ms(),
                       next, err) < 0)
        return -1;
    do
        is_put = store_begin(sandbox->sandboxes->store, STORE_FAST, &together, err) == 0 &&
                 ending_put(sandbox, STEP_FAIL, next, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* Whether that is in the store; why not is in the log. */
static bool record_failure(struct sandbox *sandbox, const char *why)
{
    autosandbox next = {0};
    struct error err = {0};

    autolock(&sandbox->record_lock);
    if (put_failure(sandbox, why, &next, &err) == 0) {
        sandbox_change(sandbox, &next);
        return true;
    }
    log_error("a sandbox that could not be made could not be recorded as failed either",
              F_SANDBOX(sandbox->id), F("error", (const char *)err.text));
    return false;
}

void ending_abandon(struct sandbox *sandbox, bool is_put, bool is_known, const char *why)
{
    sandbox->is_being_ended = true;
    end_box(sandbox);
    bool is_failed = is_put && record_failure(sandbox, why);
    if (is_known && !is_failed) {
        registry_end(sandbox->sandboxes->registry, sandbox, true);
        sandbox_tell_over(sandbox);
    }
    hub_announce(sandbox->sandboxes->hub, sandbox->id);
}
