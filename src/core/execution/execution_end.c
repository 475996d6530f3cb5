/* SPDX-License-Identifier: Apache-2.0 */
/* How executions end; see execution_end.h. */
#include "core/execution/execution_end.h"

#include "base/clock.h"
#include "model/log_ids.h"
#include "core/event/hub.h"
#include "core/stream/streams.h"
#include "core/sandbox/sandbox_box.h"
#include "core/execution/executions.h"
#include "core/execution/execution_launch.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/event/event.h"
#include "core/stream/feed.h"
#include "core/sandbox/sandbox_event.h"
#include "core/execution/queue.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define KILLED 137

static const enum execution_cause causes[] = {
    [CAUSE_EXIT] = EXECUTION_EXITED,     [CAUSE_TIMEOUT] = EXECUTION_TIMEOUT,
    [CAUSE_MEMORY] = EXECUTION_MEMORY,   [CAUSE_NOT_FOUND] = EXECUTION_NOT_FOUND,
    [CAUSE_NOT_RUN] = EXECUTION_NOT_RUN, [CAUSE_BOX_ENDED] = EXECUTION_BOX_ENDED,
};

static enum execution_state state_of(const struct execution *execution,
                                     const struct process_exit *exit)
{
    if (execution->record.stop_at)
        return EXECUTION_CANCELLED;
    switch (exit->cause) {
    case CAUSE_TIMEOUT:
        return EXECUTION_TIMED_OUT;
    case CAUSE_NOT_FOUND:
    case CAUSE_NOT_RUN:
    case CAUSE_BOX_ENDED:
        return EXECUTION_FAILED;
    default:
        return execution->is_input_cut ? EXECUTION_FAILED : EXECUTION_COMPLETED;
    }
}

/* What the end makes of the record; texts are borrowed from it, from the exit, or literals. */
static void apply_exit(const struct execution *execution, const struct process_exit *exit,
                       int64_t now, struct execution_record *record)
{
    record->state = state_of(execution, exit);
    record->cause = record->state == EXECUTION_CANCELLED ? EXECUTION_STOPPED : causes[exit->cause];
    record->exit_code = exit->code;
    record->signal = exit->signal;
    if (exit->cause != CAUSE_EXIT && exit->text[0])
        record->error = exit->text;
    if (execution->is_input_cut)
        record->error = "its standard input was cut off when the server stopped";
    // A command that was cancelled or starved has not succeeded, whatever it said.
    if (record->exit_code == 0 && record->state == EXECUTION_FAILED)
        record->exit_code = 1;
    if (record->exit_code == 0 && record->state == EXECUTION_CANCELLED &&
        record->kind == EXECUTION_COMMAND)
        record->exit_code = KILLED;
    record->ended_at = now;
    record->updated_at = now;
    record->stdout_bytes = (int64_t)exit->stdout_bytes;
    record->stderr_bytes = (int64_t)exit->stderr_bytes;
    record->is_truncated = exit->is_truncated;
    record->cpu_user_us = (int64_t)exit->cpu_user_us;
    record->cpu_system_us = (int64_t)exit->cpu_system_us;
    record->max_rss_bytes = (int64_t)exit->max_rss_bytes;
    record->duration_us = (int64_t)exit->duration_us;
}

static int put_streams(struct sandbox *sandbox, struct execution *execution, bool is_truncated,
                       int64_t now, struct error *err)
{
    struct streams *streams = sandbox->sandboxes->streams;

    if (execution->output &&
        streams_put_end(streams, execution->output, is_truncated, now, err) < 0)
        return -1;
    if (execution->error && execution->error != execution->output &&
        streams_put_end(streams, execution->error, is_truncated, now, err) < 0)
        return -1;
    return execution->input ? streams_put_end(streams, execution->input, false, now, err) : 0;
}

static int put_end(struct sandbox *sandbox, struct execution *execution,
                   const struct execution_record *ended, struct error *err)
{
    if (store_execution_update(sandbox->sandboxes->store, ended,
                               EXECUTION_PART_STATE | EXECUTION_PART_RESULT, EXECUTION_OPEN,
                               err) < 0)
        return -1;
    return put_streams(sandbox, execution, ended->is_truncated, ended->ended_at, err);
}

/* Is it the last execution that keeps the sandbox running? Jobs do not. The caller holds record_lock. */
static bool is_last(struct sandbox *sandbox, const struct execution *execution)
{
    if (execution->record.kind != EXECUTION_COMMAND)
        return false;
    for (struct execution *other = sandbox->executions; other; other = other->next) {
        if (other != execution && other->is_recorded && other->record.kind == EXECUTION_COMMAND)
            return false;
    }
    return true;
}

