/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of executions and jobs; see execution.h. */
#include "core/execution.h"

#include "base/clock.h"
#include "core/command.h"
#include "core/ending.h"
#include "core/lookup.h"
#include "core/note.h"
#include "core/once.h"
#include "core/queue.h"
#include "engine/files.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define STOP_PATIENCE_MS 5000
#define KILL_AGAIN_MS 500 // should the first have been lost
#define FILE_TIMEOUT_MS 60000

static const char *noun_of(const enum execution_kind *kind)
{
    return kind && *kind == EXECUTION_JOB ? "job" : "execution";
}

static bool is_restless(const struct live *live)
{
    return live->record.state == SANDBOX_PAUSING || live->record.state == SANDBOX_RESUMING;
}

/* Takes a place in the sandbox, or says why there is none; 1: not now, it is on its way to another state. */
static int reserve(struct live *live, enum execution_kind kind, uint64_t *era, struct error *err)
{
    (void)pthread_mutex_lock(&live->lock);
    int64_t maximum = live->record.max_executions;
    int result = is_restless(live) ? 1 : lifecycle_check(&live->record, STEP_BEGIN, err);
    *era = live->era;
    if (result == 0 && kind == EXECUTION_COMMAND && maximum > 0 && live->n_executions >= maximum) {
        error_set(err, ERROR_CONFLICT,
                  "the sandbox is busy: a command is running in it; wait for it or stop it");
        result = error_about(err, "sandbox", "busy");
    } else if (result == 0 && kind == EXECUTION_COMMAND && live->record.mode == SANDBOX_ONE_SHOT) {
        error_set(err, ERROR_CONFLICT, "a one-shot sandbox runs one command only");
        result = error_about(err, "sandbox", "busy");
    }
    if (result == 0) {
        live->n_executions += kind == EXECUTION_COMMAND;
        live->n_jobs += kind == EXECUTION_JOB;
    }
    (void)pthread_mutex_unlock(&live->lock);
    return result;
}

/* The same once it is awake. */
static int enter(struct live *live, enum execution_kind kind, uint64_t *era, bool *was_paused,
                 struct error *err)
{
    int result;

    do {
        bool has_slept = false;
        if (live_awake(live, &has_slept, err) < 0)
            return -1;
        *was_paused |= has_slept;
        result = reserve(live, kind, era, err);
    } while (result > 0);
    return result;
}

static void give_back(struct live *live, enum execution_kind kind)
{
    (void)pthread_mutex_lock(&live->lock);
    live->n_executions -= kind == EXECUTION_COMMAND;
    live->n_jobs -= kind == EXECUTION_JOB;
    (void)pthread_mutex_unlock(&live->lock);
}

static int write_files(struct live *live, const struct execution_request *request,
                       struct error *err)
{
    autofd conversation = -1;

