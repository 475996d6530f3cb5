/* SPDX-License-Identifier: Apache-2.0 */
/* Starting an execution; see execution_start.h. */
#include "core/execution/execution_start.h"
#include "core/event/hub.h"

#include "base/clock.h"
#include "core/account/once.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/file_work.h"
#include "core/sandbox/sandbox_event.h"
#include "core/execution/execution_end.h"
#include "core/execution/execution_launch.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/pause.h"
#include "core/sandbox/sandbox_box.h"
#include "engine/box_aside.h"
#include "engine/files.h"

struct start {
    struct sandbox *sandbox;
    const struct actor *actor;
    const struct execution_request *request;
    struct execution *execution;
    uint64_t restore_count; // of the sandbox, when there was a place in it
};

static bool is_restless(const struct sandbox *sandbox)
{
    return sandbox->record.state == SANDBOX_PAUSING || sandbox->record.state == SANDBOX_RESUMING;
}

void execution_occupy(struct sandbox *sandbox, enum execution_kind kind)
{
    sandbox->n_executions += kind == EXECUTION_COMMAND;
    sandbox->n_jobs += kind == EXECUTION_JOB || kind == EXECUTION_TERMINAL;
    sandbox->n_contexts += kind == EXECUTION_CONTEXT;
    sandbox->n_terminals += kind == EXECUTION_TERMINAL;
}

/* Takes a place in the sandbox, or says why there is none; 1: not now, it is on its way to another state. */
static int reserve(struct sandbox *sandbox, enum execution_kind kind, uint64_t *restore_count,
                   struct error *err)
{
    autolock(&sandbox->lock);
    int64_t maximum = sandbox->record.max_executions;
    int result = is_restless(sandbox) ? 1 : lifecycle_check(&sandbox->record, STEP_BEGIN, err);
    *restore_count = sandbox->restore_count;
    if (result == 0 && kind == EXECUTION_COMMAND && maximum > 0 &&
        sandbox->n_executions >= maximum) {
        result =
            error_refuse(err, ERROR_BUSY, "sandbox",
                         "the sandbox is busy: a command is running in it; wait for it or stop it");
    } else if (result == 0 && kind == EXECUTION_COMMAND &&
               sandbox->record.mode == SANDBOX_ONE_SHOT) {
        result =
            error_refuse(err, ERROR_BUSY, "sandbox", "a one-shot sandbox runs one command only");
    }
    if (result == 0 && kind == EXECUTION_TERMINAL &&
        sandbox->n_terminals >= EXECUTION_MAX_TERMINALS)
        result = error_refuse(err, ERROR_FULL, "terminal",
                              "the sandbox has %d terminals already; end one of them",
                              EXECUTION_MAX_TERMINALS);
    if (result == 0)
        execution_occupy(sandbox, kind);
    return result;
}

