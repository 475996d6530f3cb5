/* SPDX-License-Identifier: Apache-2.0 */
/* Living sandboxes and their commands, as objects; see live.h. */
#include "core/sandbox/sandbox_object.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/stream/feed.h"
#include "core/sandbox/monitor.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 300

struct execution *execution_new(const char *id)
{
    struct execution *execution = xnew(struct execution);
    execution->refs = 1;
    (void)snprintf(execution->id, sizeof execution->id, "%s", id);
    (void)pthread_mutex_init(&execution->lock, NULL);
    return execution;
}

struct execution *execution_ref(struct execution *execution)
{
    execution->refs++;
    return execution;
}

void execution_free(struct execution *execution)
{
    if (!execution || --execution->refs > 0)
        return;
    if (execution->error != execution->output)
        stream_free(execution->error);
    stream_free(execution->output);
    stream_free(execution->input);
    if (execution->feed)
        feed_stop(execution->feed);
    execution_record_clear(&execution->record);
    (void)pthread_mutex_destroy(&execution->lock);
    free(execution);
}

/* Whether there is an end in memory that is not in the store: such a command is still in the list. */
static bool is_ahead(struct sandbox *sandbox)
{
    bool is_any = false;

    (void)pthread_mutex_lock(&sandbox->lock);
    for (struct execution *execution = sandbox->commands; execution && !is_any;
         execution = execution->next) {
        (void)pthread_mutex_lock(&execution->lock);
        is_any = execution_is_over(&execution->record);
        (void)pthread_mutex_unlock(&execution->lock);
    }
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_any;
}

void sandbox_settle(struct sandbox *sandbox)
{
    if (!is_ahead(sandbox))
        return;
    (void)pthread_mutex_lock(&sandbox->record_lock); // which is held until it is recorded
    (void)pthread_mutex_unlock(&sandbox->record_lock);
}

void execution_copy(struct execution *execution, struct execution_record *out)
{
    (void)pthread_mutex_lock(&execution->lock);
    execution_record_copy(out, &execution->record);
    (void)pthread_mutex_unlock(&execution->lock);
}

/* A text that may be the one that is there. What goes is the caller's to free. */
static const char *replace(const char **text, const char *next)
{
    const char *before = *text;

    if (next == before)
        return NULL;
    *text = next ? xstrdup(next) : NULL;
    return before;
}

/* Nothing else is written: all other texts are read without the lock, and stay where they are as long as it is known. */
void execution_set(struct execution *execution, const struct execution_record *next)
{
    struct execution_record *own = &execution->record;

    (void)pthread_mutex_lock(&execution->lock);
    const char *gone[] = {
        replace(&own->error, next->error),
        replace(&own->stop_reason, next->stop_reason),
        replace(&own->stdout_stream, next->stdout_stream),
        replace(&own->stderr_stream, next->stderr_stream),
    };
    own->state = next->state;
    own->cause = next->cause;
    own->exit_code = next->exit_code;
    own->signal = next->signal;
    own->started_at = next->started_at;
    own->ended_at = next->ended_at;
    own->stop_at = next->stop_at;
    own->stdout_bytes = next->stdout_bytes;
    own->stderr_bytes = next->stderr_bytes;
    own->is_truncated = next->is_truncated;
    own->cpu_user_us = next->cpu_user_us;
    own->cpu_system_us = next->cpu_system_us;
    own->max_rss_bytes = next->max_rss_bytes;
    own->duration_us = next->duration_us;
    own->updated_at = next->updated_at;
    (void)pthread_mutex_unlock(&execution->lock);
    for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
        free((char *)gone[i]);
}

bool execution_is_cancelled(struct execution *execution)
{
    (void)pthread_mutex_lock(&execution->lock);
    bool is_so = execution->record.stop_at != 0;
    (void)pthread_mutex_unlock(&execution->lock);
    return is_so;
}

