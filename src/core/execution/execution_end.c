/* SPDX-License-Identifier: Apache-2.0 */
/* How executions end; see execution_end.h. */
#include "core/execution/execution_end.h"

#include "base/clock.h"
#include "base/log_ids.h"
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
#include "core/execution/execution_start.h"
#include "core/execution/queue.h"
#include "core/sandbox/mailbox.h"
#include "engine/exit_words.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define KILLED 137
#define KILL_AGAIN_MS 500

static const char OUTPUT_LOST[] = "part of its output could not be kept: the server's disk is full";

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

static struct execution_exit exit_of(const struct process_exit *exit)
{
    return (struct execution_exit){
        .cause = causes[exit->cause],
        .code = exit->code,
        .signal = exit->signal,
        .stdout_bytes = (int64_t)exit->stdout_bytes,
        .stderr_bytes = (int64_t)exit->stderr_bytes,
        .is_truncated = exit->is_truncated,
        .cpu_user_us = (int64_t)exit->cpu_user_us,
        .cpu_system_us = (int64_t)exit->cpu_system_us,
        .max_rss_bytes = (int64_t)exit->max_rss_bytes,
        .duration_us = (int64_t)exit->duration_us,
    };
}

/* What the end makes of the record; strings are borrowed from it, from the exit, or literals. */
static void apply_exit(const struct execution *execution, const struct process_exit *exit,
                       int64_t now, struct execution_record *record)
{
    record->state = state_of(execution, exit);
    record->exit = exit_of(exit);
    if (record->state == EXECUTION_CANCELLED)
        record->exit.cause = EXECUTION_STOPPED;
    if (exit->text[0])
        record->error = exit->text;
    if (execution->is_input_cut)
        record->error = "its standard input was cut off when the server stopped";
    if (exit->is_output_lost && !record->error)
        record->error = OUTPUT_LOST;
    // A command that was cancelled or starved has not succeeded, whatever it said.
    if (record->exit.code == 0 && record->state == EXECUTION_FAILED)
        record->exit.code = 1;
    if (record->exit.code == 0 && record->state == EXECUTION_CANCELLED &&
        record->kind == EXECUTION_COMMAND)
        record->exit.code = KILLED;
    record->ended_at = record->updated_at = now;
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
    return put_streams(sandbox, execution, ended->exit.is_truncated, ended->ended_at, err);
}

/* Is it the last execution that keeps the sandbox running? Jobs do not. The caller holds record_lock. */
static bool is_last(struct sandbox *sandbox, const struct execution *execution)
{
    if (execution->record.kind != EXECUTION_COMMAND)
        return false;
    for (struct execution *other = sandbox->executions; other; other = other->next) {
        if (other != execution && other->is_recorded && other->announced_at == 0 &&
            other->record.kind == EXECUTION_COMMAND)
            return false;
    }
    return true;
}

/* What its end makes of the sandbox, in *next: is_sandbox_over and is_sandbox_idle say whether that is anything. */
static int foresee(struct sandbox *sandbox, struct execution *execution,
                   const struct execution_record *ended, struct sandbox_record *next,
                   struct error *err)
{
    execution->is_sandbox_over =
        sandbox->record.mode == SANDBOX_ONE_SHOT && ended->kind == EXECUTION_COMMAND;
    execution->is_sandbox_idle = !execution->is_sandbox_over && is_last(sandbox, execution) &&
                                 sandbox_is_in(sandbox, sandbox_in(SANDBOX_RUNNING));
    if (execution->is_sandbox_over)
        return ending_foresee(sandbox, STEP_END, "one_shot", ended->exit.code, ended->ended_at,
                              next, err);
    if (!execution->is_sandbox_idle)
        return 0;
    sandbox_copy(sandbox, next);
    next->updated_at = next->active_at = ended->ended_at;
    return lifecycle_take(next, STEP_REST, NULL, ended->ended_at, err);
}