/* What the end of a command means for its sandbox. */
struct effect {
    bool is_over;  // a one-shot sandbox ends with its command
    bool has_rest; // it becomes idle
    struct sandbox_record next;
};

static int foresee(struct sandbox *sandbox, struct execution *execution,
                   const struct execution_record *ended, struct effect *effect, struct error *err)
{
    if (execution->announced_at == 0) {
        execution->is_sandbox_over =
            sandbox->record.mode == SANDBOX_ONE_SHOT && ended->kind == EXECUTION_COMMAND;
        execution->is_sandbox_idle = !execution->is_sandbox_over && is_last(sandbox, execution) &&
                                     sandbox->record.state == SANDBOX_RUNNING;
    }
    effect->is_over = execution->is_sandbox_over;
    effect->has_rest = execution->is_sandbox_idle;
    if (execution->announced_at != 0) { // it has happened already
        sandbox_copy(sandbox, &effect->next);
        return 0;
    }
    if (effect->is_over)
        return ending_foresee(sandbox, STEP_END, "one_shot", ended->exit_code, ended->ended_at,
                              &effect->next, err);
    sandbox_copy(sandbox, &effect->next);
    effect->next.updated_at = effect->next.active_at = ended->ended_at;
    return effect->has_rest ? lifecycle_take(&effect->next, STEP_REST, NULL, ended->ended_at, err)
                            : 0;
}

static int put_effect(struct sandbox *sandbox, const struct execution_record *ended,
                      const struct effect *effect, struct error *err)
{
    const char *noun = ended->kind == EXECUTION_JOB ? "job" : "execution";
    struct event event = {.type = EVENT_COMPLETED, .reason = noun, .now = ended->ended_at};

    event_fact(&event, noun, ended->id);
    event_number(&event, "exit_code", ended->exit_code);
    event_fact(&event, "state", execution_state_name(ended->state));
    if (event_put(sandbox, &event, err) < 0)
        return -1;
    if (effect->is_over)
        return ending_put(sandbox, STEP_END, &effect->next, err);
    if (!effect->has_rest)
        return 0;
    return store_sandbox_update(sandbox->sandboxes->store, &effect->next,
                                SANDBOX_PART_LIVING | SANDBOX_PART_DEADLINES,
                                lifecycle_from(STEP_REST), err);
}

static void unlink_execution(struct sandbox *sandbox, struct execution *execution)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    struct execution **at = &sandbox->executions;
    while (*at && *at != execution)
        at = &(*at)->next;
    if (*at)
        *at = execution->next;
    (void)pthread_mutex_unlock(&sandbox->lock);
}

/* Its place in the sandbox is free. */
static void leave(struct sandbox *sandbox, struct execution *execution)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    if (execution->record.kind == EXECUTION_JOB)
        sandbox->n_jobs--;
    else
        sandbox->n_executions--;
    (void)pthread_mutex_unlock(&sandbox->lock);
    sandbox->sandboxes->executions->n_running--;
    if (execution->queue)
        queue_left(execution->queue);
}

static void effect_clear(struct effect *effect)
{
    sandbox_record_clear(&effect->next);
}

/* Before the command itself: whoever sees that it has ended finds its streams complete. */
static void end_streams(struct sandbox *sandbox, struct execution *execution)
{
    struct streams *streams = sandbox->sandboxes->streams;

    if (execution->output)
        streams_end(streams, execution->output);
    if (execution->error && execution->error != execution->output)
        streams_end(streams, execution->error);
    if (execution->input)
        streams_end(streams, execution->input);
}

static void give_up(struct sandboxes *sandboxes, struct stream *stream, bool is_new)
{
    if (is_new)
        streams_keep_recent(sandboxes->streams, stream);
    else
        stream_free(stream);
}

/* Nobody will look for it here any more. Takes the list's reference. */
static void let_go(struct sandbox *sandbox, struct execution *execution)
{
    struct execution_streams held = execution_take_streams(sandbox, execution);

    if (execution->feed)
        feed_stop(take(execution->feed));
    give_up(sandbox->sandboxes, held.output, execution->is_output_new);
    give_up(sandbox->sandboxes, held.error, execution->is_error_new);
    stream_free(held.input);
    executions_end(sandbox->sandboxes->executions, execution);
    execution_free(execution);
}

static int record_end(struct sandbox *sandbox, struct execution *execution,
                      const struct execution_record *ended, const struct effect *effect,
                      struct error *err)
{
    autotransaction together = {0};

