/* SPDX-License-Identifier: Apache-2.0 */
/* What can be asked of executions and jobs; see execution.h. */
#include "core/execution/execution.h"

#include "base/clock.h"
#include "core/execution/command.h"
#include "core/execution/execution_info_impl.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/lookup.h"
#include "core/event/event_write.h"
#include "core/account/once.h"
#include "core/execution/queue.h"
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

static bool is_restless(const struct sandbox *sandbox)
{
    return sandbox->record.state == SANDBOX_PAUSING || sandbox->record.state == SANDBOX_RESUMING;
}

/* Takes a place in the sandbox, or says why there is none; 1: not now, it is on its way to another state. */
static int reserve(struct sandbox *sandbox, enum execution_kind kind, uint64_t *restore_count,
                   struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    int64_t maximum = sandbox->record.max_executions;
    int result = is_restless(sandbox) ? 1 : lifecycle_check(&sandbox->record, STEP_BEGIN, err);
    *restore_count = sandbox->restore_count;
    if (result == 0 && kind == EXECUTION_COMMAND && maximum > 0 &&
        sandbox->n_executions >= maximum) {
        error_set(err, ERROR_CONFLICT,
                  "the sandbox is busy: a command is running in it; wait for it or stop it");
        result = error_about(err, "sandbox", "busy");
    } else if (result == 0 && kind == EXECUTION_COMMAND &&
               sandbox->record.mode == SANDBOX_ONE_SHOT) {
        error_set(err, ERROR_CONFLICT, "a one-shot sandbox runs one command only");
        result = error_about(err, "sandbox", "busy");
    }
    if (result == 0) {
        sandbox->n_executions += kind == EXECUTION_COMMAND;
        sandbox->n_jobs += kind == EXECUTION_JOB;
    }
    (void)pthread_mutex_unlock(&sandbox->lock);
    return result;
}

/* The same once it is awake. */
static int enter(struct sandbox *sandbox, enum execution_kind kind, uint64_t *restore_count,
                 bool *was_paused, struct error *err)
{
    int result;

    do {
        bool has_slept = false;
        if (sandbox_awake(sandbox, &has_slept, err) < 0)
            return -1;
        *was_paused |= has_slept;
        result = reserve(sandbox, kind, restore_count, err);
    } while (result > 0);
    return result;
}

static void give_back(struct sandbox *sandbox, enum execution_kind kind)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    sandbox->n_executions -= kind == EXECUTION_COMMAND;
    sandbox->n_jobs -= kind == EXECUTION_JOB;
    (void)pthread_mutex_unlock(&sandbox->lock);
}

static int write_files(struct sandbox *sandbox, const struct execution_request *request,
                       struct error *err)
{
    autofd conversation = -1;

    if (request->n_files == 0)
        return 0;
    if (sandbox_files(sandbox, &conversation, err) < 0 ||
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
    struct sandbox *sandbox;
    const struct actor *actor;
    const struct execution_request *request;
    struct execution *execution;
    uint64_t restore_count; // of the sandbox, when there was a place in it
};

/* The caller holds record_lock. */
static int put_start(const struct start *start, struct sandbox_record *next, struct error *err)
{
    struct core *core = start->sandbox->core;
    bool is_job = start->request->kind == EXECUTION_JOB;
    struct event event = {.type = EVENT_STARTED,
                          .reason = is_job ? "job" : "execution",
                          .now = start->execution->record.started_at};
    autotransaction together = {0};

    event_fact(&event, is_job ? "job" : "execution", start->execution->id);
    sandbox_copy(start->sandbox, next);
    if (!is_job && lifecycle_take(next, STEP_BEGIN, NULL, event.now, err) < 0)
        return -1;
    next->updated_at = next->active_at = event.now;
    if (store_begin(core->store, STORE_FAST, &together, err) < 0 ||
        store_sandbox_update(core->store, next, SANDBOX_PART_LIVING | SANDBOX_PART_DEADLINES,
                             SANDBOX_ALIVE, err) < 0 ||
        command_put(start->sandbox, start->execution, err) < 0 ||
        event_put(start->sandbox, &event, err) < 0 ||
        once_finish(core, start->actor, start->request->once, start->execution->id, err) < 0)
        return -1;
    return store_commit(&together, err);
}

/* record_lock of one that is awake: whoever leads it through another state is not disturbed. */
static int take_record_lock(struct sandbox *sandbox, struct error *err)
{
    const unsigned asleep =
        sandbox_in(SANDBOX_PAUSING) | sandbox_in(SANDBOX_PAUSED) | sandbox_in(SANDBOX_RESUMING);
    bool was_paused;

    for (;;) {
        (void)pthread_mutex_lock(&sandbox->record_lock);
        if (!sandbox_is_in(sandbox, asleep))
            return 0;
        (void)pthread_mutex_unlock(&sandbox->record_lock);
        if (sandbox_awake(sandbox, &was_paused, err) < 0)
            return -1;
    }
}

static int record_start(const struct start *start, struct execution_record *out, struct error *err)
{
    struct sandbox *sandbox = start->sandbox;
    autosandbox next = {0};

    if (take_record_lock(sandbox, err) < 0)
        return -1;
    // Whoever ends the sandbox has been here before or comes after; in between there is no third.
    // The same holds of going back to a checkpoint, which ends all that is recorded.
    int result = sandbox->restore_count == start->restore_count
                     ? lifecycle_check(&sandbox->record, STEP_BEGIN, err)
                     : sandbox_went_back(err);
    if (result == 0)
        result = put_start(start, &next, err);
    if (result < 0) {
        (void)pthread_mutex_unlock(&sandbox->record_lock);
        return -1;
    }
    sandbox_change(sandbox, &next);
    execution_copy(start->execution, out);
    command_recorded(sandbox, start->execution); // releases record_lock
    hub_announce(sandbox->core->hub, sandbox->id);
    return 0;
}

static int run(struct start *start, struct execution_record *out, struct error *err)
{
    if (command_prepare(start->sandbox, start->actor, start->request, &start->execution, err) < 0)
        return -1;
    if (write_files(start->sandbox, start->request, err) == 0 &&
        command_spawn(start->sandbox, start->execution, err) == 0 &&
        record_start(start, out, err) == 0)
        return 0;
    command_abort(start->sandbox, start->execution);
    return -1;
}

/* What has a place already; false: not now, as in reserve. */
static bool read_restore_count(struct sandbox *sandbox, uint64_t *restore_count)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    bool is_calm = !is_restless(sandbox);
    *restore_count = sandbox->restore_count;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_calm;
}

