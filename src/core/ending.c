/* SPDX-License-Identifier: Apache-2.0 */
/* How sandboxes end; see ending.h. */
#include "core/ending.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/command.h"
#include "core/keeper.h"
#include "core/layers.h"
#include "core/measure.h"
#include "core/note.h"
#include "store/checkpoints.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define KILLED 137
#define PATIENCE_S 60
#define MANY 8      // boxes that wait to be removed
#define DRAINED 256 // ends of commands that are read before the box goes

bool live_is_over(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    bool is_over = (sandbox_in(live->record.state) & SANDBOX_OVER) != 0;
    (void)pthread_mutex_unlock(&live->lock);
    return is_over;
}

static bool is_creating(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    bool is_so = live->record.state == SANDBOX_CREATING;
    (void)pthread_mutex_unlock(&live->lock);
    return is_so;
}

static int put_event(struct live *live, enum lifecycle_step step, const struct sandbox_record *next,
                     struct error *err)
{
    static const char *const types[LIFECYCLE_STEPS] = {
        [STEP_END] = EVENT_TERMINATED, [STEP_DELETE] = EVENT_DESTROY, [STEP_FAIL] = EVENT_FAILED};
    struct note note = {.type = types[step], .reason = next->reason, .now = next->updated_at};

    if (next->exit_code != NO_EXIT_CODE)
        note_number(&note, "exit_code", next->exit_code);
    if (next->error)
        note_fact(&note, "error", next->error);
    return note_put(live, &note, err);
}

