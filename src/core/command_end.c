/* SPDX-License-Identifier: Apache-2.0 */
/* How commands end and are recorded; see command.h. */
#include "core/command.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/ending.h"
#include "core/event.h"
#include "core/feed.h"
#include "core/note.h"
#include "core/queue.h"

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

static enum execution_state state_of(const struct running *running, const struct process_exit *exit)
{
    if (running->record.stop_at)
        return EXECUTION_CANCELLED;
    switch (exit->cause) {
    case CAUSE_TIMEOUT:
        return EXECUTION_TIMED_OUT;
    case CAUSE_NOT_FOUND:
    case CAUSE_NOT_RUN:
    case CAUSE_BOX_ENDED:
        return EXECUTION_FAILED;
    default:
        return running->is_input_cut ? EXECUTION_FAILED : EXECUTION_COMPLETED;
    }
}

/* What the end makes of the record; texts are borrowed from it, from the exit, or literals. */
static void apply_exit(const struct running *running, const struct process_exit *exit, int64_t now,
                       struct execution_record *record)
{
    record->state = state_of(running, exit);
    record->cause = record->state == EXECUTION_CANCELLED ? EXECUTION_STOPPED : causes[exit->cause];
    record->exit_code = exit->code;
    record->signal = exit->signal;
    if (exit->cause != CAUSE_EXIT && exit->text[0])
        record->error = exit->text;
    if (running->is_input_cut)
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

static int put_streams(struct live *live, struct running *running, bool is_truncated, int64_t now,
                       struct error *err)
{
    struct streams *streams = live->core->streams;