    if (store_begin(sandbox->sandboxes->store, STORE_FAST, &together, err) < 0 ||
        put_end(sandbox, execution, ended, err) < 0 || put_effect(sandbox, ended, effect, err) < 0)
        return -1;
    return store_commit(&together, err);
}

void execution_collect(struct sandbox *sandbox, uint32_t number)
{
    struct error ignored = {0};
    if (sandbox_lock_box(sandbox, &ignored) < 0)
        return;
    (void)box_collect(sandbox->box, number, &ignored);
    box_prepare(sandbox->box, sandbox_next_number(sandbox));
    sandbox_unlock_box(sandbox);
}

/* The end as everybody sees it from now on. */
static void show_end(struct sandbox *sandbox, struct execution *execution,
                     const struct execution_record *ended, struct effect *effect)
{
    bool is_changed = effect->is_over || effect->has_rest;

    end_streams(sandbox, execution);
    execution_set(execution, ended);
    leave(sandbox, execution);
    sandbox_touch(sandbox);
    if (is_changed)
        sandbox_change(sandbox, &effect->next);
    hub_announce(sandbox->sandboxes->hub, execution->id);
    if (is_changed)
        hub_announce(sandbox->sandboxes->hub, sandbox->id);
}

/*
 * Whoever waits is told first and the store afterwards: until the end is recorded PID 1 still has it, so it is not lost, and those
 * who wait do not wait for the database. The caller holds record_lock, which is released here.
 */
static void finish(struct sandbox *sandbox, struct execution *execution,
                   const struct process_exit *exit)
{
    struct execution_record ended = execution->record;
    __attribute__((cleanup(effect_clear))) struct effect effect = {0};
    struct effect shown = {0};
    struct error err = {0};

    if (execution->announced_at == 0) // else the record says how it ended
        apply_exit(execution, exit, (int64_t)clock_wall_ms(), &ended);
    int result = foresee(sandbox, execution, &ended, &effect, &err);
    if (result == 0 && execution->announced_at == 0) {
        execution->announced_at = ended.ended_at;
        shown = effect;
        sandbox_record_copy(&shown.next, &effect.next);
        show_end(sandbox, execution, &ended, &shown);
        sandbox_record_clear(&shown.next);
        ended = execution->record; // whose texts are where they will stay
        (void)sched_yield();       // to those who were told, where they are on this processor too
    }
    if (result < 0 || record_end(sandbox, execution, &ended, &effect, &err) < 0) {
        log_error("the end of a command could not be recorded; it is tried again",
                  F_EXECUTION(execution->id), F("error", (const char *)err.text));
        execution->exit = *exit;
        execution->has_exit = true;
        (void)pthread_mutex_unlock(&sandbox->record_lock);
        return;
    }
    uint32_t number = execution->number;
    unlink_execution(sandbox, execution);
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    let_go(sandbox, execution);
    if (effect.is_over)
        ending_start_box(sandbox);
    else
        execution_collect(sandbox, number);
}

void execution_recorded(struct sandbox *sandbox, struct execution *execution)
{
    execution->is_recorded = true;
    sandbox->sandboxes->executions->n_running++;
    if (!execution->is_queued) // which is known since it waits
        executions_add(sandbox->sandboxes->executions, execution);
    if (!execution->has_exit) {
        (void)pthread_mutex_unlock(&sandbox->record_lock);
        return;
    }
    execution->has_exit = false;
    struct process_exit exit = execution->exit;
    finish(sandbox, execution, &exit);
}

void execution_ended(struct sandbox *sandbox, const struct process_exit *exit)
{
    (void)pthread_mutex_lock(&sandbox->record_lock);
    struct execution *execution = sandbox->executions;
    while (execution && execution->number != exit->id)
        execution = execution->next;
    if (execution && execution->is_recorded) {
        finish(sandbox, execution, exit);
        return;
    }
    if (execution) {
        execution->exit = *exit;
        execution->has_exit = true;
    }
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    if (!execution)
        execution_collect(sandbox, exit->id);
}

static void kill_now(struct sandbox *sandbox, struct execution *execution)
{
    execution->kill_at = 0;
    execution_kill(sandbox, execution);
}

/* A command that needs looking after now: a reference, or NULL. */
static struct execution *next_due(struct sandbox *sandbox, int64_t now)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    struct execution *execution = sandbox->executions;
    while (execution && !(execution->kill_at && execution->kill_at <= now))
        execution = execution->next;
    if (execution)
        execution_ref(execution);
    (void)pthread_mutex_unlock(&sandbox->lock);
    return execution;
}