int ending_foresee(struct live *live, enum lifecycle_step step, const char *reason,
                   int64_t exit_code, int64_t now, struct sandbox_record *next, struct error *err)
{
    live_copy(live, next);
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

static int let_go_of_layers(struct live *live, struct error *err)
{
    if (store_checkpoint_remove_all(live->core->store, live->id, err) < 0)
        return -1;
    return store_layer_release(live->core->store, live->id, err);
}

int ending_put(struct live *live, enum lifecycle_step step, const struct sandbox_record *next,
               struct error *err)
{
    struct core *core = live->core;

    if (store_sandbox_update(core->store, next, SANDBOX_PART_STATE | SANDBOX_PART_BOX,
                             lifecycle_from(step), err) < 0 ||
        put_event(live, step, next, err) < 0 ||
        (may_hold_layers(next) && let_go_of_layers(live, err) < 0))
        return -1;
    return store_stream_expire(
        core->store, live->id,
        next->updated_at + (next->keep_ms ? next->keep_ms : core->settings.keep_ms), err);
}

/* In memory only: after a crash it is as it was before. */
static int mark_stopping(struct live *live, const char *reason, struct error *err)
{
    (void)pthread_mutex_lock(&live->turn);
    (void)pthread_mutex_lock(&live->lock);
    int result =
        live->record.state == SANDBOX_STOPPING
            ? 0 // an earlier try got no further
            : lifecycle_take(&live->record, STEP_STOP, reason, (int64_t)clock_wall_ms(), err);
    (void)pthread_mutex_unlock(&live->lock);
    (void)pthread_mutex_unlock(&live->turn);
    return result;
}

struct last_words {
    struct process_exit exits[DRAINED];
    unsigned count;
    struct measure measure;
    bool has_measure;
    char scratch[80];
};

static void hear_last_words(struct live *live, struct last_words *words)
{
    struct box_event event = {0};
    struct error ignored = {0};

    while (words->count < DRAINED && box_next(live->box, &event, 0, &ignored) == 0 &&
           (event.kind == BOX_EVENT_EXIT || event.kind == BOX_EVENT_OUTPUT)) {
        if (event.kind == BOX_EVENT_EXIT)
            words->exits[words->count++] = event.exit;
    }
    words->has_measure = measure_take(live, &words->measure, &ignored) == 0;
}

/* The caller has the box_lock. */
static void remove_box(struct live *live, struct last_words *words)
{
    struct error err = {0};

    if (live->box && !live->is_box_over) {
        hear_last_words(live, words);
        keeper_unwatch(live->core->keeper, live);
        if (box_end(live->box, &err) < 0)
            log_error("a box could not be removed whole", F("sandbox", (const char *)live->id),
                      F("error", (const char *)err.text));
        live->is_box_over = true;
        box_free(take(live->box));
    }
    // Also of a box that died by itself, or was gone before this server came.
    (void)snprintf(words->scratch, sizeof words->scratch, "%s",
                   live->record.scratch ? live->record.scratch : "");
}

static void remove_files(struct live *live, const struct last_words *words)
{
    struct error err = {0};

    if (words->scratch[0] &&
        volume_scratch_remove(engine_volume(live->core->engine), words->scratch, &err) < 0)
        log_warn("files of a sandbox that it has no more could not be removed",
                 F("sandbox", (const char *)live->id), F("error", (const char *)err.text));
}

static void record_measure(struct live *live, const struct last_words *words)
{
    struct error err = {0};

    if (words->has_measure && measure_put(live, &words->measure, &err) < 0)
        log_warn("what a sandbox used could not be recorded", F("sandbox", (const char *)live->id),
                 F("error", (const char *)err.text));
}

static void end_box_but(struct live *live, bool are_files_kept)
{
    autofree struct last_words *words = xnew(struct last_words);

    (void)pthread_mutex_lock(&live->box_lock);
    remove_box(live, words);
    live_unlock_box(live);
    if (!are_files_kept)
        remove_files(live, words);
    for (unsigned i = 0; i < words->count; i++)
        command_ended(live, &words->exits[i]);
    record_measure(live, words);
}

static void end_box(struct live *live)
{
    end_box_but(live, false);
}

void ending_drop_box(struct live *live)
{
    end_box_but(live, true);
}

void ending_exchange_files(struct live *live, const char *scratch)
{
    autofree struct last_words *words = xnew(struct last_words);

    remove_box(live, words);
    (void)pthread_mutex_lock(&live->lock);
    autofree char *before = (char *)live->record.scratch;
    live->record.scratch = xstrdup(scratch);
    live->record.box_slot = SANDBOX_NO_SLOT;
    (void)pthread_mutex_unlock(&live->lock);
    remove_files(live, words);
    record_measure(live, words);
}

/* Commands that did not end by themselves, and the sandbox. The caller has the turn. */
static int put_all(struct live *live, enum lifecycle_step step, const char *reason,
                   enum execution_state state, const char *error, struct sandbox_record *next,
                   struct error *err)
{
    enum store_durability durability = step == STEP_DELETE ? STORE_DURABLE : STORE_FAST;
    autotransaction together = {0};
    int64_t now = (int64_t)clock_wall_ms();
    bool is_put;

    if (ending_foresee(live, step, reason, NO_EXIT_CODE, now, next, err) < 0)
        return -1;
    do
        is_put = store_begin(live->core->store, durability, &together, err) == 0 &&
                 command_put_ends(live, state, error, now, err) == 0 &&
                 ending_put(live, step, next, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put)
        return -1;
    command_end_all(live, state, error, now);
    live_change(live, next);
    return 0;
}

static int record_end(struct live *live, enum lifecycle_step step, const char *reason,
                      struct error *err)
{
    bool is_failure = strcmp(reason, "box_ended") == 0 || strcmp(reason, "restart") == 0;
    enum execution_state state = is_failure ? EXECUTION_FAILED : EXECUTION_CANCELLED;
    const char *error = is_failure ? "its sandbox ended under it" : NULL;
    autosandbox next = {0};

    (void)pthread_mutex_lock(&live->turn);
    int result = 0;
    if (step == STEP_DELETE || !live_is_over(live)) // its last command may just have ended it
        result = put_all(live, step, reason, state, error, &next, err);
    (void)pthread_mutex_unlock(&live->turn);
    if (result == 0)
        hub_tell(live->core->hub, live->id);
    if (result == 0 && may_hold_layers(&live->record))
        layers_tidy(live->core);
    return result;
}

/* Somebody else ends it. */
static int await_end(struct live *live, struct error *err)
{
    struct timespec deadline;
    int code = 0;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&live->lock);
    while (!(sandbox_in(live->record.state) & SANDBOX_OVER) && live->is_being_ended &&
           code != ETIMEDOUT)
        code = pthread_cond_timedwait(&live->changed, &live->lock, &deadline);
    bool is_over = (sandbox_in(live->record.state) & SANDBOX_OVER) != 0;
    (void)pthread_mutex_unlock(&live->lock);
    return is_over ? 0
                   : error_set(err, ERROR_TIMEOUT, "the sandbox has not ended in time; try again");
}

static void give_up(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    live->is_being_ended = false;
    (void)pthread_cond_broadcast(&live->changed);
    (void)pthread_mutex_unlock(&live->lock);
}