int command_start_queued(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    const struct execution_request request = {.kind = execution->record.kind};
    struct start start = {sandbox, NULL, &request, execution, 0};
    autoexecution started = {0};
    bool was_paused;

    do {
        if (sandbox_awake(sandbox, &was_paused, err) < 0 || sandbox_ensure_box(sandbox, err) < 0)
            return -1;
    } while (!read_restore_count(sandbox, &start.restore_count));
    if (command_equip(sandbox, execution, err) < 0)
        return -1;
    if (execution_is_cancelled(execution) || command_spawn(sandbox, execution, err) < 0 ||
        record_start(&start, &started, err) < 0) {
        command_abort(sandbox, execution);
        return -1;
    }
    // Whoever cancelled it before it was recorded has left that to us; whoever does now finds it in the box.
    if (execution_is_cancelled(execution))
        command_kill(sandbox, execution);
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
static int record_refusal(struct sandbox *sandbox, const struct actor *actor,
                          const struct execution_request *request, struct execution_record *out,
                          struct error *err)
{
    autoptr(execution) execution = NULL;
    struct event event = {
        .type = EVENT_COMPLETED, .reason = "execution", .now = (int64_t)clock_wall_ms()};
    autotransaction together = {0};

    if (check_waiting(request, err) < 0 ||
        command_describe(sandbox, actor, request, &execution, err) < 0)
        return -1;
    struct execution_record *record = &execution->record;
    record->state = EXECUTION_FAILED;
    record->cause = EXECUTION_NOT_RUN;
    record->started_at = record->ended_at = record->updated_at = event.now;
    event_fact(&event, "execution", execution->id);
    event_fact(&event, "state", execution_state_name(record->state));
    if (store_begin(sandbox->core->store, STORE_FAST, &together, err) < 0 ||
        store_execution_add(sandbox->core->store, record, err) < 0 ||
        event_put(sandbox, &event, err) < 0 || store_commit(&together, err) < 0)
        return -1;
    execution_copy(execution, out);
    return 0;
}

static int start_command(struct core *core, const struct actor *actor, const char *sandbox_id,
                         const struct execution_request *request, struct execution_record *out,
                         bool *was_paused, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;

    if (lookup_sandbox(core, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    if (request->refused)
        return record_refusal(sandbox, actor, request, out, err);
    sandbox_touch(sandbox); // before its state is looked at: see live_rest
    struct start start = {sandbox, actor, request, NULL, 0};
    if (enter(sandbox, request->kind, &start.restore_count, was_paused, err) < 0)
        return -1;
    int result = sandbox_ensure_box(sandbox, err);
    if (result == 0)
        result = run(&start, out, err);
    execution_free(start.execution);
    if (result < 0)
        give_back(sandbox, request->kind);
    return result;
}

int execution_start(struct core *core, const struct actor *actor, const char *sandbox_id,
                    const struct execution_request *request, struct execution_info *out,
                    struct error *err)
{
    bool was_paused = false;
    return execution_start_awake(core, actor, sandbox_id, request, out, &was_paused, err);
}

int execution_start_awake(struct core *core, const struct actor *actor, const char *sandbox_id,
                          const struct execution_request *request, struct execution_info *out,
                          bool *was_paused, struct error *err)
{
    autoexecution record = {0};
    char earlier[ID_TEXT];
    bool is_new = false;

    *was_paused = false;

    if (once_claim(core, actor, request->once, &is_new, earlier, err) < 0)
        return -1;
    if (!is_new)
        return execution_get(core, actor, earlier, &request->kind, out, err);
    if (start_command(core, actor, sandbox_id, request, &record, was_paused, err) < 0) {
        once_release(core, actor, request->once);
        return -1;
    }
    execution_info_take(out, &record);
    return 0;
}

/* The caller has a place in the sandbox and one in the queue for it. */
static int record_queued(struct sandbox *sandbox, const struct actor *actor,
                         const struct execution_request *request, struct execution_record *out,
                         struct error *err)
{
    struct core *core = sandbox->core;
    autoptr(execution) execution = NULL;

    if (command_describe(sandbox, actor, request, &execution, err) < 0 ||
        store_execution_add(core->store, &execution->record, err) < 0)
        return -1;
    execution->is_queued = true;
    execution_copy(execution, out);
    registry_add_command(core->registry, execution);
    queue_add(core->queue, execution);
    return 0;
}

int execution_enqueue(struct core *core, const struct actor *actor, const char *sandbox_id,
                      const struct execution_request *request, struct execution_info *out,
                      struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autoexecution record = {0};
    bool was_paused = false;
    uint64_t restore_count;

    if (check_waiting(request, err) < 0 ||
        lookup_sandbox(core, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox); // before its state is looked at: see live_rest
    if (queue_reserve(core->queue, err) < 0)
        return -1;
    if (enter(sandbox, request->kind, &restore_count, &was_paused, err) < 0) {
        queue_give_back(core->queue);
        return -1;
    }
    if (record_queued(sandbox, actor, request, &record, err) == 0) {
        execution_info_take(out, &record);
        return 0;
    }
    give_back(sandbox, request->kind);
    queue_give_back(core->queue);
    return -1;
}

static bool is_visible(const struct execution_record *record, const struct actor *actor,
                       const enum execution_kind *kind)
{
    return actor_sees(actor, &record->owner) && (!kind || *kind == record->kind);
}

/* As execution_get_quick. */
static int find_quick(struct core *core, const struct actor *actor, const char *id,
                      const enum execution_kind *kind, struct execution_record *out,
                      struct error *err)
{
    autoptr(execution) execution = registry_find_command(core->registry, id);

    if (!execution)
        return 0;
    (void)pthread_mutex_lock(&execution->lock);
    bool is_seen = is_visible(&execution->record, actor, kind);
    if (is_seen)
        execution_record_copy(out, &execution->record);
    (void)pthread_mutex_unlock(&execution->lock);
    return is_seen ? 1 : lookup_missing(noun_of(kind), id, err);
}

int execution_get_quick(struct core *core, const struct actor *actor, const char *id,
                        const enum execution_kind *kind, struct execution_info *out,
                        struct error *err)
{
    autoexecution record = {0};
    int known = find_quick(core, actor, id, kind, &record, err);

    if (known == 1)
        execution_info_take(out, &record);
    return known;
}

/* As execution_get. */
static int find_execution(struct core *core, const struct actor *actor, const char *id,
                          const enum execution_kind *kind, struct execution_record *out,
                          struct error *err)
{
    autoexecution record = {0};

    int known = find_quick(core, actor, id, kind, out, err);
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

int execution_get(struct core *core, const struct actor *actor, const char *id,
                  const enum execution_kind *kind, struct execution_info *out, struct error *err)
{
    autoexecution record = {0};

    if (find_execution(core, actor, id, kind, &record, err) < 0)
        return -1;
    execution_info_take(out, &record);
    return 0;
}

int execution_list(struct core *core, const struct actor *actor,
                   const struct execution_filter *filter, struct execution_infos *out,
                   struct error *err)
{
    struct execution_filter own = *filter;
    autoexecutions found = {0};
    autosandbox row = {0};

    if (filter->sandbox_id)
        lookup_settle(core, filter->sandbox_id);
    if (filter->sandbox_id && lookup_record(core, actor, filter->sandbox_id, &row, err) < 0)
        return -1;
    own.owner = actor_filter(actor);
    own.owner.project = filter->owner.project;
    if (store_execution_list(core->store, &own, &found, err) < 0)
        return -1;
    execution_infos_take(out, &found);
    return 0;
}

/* That somebody asked for it is written down first: whatever happens then, it was cancelled. The caller holds record_lock. */
static int put_stop(struct sandbox *sandbox, struct execution *execution, const char *reason,
                    struct error *err)
{
    struct execution_record next = execution->record;

    next.stop_at = next.updated_at = (int64_t)clock_wall_ms();
    next.stop_reason = reason;
    if (store_execution_update(sandbox->core->store, &next, EXECUTION_PART_STOP, EXECUTION_OPEN,
                               err) < 0)
        return -1;
    (void)pthread_mutex_lock(&execution->lock);
    execution->record.stop_at = next.stop_at;
    free((char *)execution->record.stop_reason);
    execution->record.stop_reason = reason ? strdup(reason) : NULL;
    (void)pthread_mutex_unlock(&execution->lock);
    return 0;
}

static int stop_running(struct sandbox *sandbox, struct execution *execution, bool is_forced,
                        const char *reason, struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->record_lock);
    int result = execution_is_over(&execution->record) || execution->record.stop_at
                     ? 0
                     : put_stop(sandbox, execution, reason, err);
    bool is_started = execution->is_recorded && !execution_is_over(&execution->record);
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    if (result < 0 || !is_started)
        return result; // one that is just being started is killed by whoever starts it
    if (!is_forced && execution->kill_at == 0)
        execution->kill_at = (int64_t)clock_wall_ms() + STOP_PATIENCE_MS;
    if (sandbox_lock_box(sandbox, err) < 0)
        return 0; // it ends with its sandbox
    result =
        box_signal(sandbox->box, execution->number, is_forced ? SIGKILL : SIGTERM, is_forced, err);
    sandbox_unlock_box(sandbox);
    return result;
}

int execution_stop(struct core *core, const struct actor *actor, const char *id,
                   const enum execution_kind *kind, bool is_forced, const char *reason,
                   struct execution_info *out, struct error *err)
{
    autoexecution record = {0};

    if (find_execution(core, actor, id, kind, &record, err) < 0)
        return -1;
    autoptr(sandbox) sandbox = registry_find(core->registry, record.sandbox_id);
    autoptr(execution) execution = registry_find_command(core->registry, id);
    bool was_waiting = execution && queue_remove(core->queue, execution);
    int result = 0;
    if (sandbox && execution && !execution_is_over(&record))
        result = stop_running(sandbox, execution, is_forced, reason, err);
    if (was_waiting)
        queue_end(core->queue, execution, EXECUTION_CANCELLED, NULL);
    return result < 0 ? -1 : execution_get(core, actor, id, kind, out, err);
}

/* That somebody asked for its end, whatever its state. Where it is in memory the caller holds record_lock. */
static int put_mark(struct core *core, struct execution *execution,
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
    if (execution)
        execution_set(execution, &next);
    return 0;
}

/* In memory, and its sandbox too. */
static int cancel_known(struct sandbox *sandbox, struct execution *execution, const char *reason,
                        struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->record_lock);
    int result = put_mark(sandbox->core, execution, &execution->record, reason, err);
    bool is_started = execution->is_recorded && !execution_is_over(&execution->record);
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    if (result < 0 || !is_started)
        return result; // one that is just being started is killed by whoever starts it
    execution->kill_at = (int64_t)clock_wall_ms() + KILL_AGAIN_MS;
    command_kill(sandbox, execution);
    return 0;
}

int execution_cancel(struct core *core, const struct actor *actor, const char *id,
                     const char *reason, struct execution_info *out, struct error *err)
{
    autoexecution record = {0};
    int result;

    if (find_execution(core, actor, id, NULL, &record, err) < 0)
        return -1;
    autoptr(sandbox) sandbox = registry_find(core->registry, record.sandbox_id);
    autoptr(execution) execution = registry_find_command(core->registry, id);
    bool was_waiting = execution && queue_remove(core->queue, execution);
    if (sandbox && execution)
        result = cancel_known(sandbox, execution, reason, err);
    else
        result = put_mark(core, execution, &record, reason, err);
    if (was_waiting)
        queue_end(core->queue, execution, EXECUTION_CANCELLED, NULL);
    return result < 0 ? -1 : execution_get(core, actor, id, NULL, out, err);
}

int execution_count(struct core *core, const struct actor *actor, int64_t since,
                    struct execution_outcomes *out, struct error *err)
{
    struct owner owner = actor_filter(actor);

    owner.scope = NULL;
    return store_execution_outcomes(core->store, &owner, since, out, err);
}