/* The operator's to know: the disk is its own. */
static void log_loss(const struct execution *execution, const struct process_exit *exit)
{
    if (exit->is_output_lost)
        log_error("output of a command could not be kept: the disk is full",
                  F_EXECUTION(execution->id));
}

static int put_event(struct sandbox *sandbox, const struct execution_record *ended,
                     struct error *err)
{
    const char *noun = execution_kind_noun(ended->kind);
    struct event event = {.type = EVENT_COMPLETED, .reason = noun, .now = ended->ended_at};

    event_fact(&event, execution_id_noun(ended->kind), ended->id);
    event_number(&event, "exit_code", ended->exit.code);
    event_fact(&event, "state", execution_state_name(ended->state));
    if (ended->error && strcmp(ended->error, OUTPUT_LOST) == 0)
        event_fact(&event, "error", OUTPUT_LOST);
    return event_put(sandbox, &event, err);
}

/* What its end made of the sandbox, unless that has gone on to another state since: then somebody else writes that down. */
static int put_sandbox(struct sandbox *sandbox, const struct execution *execution,
                       struct error *err)
{
    autosandbox now = {0};

    if (!execution->is_sandbox_over && !execution->is_sandbox_idle)
        return 0;
    sandbox_copy(sandbox, &now);
    if (execution->is_sandbox_over)
        return ending_put(sandbox, STEP_END, &now, err);
    if (now.state != SANDBOX_IDLE)
        return 0;
    return store_sandbox_update(sandbox->sandboxes->store, &now,
                                SANDBOX_PART_LIVING | SANDBOX_PART_DEADLINES,
                                lifecycle_from(STEP_REST), err);
}

static void unlink_execution(struct sandbox *sandbox, struct execution *execution)
{
    autolock(&sandbox->lock);
    struct execution **at = &sandbox->executions;
    while (*at && *at != execution)
        at = &(*at)->next;
    if (*at)
        *at = execution->next;
}

/* Its place in the sandbox is free. */
static void leave(struct sandbox *sandbox, struct execution *execution)
{
    execution_leave(sandbox, execution->record.kind);
    sandbox->sandboxes->executions->n_running--;
    if (execution->queue)
        queue_left(execution->queue);
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
    execution_shut_input(execution);
    give_up(sandbox->sandboxes, held.output, execution->is_output_new);
    give_up(sandbox->sandboxes, held.error, execution->is_error_new);
    stream_free(held.input);
    executions_end(sandbox->sandboxes->executions, execution);
    execution_free(execution);
}

void execution_collect(struct sandbox *sandbox, uint32_t number)
{
    struct error ignored = {0};

    if (sandbox_is_in(sandbox, SANDBOX_ENDING))
        return; // PID 1 goes too
    autobox held = sandbox_share_box(sandbox);
    if (!sandbox->box || sandbox->is_box_over)
        return;
    (void)box_collect(sandbox->box, number, &ignored);
    if (!sandbox->is_copied)
        box_prepare(sandbox->box, sandbox_next_number(sandbox));
}

/* The end as everybody sees it from now on. */
static void show_end(struct sandbox *sandbox, struct execution *execution,
                     const struct execution_record *ended, struct sandbox_record *next)
{
    bool is_changed = execution->is_sandbox_over || execution->is_sandbox_idle;

    execution->announced_at = ended->ended_at;
    execution->has_exit = false;
    end_streams(sandbox, execution);
    execution_set(execution, ended);
    leave(sandbox, execution);
    sandbox_touch(sandbox);
    if (is_changed)
        sandbox_change(sandbox, next);
    hub_announce(sandbox->sandboxes->hub, execution->id);
    if (is_changed)
        hub_announce(sandbox->sandboxes->hub, sandbox->id);
}

/*
 * Whoever waits is told before the store is: until the end is recorded PID 1 still has it, so it is not lost, and nobody waits for
 * the database. One that is not recorded itself yet is shown once it is. Under record_lock; memory work only.
 */