/* The same once it is awake. */
int execution_enter(struct sandbox *sandbox, enum execution_kind kind, uint64_t *restore_count,
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

void execution_leave(struct sandbox *sandbox, enum execution_kind kind)
{
    autolock(&sandbox->lock);
    sandbox->n_executions -= kind == EXECUTION_COMMAND;
    sandbox->n_jobs -= kind == EXECUTION_JOB || kind == EXECUTION_TERMINAL;
    sandbox->n_contexts -= kind == EXECUTION_CONTEXT;
    sandbox->n_terminals -= kind == EXECUTION_TERMINAL;
}

static int write_files(struct sandbox *sandbox, const struct execution_request *request,
                       struct error *err)
{
    autofilework work = {.conversation = -1};

    if (request->n_files == 0)
        return 0;
    file_work_init(&work, sandbox->sandboxes, NULL);
    if (sandbox_files(sandbox, &work.conversation, err) < 0 ||
        files_set_timeout(work.conversation, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    if (file_write_all(&work, request->files, request->n_files, err) == 0)
        return 0;
    return error_is(err, ERROR_DISK_FULL)
               ? file_disk_full(sandbox->sandboxes, sandbox->record.limits.disk_bytes, err)
               : -1;
}

/* The caller holds record_lock. */
static int put_start(const struct start *start, struct sandbox_record *next, struct error *err)
{
    struct sandboxes *sandboxes = start->sandbox->sandboxes;
    enum execution_kind kind = start->request->kind;
    struct event event = {.type = EVENT_STARTED,
                          .reason = execution_kind_noun(kind),
                          .now = start->execution->record.started_at};
    autotransaction together = {0};
    bool is_put;

    event_fact(&event, execution_id_noun(kind), start->execution->id);
    sandbox_copy(start->sandbox, next);
    if (kind == EXECUTION_COMMAND && lifecycle_take(next, STEP_BEGIN, NULL, event.now, err) < 0)
        return -1;
    next->updated_at = next->active_at = event.now;
    do
        is_put = store_begin(sandboxes->store, STORE_FAST, &together, err) == 0 &&
                 store_sandbox_update(sandboxes->store, next,
                                      SANDBOX_PART_LIVING | SANDBOX_PART_DEADLINES, SANDBOX_ALIVE,
                                      err) == 0 &&
                 execution_put(start->sandbox, start->execution, err) == 0 &&
                 event_put(start->sandbox, &event, err) == 0 &&
                 once_finish(sandboxes->accounts, start->actor, start->request->once,
                             start->execution->id, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* 1: it is asleep, or on the way from or to that. */
static int try_record_start(const struct start *start, struct execution_record *out,
                            struct error *err)
{
    const unsigned asleep =
        sandbox_in(SANDBOX_PAUSING) | sandbox_in(SANDBOX_PAUSED) | sandbox_in(SANDBOX_RESUMING);
    struct sandbox *sandbox = start->sandbox;
    autosandbox next = {0};

    autolock(&sandbox->record_lock);
    if (sandbox_is_in(sandbox, asleep))
        return 1; // whoever leads it through another state is not disturbed
    // Whoever ends the sandbox has been here before or comes after; in between there is no third.
    // The same holds of going back to a checkpoint, which ends all that is recorded.
    if (sandbox->restore_count != start->restore_count)
        return sandbox_went_back(err);
    execution_record_shown(sandbox); // what ended before it is recorded before it
    if (lifecycle_check(&sandbox->record, STEP_BEGIN, err) < 0 || put_start(start, &next, err) < 0)
        return -1;
    sandbox_change(sandbox, &next);
    execution_copy(start->execution, out);
    execution_recorded(sandbox, start->execution);
    return 0;
}

static bool read_processors(struct sandbox *sandbox, cpu_set_t *out)
{
    autobox held = sandbox_try_box(sandbox);

    return held && box_processors(sandbox->box, out);
}

/* The same on a processor that the command does not need: it has begun. */
static int try_record_aside(const struct start *start, struct execution_record *out,
                            struct error *err)
{
    struct box_aside aside = {.is_moved = false};
    cpu_set_t bound;

    if (read_processors(start->sandbox, &bound))
        box_step_aside(&bound, &aside);
    int result = try_record_start(start, out, err);
    box_aside_end(&aside);
    return result;
}

static int record_start(const struct start *start, struct execution_record *out, struct error *err)
{
    bool was_paused;
    int result;

    while ((result = try_record_aside(start, out, err)) > 0) {
        if (sandbox_awake(start->sandbox, &was_paused, err) < 0)
            return -1;
    }
    if (result < 0)
        return -1;
    hub_announce(start->sandbox->sandboxes->hub, start->sandbox->id);
    execution_end_early(start->sandbox, start->execution);
    return 0;
}

static int spawn(const struct start *start, struct error *err)
{
    return start->request->hand_over
               ? execution_take_over(start->sandbox, start->execution, start->request, err)
               : execution_spawn(start->sandbox, start->execution, err);
}

static int run(struct start *start, struct execution_record *out, struct error *err)
{
    if (execution_prepare(start->sandbox, start->actor, start->request, &start->execution, err) < 0)
        return -1;
    // The command begins while its record is written.
    if (write_files(start->sandbox, start->request, err) == 0 && spawn(start, err) == 0 &&
        record_start(start, out, err) == 0)
        return 0;
    execution_abort(start->sandbox, start->execution);
    return -1;
}

/* What has a place already; false: not now, as in reserve. */
static bool read_restore_count(struct sandbox *sandbox, uint64_t *restore_count)
{
    autolock(&sandbox->lock);
    bool is_calm = !is_restless(sandbox);
    *restore_count = sandbox->restore_count;
    return is_calm;
}

int execution_start_queued(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    const struct execution_request request = {.kind = execution->record.kind};
    struct start start = {sandbox, NULL, &request, execution, 0};
    autoexecution started = {0};
    bool was_paused;

    do {
        if (sandbox_awake(sandbox, &was_paused, err) < 0 || sandbox_ensure_box(sandbox, err) < 0)
            return -1;
    } while (!read_restore_count(sandbox, &start.restore_count));
    if (execution_equip(sandbox, execution, err) < 0)
        return -1;
    if (execution_is_cancelled(execution) || execution_spawn(sandbox, execution, err) < 0 ||
        record_start(&start, &started, err) < 0) {
        execution_abort(sandbox, execution);
        return -1;
    }
    // Whoever cancelled it before it was recorded has left that to us; whoever does now finds it in the box.
    if (execution_is_cancelled(execution))
        execution_kill(sandbox, execution);
    return 0;
}

int execution_start_in(struct sandbox *sandbox, const struct actor *actor,
                       const struct execution_request *request, struct execution_record *out,
                       bool *was_paused, struct error *err)
{
    sandbox_touch(sandbox); // before its state is looked at: see sandbox_rest
    struct start start = {sandbox, actor, request, NULL, 0};
    if (execution_enter(sandbox, request->kind, &start.restore_count, was_paused, err) < 0)
        return -1;
    int result = sandbox_ensure_box(sandbox, err);
    if (result == 0)
        result = run(&start, out, err);
    execution_free(start.execution);
    if (result < 0)
        execution_leave(sandbox, request->kind);
    return result;
}