    if (request->n_files == 0)
        return 0;
    if (live_files(live, &conversation, err) < 0 ||
        files_set_timeout(conversation, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    for (size_t i = 0; i < request->n_files; i++) {
        const struct sandbox_file *file = &request->files[i];
        if (files_write_buffer(conversation, file->path, 0644, FILES_PARENTS, file->data,
                               file->length, err) < 0) {
            error_wrap(err, "write '%.200s'", file->path);
            return error_about(err, "file", NULL);
        }
    }
    return 0;
}

struct start {
    struct live *live;
    const struct actor *actor;
    const struct execution_request *request;
    struct running *running;
    uint64_t era; // of the sandbox, when there was a place in it
};

/* The caller has the turn. */
static int put_start(const struct start *start, struct sandbox_record *next, struct error *err)
{
    struct core *core = start->live->core;
    bool is_job = start->request->kind == EXECUTION_JOB;
    struct note note = {.type = EVENT_STARTED,
                        .reason = is_job ? "job" : "execution",
                        .now = start->running->record.started_at};
    unsigned parts = SANDBOX_PART_LIVING | SANDBOX_PART_DEADLINES;
    autotransaction together = {0};
    bool is_put;

    note_fact(&note, is_job ? "job" : "execution", start->running->id);
    live_copy(start->live, next);
    if (!is_job && lifecycle_take(next, STEP_BEGIN, NULL, note.now, err) < 0)
        return -1;
    next->updated_at = next->active_at = note.now;
    do
        is_put =
            store_begin(core->store, STORE_FAST, &together, err) == 0 &&
            store_sandbox_update(core->store, next, parts, SANDBOX_ALIVE, err) == 0 &&
            command_put(start->live, start->running, err) == 0 &&
            note_put(start->live, &note, err) == 0 &&
            once_finish(core, start->actor, start->request->once, start->running->id, err) == 0 &&
            store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* The turn, of one that is awake: whoever leads it through another state is not disturbed. */
static int take_turn(struct live *live, struct error *err)
{
    const unsigned asleep =
        sandbox_in(SANDBOX_PAUSING) | sandbox_in(SANDBOX_PAUSED) | sandbox_in(SANDBOX_RESUMING);
    bool was_paused;

    for (;;) {
        (void)pthread_mutex_lock(&live->turn);
        if (!live_is_in(live, asleep))
            return 0;
        (void)pthread_mutex_unlock(&live->turn);
        if (live_awake(live, &was_paused, err) < 0)
            return -1;
    }
}

static int record_start(const struct start *start, struct execution_record *out, struct error *err)
{
    struct live *live = start->live;
    autosandbox next = {0};

    if (take_turn(live, err) < 0)
        return -1;
    // Whoever ends the sandbox has been here before or comes after; in between there is no third.
    // The same holds of going back to a checkpoint, which ends all that is recorded.
    int result = live->era == start->era ? lifecycle_check(&live->record, STEP_BEGIN, err)
                                         : live_went_back(err);
    if (result == 0)
        result = put_start(start, &next, err);
    if (result < 0) {
        (void)pthread_mutex_unlock(&live->turn);
        return -1;
    }
    live_change(live, &next);
    running_copy(start->running, out);
    command_recorded(live, start->running); // gives the turn back
    hub_tell(live->core->hub, live->id);
    return 0;
}

static int run(struct start *start, struct execution_record *out, struct error *err)
{
    if (command_prepare(start->live, start->actor, start->request, &start->running, err) < 0)
        return -1;
    if (write_files(start->live, start->request, err) == 0 &&
        command_spawn(start->live, start->running, err) == 0 && record_start(start, out, err) == 0)
        return 0;
    command_abort(start->live, start->running);
    return -1;
}

/* What has a place already; false: not now, as in reserve. */
static bool note_era(struct live *live, uint64_t *era)
{
    (void)pthread_mutex_lock(&live->lock);
    bool is_calm = !is_restless(live);
    *era = live->era;
    (void)pthread_mutex_unlock(&live->lock);
    return is_calm;
}

int command_start_queued(struct live *live, struct running *running, struct error *err)
{
    const struct execution_request request = {.kind = running->record.kind};
    struct start start = {live, NULL, &request, running, 0};
    autoexecution started = {0};
    bool was_paused;

    do {
        if (live_awake(live, &was_paused, err) < 0 || live_ensure_box(live, err) < 0)
            return -1;
    } while (!note_era(live, &start.era));
    if (command_equip(live, running, err) < 0)
        return -1;
    if (running_is_cancelled(running) || command_spawn(live, running, err) < 0 ||
        record_start(&start, &started, err) < 0) {
        command_abort(live, running);
        return -1;
    }
    // Whoever cancelled it before it was recorded has left that to us; whoever does now finds it in the box.
    if (running_is_cancelled(running))
        command_kill(live, running);
    return 0;
}

static int check_waiting(const struct execution_request *request, struct error *err)
{
    if (request->n_files || request->stdin_stream || request->once ||
        request->standard_output.target != OUTPUT_TO_NEW ||
        request->standard_error.target != OUTPUT_TO_NEW)
        return error_set(err, ERROR_INVALID,
                         "a command that waits has no files, input or streams of the user's");
    return 0;
}

/* What may not run has a record all the same. */
static int record_refusal(struct live *live, const struct actor *actor,
                          const struct execution_request *request, struct execution_record *out,
                          struct error *err)
{
    autoptr(running) running = NULL;
    struct note note = {
        .type = EVENT_COMPLETED, .reason = "execution", .now = (int64_t)clock_wall_ms()};
    autotransaction together = {0};
    bool is_put;

    if (check_waiting(request, err) < 0 ||
        command_describe(live, actor, request, &running, err) < 0)
        return -1;
    struct execution_record *record = &running->record;
    record->state = EXECUTION_FAILED;
    record->cause = EXECUTION_NOT_RUN;
    record->started_at = record->ended_at = record->updated_at = note.now;
    note_fact(&note, "execution", running->id);
    note_fact(&note, "state", execution_state_name(record->state));
    do {
        record->number = 0; // the store gives it one
        is_put = store_begin(live->core->store, STORE_FAST, &together, err) == 0 &&
                 store_execution_add(live->core->store, record, err) == 0 &&
                 note_put(live, &note, err) == 0 && store_commit(&together, err) == 0;
    } while (!is_put && store_again(&together, err));
    if (!is_put)
        return -1;
    running_copy(running, out);
    return 0;
}

static int start_command(struct core *core, const struct actor *actor, const char *sandbox_id,
                         const struct execution_request *request, struct execution_record *out,
                         bool *was_paused, struct error *err)
{
    autoptr(live) live = NULL;

    if (lookup_live(core, actor, sandbox_id, &live, err) < 0)
        return -1;
    if (request->refused)
        return record_refusal(live, actor, request, out, err);
    live_touch(live); // before its state is looked at: see live_rest
    struct start start = {live, actor, request, NULL, 0};
    if (enter(live, request->kind, &start.era, was_paused, err) < 0)
        return -1;
    int result = live_ensure_box(live, err);
    if (result == 0)
        result = run(&start, out, err);
    running_free(start.running);
    if (result < 0)
        give_back(live, request->kind);
    return result;
}

int execution_start(struct core *core, const struct actor *actor, const char *sandbox_id,
                    const struct execution_request *request, struct execution_record *out,
                    struct error *err)
{
    bool was_paused = false;
    return execution_start_awake(core, actor, sandbox_id, request, out, &was_paused, err);
}

int execution_start_awake(struct core *core, const struct actor *actor, const char *sandbox_id,
                          const struct execution_request *request, struct execution_record *out,
                          bool *was_paused, struct error *err)
{
    char earlier[ID_TEXT];
    bool is_new = false;

    *was_paused = false;

    if (once_claim(core, actor, request->once, &is_new, earlier, err) < 0)
        return -1;
    if (!is_new)
        return execution_get(core, actor, earlier, &request->kind, out, err);
    if (start_command(core, actor, sandbox_id, request, out, was_paused, err) == 0)
        return 0;
    once_release(core, actor, request->once);
    return -1;
}

/* The caller has a place in the sandbox and one in the queue for it. */
static int record_queued(struct live *live, const struct actor *actor,
                         const struct execution_request *request, struct execution_record *out,
                         struct error *err)
{
    struct core *core = live->core;
    autoptr(running) running = NULL;

    if (command_describe(live, actor, request, &running, err) < 0 ||
        store_execution_add(core->store, &running->record, err) < 0)
        return -1;
    running->is_queued = true;
    running_copy(running, out);
    registry_add_command(core->registry, running);
    queue_add(core->queue, running);
    return 0;
}

int execution_enqueue(struct core *core, const struct actor *actor, const char *sandbox_id,
                      const struct execution_request *request, struct execution_record *out,
                      struct error *err)
{
    autoptr(live) live = NULL;
    bool was_paused = false;
    uint64_t era;

    if (check_waiting(request, err) < 0 || lookup_live(core, actor, sandbox_id, &live, err) < 0)
        return -1;
    live_touch(live); // before its state is looked at: see live_rest
    if (queue_reserve(core->queue, err) < 0)
        return -1;
    if (enter(live, request->kind, &era, &was_paused, err) < 0) {
        queue_give_back(core->queue);
        return -1;
    }
    if (record_queued(live, actor, request, out, err) == 0)
        return 0;
    give_back(live, request->kind);
    queue_give_back(core->queue);
    return -1;
}

static bool is_visible(const struct execution_record *record, const struct actor *actor,
                       const enum execution_kind *kind)
{
    return actor_sees(actor, &record->owner) && (!kind || *kind == record->kind);
}

int execution_get_quick(struct core *core, const struct actor *actor, const char *id,
                        const enum execution_kind *kind, struct execution_record *out,
                        struct error *err)
{
    autoptr(running) running = registry_find_command(core->registry, id);

    if (!running)
        return 0;
    (void)pthread_mutex_lock(&running->lock);
    bool is_seen = is_visible(&running->record, actor, kind);
    if (is_seen)
        execution_record_copy(out, &running->record);
    (void)pthread_mutex_unlock(&running->lock);
    return is_seen ? 1 : lookup_missing(noun_of(kind), id, err);
}

int execution_get(struct core *core, const struct actor *actor, const char *id,
                  const enum execution_kind *kind, struct execution_record *out, struct error *err)
{
    autoexecution record = {0};

    int known = execution_get_quick(core, actor, id, kind, out, err);
    if (known != 0)
        return known == 1 ? 0 : -1;
    if (store_execution_get(core->store, id, &record, err) < 0)
        return err->kind == ERROR_NOT_FOUND ? lookup_missing(noun_of(kind), id, err) : -1;
    if (!is_visible(&record, actor, kind))
        return lookup_missing(noun_of(kind), id, err);
    *out = record;
    record = (struct execution_record){0};
    return 0;
}

int execution_list(struct core *core, const struct actor *actor,
                   const struct execution_filter *filter, struct execution_list *out,
                   struct error *err)
{
    struct execution_filter own = *filter;
    autosandbox sandbox = {0};

    if (filter->sandbox_id)
        lookup_settle(core, filter->sandbox_id);
    if (filter->sandbox_id && lookup_record(core, actor, filter->sandbox_id, &sandbox, err) < 0)
        return -1;
    own.owner = actor_filter(actor);
    own.owner.project = filter->owner.project;
    return store_execution_list(core->store, &own, out, err);
}

/* That somebody asked for it is written down first: whatever happens then, it was cancelled. The caller has the turn. */
static int put_stop(struct live *live, struct running *running, const char *reason,
                    struct error *err)
{
    struct execution_record next = running->record;

    next.stop_at = next.updated_at = (int64_t)clock_wall_ms();
    next.stop_reason = reason;
    if (store_execution_update(live->core->store, &next, EXECUTION_PART_STOP, EXECUTION_OPEN, err) <
        0)
        return -1;
    (void)pthread_mutex_lock(&running->lock);
    running->record.stop_at = next.stop_at;
    free((char *)running->record.stop_reason);
    running->record.stop_reason = reason ? strdup(reason) : NULL;
    (void)pthread_mutex_unlock(&running->lock);
    return 0;
}

static int stop_running(struct live *live, struct running *running, bool is_forced,
                        const char *reason, struct error *err)
{
    (void)pthread_mutex_lock(&live->turn);
    int result = execution_is_over(&running->record) || running->record.stop_at
                     ? 0
                     : put_stop(live, running, reason, err);
    bool is_started = running->is_recorded && !execution_is_over(&running->record);
    (void)pthread_mutex_unlock(&live->turn);
    if (result < 0 || !is_started)
        return result; // one that is just being started is killed by whoever starts it
    if (!is_forced && running->kill_at == 0)
        running->kill_at = (int64_t)clock_wall_ms() + STOP_PATIENCE_MS;
    if (live_lock_box(live, err) < 0)
        return 0; // it ends with its sandbox
    result = box_signal(live->box, running->number, is_forced ? SIGKILL : SIGTERM, is_forced, err);
    live_unlock_box(live);
    return result;
}

int execution_stop(struct core *core, const struct actor *actor, const char *id,
                   const enum execution_kind *kind, bool is_forced, const char *reason,
                   struct execution_record *out, struct error *err)
{
    autoexecution record = {0};

    if (execution_get(core, actor, id, kind, &record, err) < 0)
        return -1;
    autoptr(live) live = registry_find(core->registry, record.sandbox_id);
    autoptr(running) running = registry_find_command(core->registry, id);
    bool was_waiting = running && queue_remove(core->queue, running);
    int result = 0;
    if (live && running && !execution_is_over(&record))
        result = stop_running(live, running, is_forced, reason, err);
    if (was_waiting)
        queue_end(core->queue, running, EXECUTION_CANCELLED, NULL);
    return result < 0 ? -1 : execution_get(core, actor, id, kind, out, err);
}

/* That somebody asked for its end, whatever its state. Where it is in memory the caller has the turn. */
static int put_mark(struct core *core, struct running *running,
                    const struct execution_record *record, const char *reason, struct error *err)
{
    struct execution_record next = *record; // texts are borrowed

    next.updated_at = (int64_t)clock_wall_ms();
    if (next.stop_at == 0)
        next.stop_at = next.updated_at;
    if (reason)
        next.stop_reason = reason;
    if (store_execution_update(core->store, &next, EXECUTION_PART_STOP, 0, err) < 0)
        return -1;
    if (running)
        running_set(running, &next);
    return 0;
}

/* In memory, and its sandbox too. */
static int cancel_known(struct live *live, struct running *running, const char *reason,
                        struct error *err)
{
    (void)pthread_mutex_lock(&live->turn);
    int result = put_mark(live->core, running, &running->record, reason, err);
    bool is_started = running->is_recorded && !execution_is_over(&running->record);
    (void)pthread_mutex_unlock(&live->turn);
    if (result < 0 || !is_started)
        return result; // one that is just being started is killed by whoever starts it
    running->kill_at = (int64_t)clock_wall_ms() + KILL_AGAIN_MS;
    command_kill(live, running);
    return 0;
}

int execution_cancel(struct core *core, const struct actor *actor, const char *id,
                     const char *reason, struct execution_record *out, struct error *err)
{
    autoexecution record = {0};
    int result;

    if (execution_get(core, actor, id, NULL, &record, err) < 0)
        return -1;
    autoptr(live) live = registry_find(core->registry, record.sandbox_id);
    autoptr(running) running = registry_find_command(core->registry, id);
    bool was_waiting = running && queue_remove(core->queue, running);
    if (live && running)
        result = cancel_known(live, running, reason, err);
    else
        result = put_mark(core, running, &record, reason, err);
    if (was_waiting)
        queue_end(core->queue, running, EXECUTION_CANCELLED, NULL);
    return result < 0 ? -1 : execution_get(core, actor, id, NULL, out, err);
}

int execution_count(struct core *core, const struct actor *actor, int64_t since,
                    struct execution_outcomes *out, struct error *err)
{
    struct store_owner owner = actor_filter(actor);

    owner.scope = NULL;
    return store_execution_outcomes(core->store, &owner, since, out, err);
}