    if (running->output && streams_put_end(streams, running->output, is_truncated, now, err) < 0)
        return -1;
    if (running->error && running->error != running->output &&
        streams_put_end(streams, running->error, is_truncated, now, err) < 0)
        return -1;
    return running->input ? streams_put_end(streams, running->input, false, now, err) : 0;
}

static int put_end(struct live *live, struct running *running, const struct execution_record *ended,
                   struct error *err)
{
    if (store_execution_update(live->core->store, ended,
                               EXECUTION_PART_STATE | EXECUTION_PART_RESULT, EXECUTION_OPEN,
                               err) < 0)
        return -1;
    return put_streams(live, running, ended->is_truncated, ended->ended_at, err);
}

/* Is it the last execution that keeps the sandbox running? Jobs do not. The caller has the turn. */
static bool is_last(struct live *live, const struct running *running)
{
    if (running->record.kind != EXECUTION_COMMAND)
        return false;
    for (struct running *other = live->commands; other; other = other->next) {
        if (other != running && other->is_recorded && other->record.kind == EXECUTION_COMMAND)
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

static int foresee(struct live *live, struct running *running, const struct execution_record *ended,
                   struct effect *effect, struct error *err)
{
    if (running->told_at == 0) {
        running->is_sandbox_over =
            live->record.mode == SANDBOX_ONE_SHOT && ended->kind == EXECUTION_COMMAND;
        running->is_sandbox_idle = !running->is_sandbox_over && is_last(live, running) &&
                                   live->record.state == SANDBOX_RUNNING;
    }
    effect->is_over = running->is_sandbox_over;
    effect->has_rest = running->is_sandbox_idle;
    if (running->told_at != 0) { // it has happened already
        live_copy(live, &effect->next);
        return 0;
    }
    if (effect->is_over)
        return ending_foresee(live, STEP_END, "one_shot", ended->exit_code, ended->ended_at,
                              &effect->next, err);
    live_copy(live, &effect->next);
    effect->next.updated_at = effect->next.active_at = ended->ended_at;
    return effect->has_rest ? lifecycle_take(&effect->next, STEP_REST, NULL, ended->ended_at, err)
                            : 0;
}

static int put_effect(struct live *live, const struct execution_record *ended,
                      const struct effect *effect, struct error *err)
{
    const char *noun = ended->kind == EXECUTION_JOB ? "job" : "execution";
    struct note note = {.type = EVENT_COMPLETED, .reason = noun, .now = ended->ended_at};

    note_fact(&note, noun, ended->id);
    note_number(&note, "exit_code", ended->exit_code);
    note_fact(&note, "state", execution_state_name(ended->state));
    if (note_put(live, &note, err) < 0)
        return -1;
    if (effect->is_over)
        return ending_put(live, STEP_END, &effect->next, err);
    if (!effect->has_rest)
        return 0;
    return store_sandbox_update(live->core->store, &effect->next,
                                SANDBOX_PART_LIVING | SANDBOX_PART_DEADLINES,
                                lifecycle_from(STEP_REST), err);
}

static void unlink_command(struct live *live, struct running *running)
{
    (void)pthread_mutex_lock(&live->lock);
    struct running **at = &live->commands;
    while (*at && *at != running)
        at = &(*at)->next;
    if (*at)
        *at = running->next;
    (void)pthread_mutex_unlock(&live->lock);
}

/* Its place in the sandbox is free. */
static void leave(struct live *live, struct running *running)
{
    (void)pthread_mutex_lock(&live->lock);
    if (running->record.kind == EXECUTION_JOB)
        live->n_jobs--;
    else
        live->n_executions--;
    (void)pthread_mutex_unlock(&live->lock);
    live->core->n_commands--;
    if (running->queue)
        queue_left(running->queue);
}

static void effect_clear(struct effect *effect)
{
    sandbox_record_clear(&effect->next);
}

/* Before the command itself: whoever sees that it has ended finds its streams complete. */
static void end_streams(struct live *live, struct running *running)
{
    struct streams *streams = live->core->streams;

    if (running->output)
        streams_end(streams, running->output);
    if (running->error && running->error != running->output)
        streams_end(streams, running->error);
    if (running->input)
        streams_end(streams, running->input);
}

static void give_up(struct core *core, struct stream *stream, bool is_new)
{
    if (is_new)
        streams_let_linger(core->streams, stream);
    else
        stream_free(stream);
}

/* Nobody will look for it here any more. Takes the list's reference. */
static void let_go(struct live *live, struct running *running)
{
    struct command_streams held = command_take_streams(live, running);

    if (running->feed)
        feed_stop(take(running->feed));
    give_up(live->core, held.output, running->is_output_new);
    give_up(live->core, held.error, running->is_error_new);
    stream_free(held.input);
    registry_end_command(live->core->registry, running, false);
    running_free(running);
}

static int record_end(struct live *live, struct running *running,
                      const struct execution_record *ended, const struct effect *effect,
                      struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    do
        is_put = store_begin(live->core->store, STORE_FAST, &together, err) == 0 &&
                 put_end(live, running, ended, err) == 0 &&
                 put_effect(live, ended, effect, err) == 0 && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

void command_collect(struct live *live, uint32_t number)
{
    struct error ignored = {0};
    if (live_lock_box(live, &ignored) < 0)
        return;
    (void)box_collect(live->box, number, &ignored);
    box_prepare(live->box, live_next_number(live));
    live_unlock_box(live);
}

/* The end as everybody sees it from now on. */
static void show_end(struct live *live, struct running *running,
                     const struct execution_record *ended, struct effect *effect)
{
    bool is_changed = effect->is_over || effect->has_rest;

    end_streams(live, running);
    running_set(running, ended);
    leave(live, running);
    live_touch(live);
    if (is_changed)
        live_change(live, &effect->next);
    hub_tell(live->core->hub, running->id);
    if (is_changed)
        hub_tell(live->core->hub, live->id);
}

/*
 * Whoever waits is told first and the store afterwards: until the end is recorded PID 1 still has it, so it is not lost, and those
 * who wait do not wait for the database. The caller has the turn and gives it up here.
 */
static void finish(struct live *live, struct running *running, const struct process_exit *exit)
{
    struct execution_record ended = running->record;
    __attribute__((cleanup(effect_clear))) struct effect effect = {0};
    struct effect shown = {0};
    struct error err = {0};

    if (running->told_at == 0) // else the record says how it ended
        apply_exit(running, exit, (int64_t)clock_wall_ms(), &ended);
    int result = foresee(live, running, &ended, &effect, &err);
    if (result == 0 && running->told_at == 0) {
        running->told_at = ended.ended_at;
        shown = effect;
        sandbox_record_copy(&shown.next, &effect.next);
        show_end(live, running, &ended, &shown);
        sandbox_record_clear(&shown.next);
        ended = running->record; // whose texts are where they will stay
        (void)sched_yield();     // to those who were told, where they are on this processor too
    }
    if (result < 0 || record_end(live, running, &ended, &effect, &err) < 0) {
        log_error("the end of a command could not be recorded; it is tried again",
                  F("execution", (const char *)running->id), F("error", (const char *)err.text));
        running->exit = *exit;
        running->has_exit = true;
        (void)pthread_mutex_unlock(&live->turn);
        return;
    }
    uint32_t number = running->number;
    unlink_command(live, running);
    (void)pthread_mutex_unlock(&live->turn);
    let_go(live, running);
    if (effect.is_over)
        ending_start_box(live);
    else
        command_collect(live, number);
}

void command_recorded(struct live *live, struct running *running)
{
    running->is_recorded = true;
    live->core->n_commands++;
    if (!running->is_queued) // which is known since it waits
        registry_add_command(live->core->registry, running);
    if (!running->has_exit) {
        (void)pthread_mutex_unlock(&live->turn);
        return;
    }
    running->has_exit = false;
    struct process_exit exit = running->exit;
    finish(live, running, &exit);
}

void command_ended(struct live *live, const struct process_exit *exit)
{
    (void)pthread_mutex_lock(&live->turn);
    struct running *running = live->commands;
    while (running && running->number != exit->id)
        running = running->next;
    if (running && running->is_recorded) {
        finish(live, running, exit);
        return;
    }
    if (running) {
        running->exit = *exit;
        running->has_exit = true;
    }
    (void)pthread_mutex_unlock(&live->turn);
    if (!running)
        command_collect(live, exit->id);
}

static void kill_now(struct live *live, struct running *running)
{
    running->kill_at = 0;
    command_kill(live, running);
}

/* A command that needs looking after now: a reference, or NULL. */
static struct running *next_due(struct live *live, int64_t now)
{
    (void)pthread_mutex_lock(&live->lock);
    struct running *running = live->commands;
    while (running && !(running->kill_at && running->kill_at <= now))
        running = running->next;
    if (running)
        running_ref(running);
    (void)pthread_mutex_unlock(&live->lock);
    return running;
}

static void retry_end(struct live *live)
{
    (void)pthread_mutex_lock(&live->turn);
    struct running *running = live->commands;
    while (running && !(running->is_recorded && running->has_exit))
        running = running->next;
    if (!running) {
        (void)pthread_mutex_unlock(&live->turn);
        return;
    }
    running->has_exit = false;
    struct process_exit exit = running->exit;
    finish(live, running, &exit);
}

void command_look_after(struct live *live, int64_t now)
{
    for (struct running *running; (running = next_due(live, now));) {
        kill_now(live, running);
        running_free(running);
    }
    if (pthread_mutex_trylock(&live->turn) != 0)
        return; // somebody is at it
    bool has_commands = live->commands != NULL;
    (void)pthread_mutex_unlock(&live->turn);
    if (has_commands)
        retry_end(live);
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

int command_put_ends(struct live *live, enum execution_state state, const char *error, int64_t now,
                     struct error *err)
{
    for (struct running *running = live->commands; running; running = running->next) {
        struct execution_record ended = running->record;
        if (!running->is_recorded)
            continue;
        if (running->told_at ==
            0) // else it has ended by itself, and only the store does not know yet
            apply_end(state, error, now, &ended);
        if (put_end(live, running, &ended, err) < 0)
            return -1;
    }
    return 0;
}

static void end_with_sandbox(struct live *live, struct running *running, enum execution_state state,
                             const char *error, int64_t now)
{
    struct execution_record ended = running->record;

    apply_end(state, error, now, &ended);
    end_streams(live, running);
    running_set(running, &ended);
    leave(live, running);
    hub_tell(live->core->hub, running->id);
}

void command_end_all(struct live *live, enum execution_state state, const char *error, int64_t now)
{
    struct running *running = live->commands;
    while (running) {
        struct running *next = running->next;
        if (running->is_recorded) {
            if (running->told_at == 0)
                end_with_sandbox(live, running, state, error, now);
            unlink_command(live, running);
            let_go(live, running);
        }
        running = next;
    }
}