static int end_now(struct live *live, enum lifecycle_step step, const char *reason,
                   struct error *err)
{
    live->end_reason = reason;
    if (mark_stopping(live, reason, err) < 0 && !live_is_over(live))
        return -1;
    end_box(live);
    return record_end(live, step, reason, err);
}

int ending_run(struct live *live, enum lifecycle_step step, const char *reason, struct error *err)
{
    if (atomic_exchange(&live->is_being_ended, true)) {
        if (await_end(live, err) < 0)
            return -1;
        return step == STEP_DELETE ? record_end(live, step, reason, err) : 0;
    }
    int result = end_now(live, step, reason, err);
    if (result < 0)
        give_up(live);
    return result;
}

struct task {
    struct live *live;
    const char *reason;
};

static void run_task(void *data)
{
    autofree struct task *task = data;
    struct error err = {0};

    if (end_now(task->live, STEP_END, task->reason, &err) < 0) {
        log_error("a sandbox could not be ended; it is tried again",
                  F("sandbox", (const char *)task->live->id), F("error", (const char *)err.text));
        give_up(task->live);
    }
    live_free(task->live);
}

void ending_start(struct live *live, const char *reason)
{
    struct error err = {0};

    // Nothing can be recorded of one that is still being made. Whoever makes it may fail over the same; else the keeper comes by.
    if (is_creating(live)) {
        live->end_reason = reason;
        return;
    }
    if (atomic_exchange(&live->is_being_ended, true))
        return;
    struct task *task = xnew(struct task);
    *task = (struct task){live_ref(live), reason};
    if (workers_submit(live->core->crew, WORKERS_SLOW, run_task, task, &err) < 0) {
        live_free(live);
        free(task);
        give_up(live); // the keeper comes by again
    }
}

static void list_ending(struct live *live)
{
    struct core *core = live->core;

    live_ref(live);
    (void)pthread_mutex_lock(&core->endings.lock);
    if (core->endings.first)
        core->endings.last->next_ending = live;
    else
        core->endings.first = live;
    core->endings.last = live;
    core->endings.count++;
    (void)pthread_mutex_unlock(&core->endings.lock);
}

/* The one that waits for longest, or NULL. */
static struct live *take_ending(struct core *core)
{
    (void)pthread_mutex_lock(&core->endings.lock);
    struct live *live = core->endings.first;
    if (live) {
        core->endings.first = take(live->next_ending);
        core->endings.count--;
    }
    (void)pthread_mutex_unlock(&core->endings.lock);
    return live;
}

static void run_end_box(void *data)
{
    struct live *live = take_ending(data);

    if (!live)
        return; // somebody has helped
    end_box(live);
    live_free(live);
}

void ending_start_box(struct live *live)
{
    struct core *core = live->core;
    struct error err = {0};

    list_ending(live);
    if (workers_submit(core->crew, WORKERS_SLOW, run_end_box, core, &err) < 0)
        run_end_box(core); // slower for whoever is here, but nothing is left
}

bool ending_is_behind(struct core *core)
{
    return core->endings.count > MANY;
}

void ending_help(struct core *core)
{
    if (ending_is_behind(core))
        run_end_box(core);
}

static int put_failure(struct live *live, const char *why, struct sandbox_record *next,
                       struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    (void)pthread_mutex_lock(&live->lock);
    free((char *)live->record.error);
    live->record.error = xstrdup(why);
    (void)pthread_mutex_unlock(&live->lock);
    if (ending_foresee(live, STEP_FAIL, "not_started", NO_EXIT_CODE, (int64_t)clock_wall_ms(), next,
                       err) < 0)
        return -1;
    do
        is_put = store_begin(live->core->store, STORE_FAST, &together, err) == 0 &&
                 ending_put(live, STEP_FAIL, next, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

void ending_bury(struct live *live, bool is_put, bool is_known, const char *why)
{
    autosandbox next = {0};
    struct error err = {0};

    live->is_being_ended = true;
    end_box(live);
    (void)pthread_mutex_lock(&live->turn);
    bool is_failed = is_put && put_failure(live, why, &next, &err) == 0;
    if (is_failed)
        live_change(live, &next);
    (void)pthread_mutex_unlock(&live->turn);
    if (is_put && !is_failed)
        log_error("a sandbox that could not be made could not be recorded as failed either",
                  F("sandbox", (const char *)live->id), F("error", (const char *)err.text));
    if (is_known && !is_failed)
        registry_end(live->core->registry, live, true);
    hub_tell(live->core->hub, live->id);
}