struct sandbox *sandbox_new(struct core *core, const struct sandbox_record *record)
{
    struct sandbox *sandbox = xnew(struct sandbox);
    sandbox->refs = 1;
    sandbox->core = core;
    (void)snprintf(sandbox->id, sizeof sandbox->id, "%s", record->id);
    (void)pthread_mutex_init(&sandbox->box_lock, NULL);
    (void)pthread_mutex_init(&sandbox->record_lock, NULL);
    (void)pthread_mutex_init(&sandbox->lock, NULL);
    (void)pthread_cond_init(&sandbox->changed, NULL);
    sandbox_record_copy(&sandbox->record, record);
    sandbox->last_number = (uint32_t)record->process_count;
    sandbox->active_at = record->active_at;
    sandbox->counted_cpu_ms = record->counted_cpu_ms;
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
    assert(!sandbox->is_watched);
    while (sandbox->commands) {
        struct execution *execution = sandbox->commands;
        sandbox->commands = execution->next;
        execution_free(execution);
    }
    box_free(sandbox->box);
    for (char **entry = sandbox->runtime_env; entry && *entry; entry++)
        free(*entry);
    free(sandbox->runtime_env);
    sandbox_record_clear(&sandbox->record);
    (void)pthread_cond_destroy(&sandbox->changed);
    (void)pthread_mutex_destroy(&sandbox->lock);
    (void)pthread_mutex_destroy(&sandbox->record_lock);
    (void)pthread_mutex_destroy(&sandbox->box_lock);
    free(sandbox);
}

int sandbox_went_back(struct error *err)
{
    return error_refuse(err, ERROR_STATE, "sandbox",
                        "the sandbox has just gone back to a checkpoint; try again");
}

int sandbox_lock_box(struct sandbox *sandbox, struct error *err)
{
    (void)pthread_mutex_lock(&sandbox->box_lock);
    if (sandbox->box && !sandbox->is_box_over)
        return 0;
    (void)pthread_mutex_unlock(&sandbox->box_lock);
    if (sandbox_is_in(sandbox, sandbox_in(SANDBOX_PAUSING)))
        return sandbox_went_back(err);
    return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended");
}

bool sandbox_try_box(struct sandbox *sandbox)
{
    if (pthread_mutex_trylock(&sandbox->box_lock) != 0)
        return false;
    if (sandbox->box && !sandbox->is_box_over)
        return true;
    (void)pthread_mutex_unlock(&sandbox->box_lock);
    return false;
}

void sandbox_unlock_box(struct sandbox *sandbox)
{
    (void)pthread_mutex_unlock(&sandbox->box_lock);
    if (atomic_exchange(&sandbox->has_events, false))
        monitor_arm(sandbox->core->monitor, sandbox);
}

bool sandbox_is_in(struct sandbox *sandbox, unsigned states)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    bool is_in = (sandbox_in(sandbox->record.state) & states) != 0;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_in;
}

int sandbox_await_calm(struct sandbox *sandbox, struct error *err)
{
    const unsigned restless =
        sandbox_in(SANDBOX_CREATING) | sandbox_in(SANDBOX_PAUSING) | sandbox_in(SANDBOX_RESUMING);
    struct timespec deadline;
    int code = 0;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&sandbox->lock);
    while ((sandbox_in(sandbox->record.state) & restless) && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&sandbox->changed, &sandbox->lock, &deadline);
    enum sandbox_state state = sandbox->record.state;
    (void)pthread_mutex_unlock(&sandbox->lock);
    if (!(sandbox_in(state) & restless))
        return 0;
    return error_set(err, ERROR_TIMEOUT, "the sandbox is still %s; try again",
                     sandbox_state_name(state));
}

uint32_t sandbox_next_number(struct sandbox *sandbox)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    uint32_t next = sandbox->last_number + 1;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return next;
}

void sandbox_touch(struct sandbox *sandbox)
{
    sandbox->active_at = (int64_t)clock_wall_ms();
}

void sandbox_copy(struct sandbox *sandbox, struct sandbox_record *out)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    sandbox_record_copy(out, &sandbox->record);
    (void)pthread_mutex_unlock(&sandbox->lock);
}

/* What a change of state changes. All other texts of a record stay where they are as long as it lives. */
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

void sandbox_change(struct sandbox *sandbox, struct sandbox_record *next)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    bool was_over = (sandbox_in(sandbox->record.state) & SANDBOX_OVER) != 0;
    bool is_over = (sandbox_in(next->state) & SANDBOX_OVER) != 0;
    move_state(&sandbox->record, next);
    (void)pthread_cond_broadcast(&sandbox->changed);
    (void)pthread_mutex_unlock(&sandbox->lock);
    sandbox_record_clear(next);
    if (is_over && !was_over)
        registry_end(sandbox->core->registry, sandbox, false);
}