static void retry_end(struct sandbox *sandbox)
{
    (void)pthread_mutex_lock(&sandbox->record_lock);
    struct execution *execution = sandbox->executions;
    while (execution && !(execution->is_recorded && execution->has_exit))
        execution = execution->next;
    if (!execution) {
        (void)pthread_mutex_unlock(&sandbox->record_lock);
        return;
    }
    execution->has_exit = false;
    struct process_exit exit = execution->exit;
    finish(sandbox, execution, &exit);
}

void execution_check_deadlines(struct sandbox *sandbox, int64_t now)
{
    for (struct execution *execution; (execution = next_due(sandbox, now));) {
        kill_now(sandbox, execution);
        execution_free(execution);
    }
    if (pthread_mutex_trylock(&sandbox->record_lock) != 0)
        return; // somebody is at it
    bool has_commands = sandbox->executions != NULL;
    (void)pthread_mutex_unlock(&sandbox->record_lock);
    if (has_commands)
        retry_end(sandbox);
}

/* What the end of the whole sandbox makes of a command's record. Texts are borrowed. */
static void apply_end(enum execution_state state, const char *error, int64_t now,
                      struct execution_record *record)
{
    record->state = state;
    record->cause = state == EXECUTION_CANCELLED ? EXECUTION_STOPPED : EXECUTION_BOX_ENDED;
    record->exit_code = KILLED;
    record->signal = SIGKILL;
    record->error = error;
    record->ended_at = record->updated_at = now;
    record->duration_us = (now - record->started_at) * 1000;
}

int execution_put_ends(struct sandbox *sandbox, enum execution_state state, const char *error,
                       int64_t now, struct error *err)
{
    for (struct execution *execution = sandbox->executions; execution;
         execution = execution->next) {
        struct execution_record ended = execution->record;
        if (!execution->is_recorded)
            continue;
        if (execution->announced_at ==
            0) // else it has ended by itself, and only the store does not know yet
            apply_end(state, error, now, &ended);
        if (put_end(sandbox, execution, &ended, err) < 0)
            return -1;
    }
    return 0;
}

static void end_with_sandbox(struct sandbox *sandbox, struct execution *execution,
                             enum execution_state state, const char *error, int64_t now)
{
    struct execution_record ended = execution->record;

    apply_end(state, error, now, &ended);
    end_streams(sandbox, execution);
    execution_set(execution, &ended);
    leave(sandbox, execution);
    hub_announce(sandbox->sandboxes->hub, execution->id);
}

void execution_end_all(struct sandbox *sandbox, enum execution_state state, const char *error,
                       int64_t now)
{
    struct execution *execution = sandbox->executions;
    while (execution) {
        struct execution *next = execution->next;
        if (execution->is_recorded) {
            if (execution->announced_at == 0)
                end_with_sandbox(sandbox, execution, state, error, now);
            unlink_execution(sandbox, execution);
            let_go(sandbox, execution);
        }
        execution = next;
    }
}

void execution_announce_output(struct sandbox *sandbox, uint32_t number)
{
    autoptr(stream) output = NULL;
    autoptr(stream) error = NULL;

    (void)pthread_mutex_lock(&sandbox->lock);
    struct execution *execution = sandbox->executions;
    while (execution && execution->number != number)
        execution = execution->next;
    if (execution && execution->output)
        output = stream_ref(execution->output);
    if (execution && execution->error && execution->error != execution->output)
        error = stream_ref(execution->error);
    (void)pthread_mutex_unlock(&sandbox->lock);
    if (output)
        streams_announce(sandbox->sandboxes->streams, output);
    if (error)
        streams_announce(sandbox->sandboxes->streams, error);
}

/* Whether there is an end in memory that is not in the store: such an execution is still in the list. */
bool execution_is_any_ahead(struct sandbox *sandbox)
{
    bool is_any = false;

    (void)pthread_mutex_lock(&sandbox->lock);
    for (struct execution *execution = sandbox->executions; execution && !is_any;
         execution = execution->next) {
        (void)pthread_mutex_lock(&execution->lock);
        is_any = execution_is_over(&execution->record);
        (void)pthread_mutex_unlock(&execution->lock);
    }
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_any;
}

bool execution_is_any_running(const struct sandbox *sandbox)
{
    for (const struct execution *execution = sandbox->executions; execution;
         execution = execution->next) {
        if (execution->is_recorded && execution->announced_at == 0 &&
            execution->record.kind == EXECUTION_COMMAND)
            return true;
    }
    return false;
}

void execution_free_all(struct sandbox *sandbox)
{
    while (sandbox->executions) {
        struct execution *execution = sandbox->executions;
        sandbox->executions = execution->next;
        execution_free(execution);
    }
}