static void show(struct sandbox *sandbox, struct execution *execution)
{
    struct execution_record ended = execution->record;
    autosandbox next = {0};
    struct error err = {0};

    if (!execution->is_recorded || !execution->has_exit)
        return;
    apply_exit(execution, &execution->exit, (int64_t)clock_wall_ms(), &ended);
    if (foresee(sandbox, execution, &ended, &next, &err) == 0) {
        log_loss(execution, &execution->exit);
        show_end(sandbox, execution, &ended, &next);
    } else {
        log_error("the end of a command could not be shown; it is tried again",
                  F_EXECUTION(execution->id), F("error", (const char *)err.text));
    }
}

static int put_shown(struct sandbox *sandbox, struct execution *execution, struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(sandbox->sandboxes->store, STORE_FAST, &together, err) == 0 &&
                 put_end(sandbox, execution, &execution->record, err) == 0 &&
                 put_event(sandbox, &execution->record, err) == 0 &&
                 put_sandbox(sandbox, execution, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* Writes down an end that was shown, and forgets the execution. Under record_lock. */
static int record(struct sandbox *sandbox, struct execution *execution)
{
    bool is_sandbox_over = execution->is_sandbox_over;
    struct error err = {0};

    if (put_shown(sandbox, execution, &err) < 0) {
        log_error("the end of a command could not be recorded; it is tried again",
                  F_EXECUTION(execution->id), F("error", (const char *)err.text));
        return -1;
    }
    unlink_execution(sandbox, execution);
    let_go(sandbox, execution);
    if (is_sandbox_over)
        ending_start_box(sandbox);
    return 0;
}

void execution_record_shown(struct sandbox *sandbox)
{
    for (struct execution *execution = sandbox->executions, *next; execution; execution = next) {
        next = execution->next;
        if (execution->announced_at != 0 && record(sandbox, execution) < 0)
            return;
    }
}

void execution_recorded(struct sandbox *sandbox, struct execution *execution)
{
    execution->is_recorded = true;
    sandbox->sandboxes->executions->n_running++;
    if (!execution->is_queued) // which is known since it waits
        executions_add(sandbox->sandboxes->executions, execution);
}

/* Under record_lock, or the lock; or NULL. */
static struct execution *find(struct sandbox *sandbox, uint32_t number)
{
    struct execution *execution = sandbox->executions;
    while (execution && execution->number != number)
        execution = execution->next;
    return execution;
}

static void take_exit(struct sandbox *sandbox, struct execution *execution,
                      const struct process_exit *exit)
{
    if (execution->announced_at != 0)
        return;
    execution->exit = *exit;
    if (exit->cause != CAUSE_EXIT) // else it is empty, or whoever measured has written it
        exit_explain(exit, &sandbox->record.limits, (uint64_t)execution->record.command.timeout_ms,
                     NULL, execution->exit.text, sizeof execution->exit.text);
    execution->has_exit = true;
    show(sandbox, execution);
}

/* True: PID 1 may forget it. */
static bool end(struct sandbox *sandbox, const struct process_exit *exit)
{
    autolock(&sandbox->record_lock);
    struct execution *execution = find(sandbox, exit->id);
    if (!execution)
        return true;
    take_exit(sandbox, execution, exit);
    return execution->announced_at != 0 && record(sandbox, execution) == 0;
}

void execution_ended(struct sandbox *sandbox, const struct process_exit *exit)
{
    if (end(sandbox, exit))
        execution_collect(sandbox, exit->id);
}

static bool copy_exit(struct sandbox *sandbox, struct execution *execution,
                      struct process_exit *exit)
{
    autolock(&sandbox->record_lock);
    *exit = execution->exit;
    return execution->has_exit;
}

void execution_end_early(struct sandbox *sandbox, struct execution *execution)
{
    struct process_exit exit;

    if (copy_exit(sandbox, execution, &exit))
        execution_ended(sandbox, &exit);
}

// ---- on the monitor ----

/* One that failed in a sandbox of its own: whether a limit stood in its way is told, and is not known without a look at the disk. */
static bool is_measured(const struct sandbox *sandbox, const struct process_exit *exit)
{
    return sandbox->record.mode == SANDBOX_ONE_SHOT && exit->cause == CAUSE_EXIT && exit->code != 0;
}

static void measure(struct sandbox *sandbox, struct process_exit *exit)
{
    struct cgroup_usage usage = {0};
    struct error ignored = {0};
    struct exit_use use = {0};
    autobox held = sandbox_share_box(sandbox);

    if (!sandbox->box || sandbox->is_box_over || box_usage(sandbox->box, &usage, &ignored) < 0 ||
        box_disk_usage(sandbox->box, &use.disk_bytes, &ignored) < 0)
        return;
    use.processes_refused = usage.procs_refused;
    exit_explain(exit, &sandbox->record.limits, 0, &use, exit->text, sizeof exit->text);
}

static void on_letter_exit(struct sandbox *sandbox, void *data)
{
    autofree struct process_exit *exit = data;

    if (is_measured(sandbox, exit))
        measure(sandbox, exit);
    execution_ended(sandbox, exit);
}

static void note_exit(struct execution *execution, const struct process_exit *exit)
{
    if (execution->announced_at != 0)
        return;
    execution->exit = *exit;
    execution->is_exit_noted = true;
}

/* Unless somebody is changing the sandbox's records: then the letter does. */
static void try_show(struct sandbox *sandbox, const struct process_exit *exit)
{
    autolock_try(held, &sandbox->record_lock);
    struct execution *execution = held ? find(sandbox, exit->id) : NULL;

    if (execution && is_measured(sandbox, exit))
        note_exit(execution, exit); // should the sandbox end before the letter is read
    else if (execution)
        take_exit(sandbox, execution, exit);
}

/* Whoever has taken it is an execution by now; nobody else can any more. */
static void forget_resident(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    sandbox->has_resident = false;
}

void execution_on_exit(struct sandbox *sandbox, const struct process_exit *exit)
{
    struct process_exit *letter = xnew(struct process_exit);

    *letter = *exit;
    if (exit->id == SPARE_RESIDENT)
        forget_resident(sandbox);
    try_show(sandbox, exit);
    mailbox_post(sandbox, on_letter_exit, letter);
}

static void on_letter_kill(struct sandbox *sandbox, void *data)
{
    autoptr(execution) execution = data;

    if (sandbox->is_copied) // it stands still, and whoever kills it would wait
        execution->kill_ms = (int64_t)clock_monotonic_ms() + KILL_AGAIN_MS;
    else
        execution_kill(sandbox, execution);
}

/* One whose patience has ended: a reference, or NULL. */
static struct execution *next_due(struct sandbox *sandbox, int64_t now)
{
    autolock(&sandbox->lock);
    struct execution *execution = sandbox->executions;
    while (execution && !(execution->kill_ms && execution->kill_ms <= now))
        execution = execution->next;
    return execution ? execution_ref(execution) : NULL;
}

/* Whose end is not recorded; or NULL. Under record_lock. */
static struct execution *find_unrecorded(struct sandbox *sandbox)
{
    struct execution *execution = sandbox->executions;
    while (execution &&
           !(execution->announced_at || (execution->is_recorded && execution->has_exit)))
        execution = execution->next;
    return execution;
}

/* Its number, once it is recorded; 0: there is none, or it could not be. */
static uint32_t record_one(struct sandbox *sandbox)
{
    autolock(&sandbox->record_lock);
    struct execution *execution = find_unrecorded(sandbox);
    if (!execution)
        return 0;
    uint32_t number = execution->number;
    show(sandbox, execution);
    return execution->announced_at != 0 && record(sandbox, execution) == 0 ? number : 0;
}

static void on_letter_check(struct sandbox *sandbox, void *data)
{
    (void)data;
    sandbox->is_check_posted = false;
    for (uint32_t number; (number = record_one(sandbox));)
        execution_collect(sandbox, number);
}

static bool has_unrecorded(struct sandbox *sandbox)
{
    autolock_try(held, &sandbox->record_lock);
    return held && find_unrecorded(sandbox);
}

void execution_check_deadlines(struct sandbox *sandbox, int64_t now)
{
    for (struct execution *execution; (execution = next_due(sandbox, now));) {
        execution->kill_ms = 0;
        mailbox_post(sandbox, on_letter_kill, execution);
    }
    if (has_unrecorded(sandbox) && !atomic_exchange(&sandbox->is_check_posted, true))
        mailbox_post(sandbox, on_letter_check, NULL);
}

// ---- with the sandbox ----

/* Whether an output was cut at its cap, which PID 1 is no longer there to tell. Timestamps count too. */
static bool is_cut(const struct execution_record *record, struct stream *output, int64_t written)
{
    struct stream_progress progress = {0};

    if (record->output_cap_bytes <= 0)
        return false;
    if (output && record->has_timestamps)
        stream_progress(output, &progress);
    return written > record->output_cap_bytes ||
           (int64_t)progress.size_bytes >= record->output_cap_bytes;
}

/* What the end of the whole sandbox makes of a command's record, unless it had ended by itself. Strings are borrowed. */
static void apply_end(const struct execution *execution, enum execution_state state,
                      const char *error, int64_t now, struct execution_record *record)
{
    if (execution->has_exit || execution->is_exit_noted) {
        apply_exit(execution, &execution->exit, now, record);
        return;
    }
    record->state = state;
    record->exit.cause = state == EXECUTION_CANCELLED ? EXECUTION_STOPPED : EXECUTION_BOX_ENDED;
    record->exit.code = KILLED;
    record->exit.signal = SIGKILL;
    record->error = error;
    record->ended_at = record->updated_at = now;
    record->exit.duration_us = (now - record->started_at) * 1000;
    record->exit.stdout_bytes = execution->stdout_bytes;
    record->exit.stderr_bytes = execution->stderr_bytes;
    record->exit.is_truncated = is_cut(record, execution->output, record->exit.stdout_bytes) ||
                                is_cut(record, execution->error, record->exit.stderr_bytes);
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
            apply_end(execution, state, error, now, &ended);
        if (put_end(sandbox, execution, &ended, err) < 0)
            return -1;
    }
    return 0;
}

static void end_with_sandbox(struct sandbox *sandbox, struct execution *execution,
                             enum execution_state state, const char *error, int64_t now)
{
    struct execution_record ended = execution->record;

    apply_end(execution, state, error, now, &ended);
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

/* Takes what was written, and gives the outputs it has, each once: references, or NULL. */
static void note_output(struct sandbox *sandbox, const struct box_event *event,
                        struct stream **output, struct stream **error)
{
    autolock(&sandbox->lock);
    struct execution *execution = find(sandbox, event->id);
    if (execution) {
        execution->stdout_bytes = (int64_t)event->stdout_bytes;
        execution->stderr_bytes = (int64_t)event->stderr_bytes;
    }
    if (execution && execution->output)
        *output = stream_ref(execution->output);
    if (execution && execution->error && execution->error != execution->output)
        *error = stream_ref(execution->error);
}

void execution_announce_output(struct sandbox *sandbox, const struct box_event *event)
{
    autoptr(stream) output = NULL;
    autoptr(stream) error = NULL;

    note_output(sandbox, event, &output, &error);
    if (output)
        streams_announce(sandbox->sandboxes->streams, output);
    if (error)
        streams_announce(sandbox->sandboxes->streams, error);
}

/* Whether there is an end in memory that is not in the store: such an execution is still in the list. */
bool execution_is_any_ahead(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    for (struct execution *execution = sandbox->executions; execution;
         execution = execution->next) {
        autolock(&execution->lock);
        if (execution_is_over(&execution->record))
            return true;
    }
    return false;
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
