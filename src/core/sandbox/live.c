/* SPDX-License-Identifier: Apache-2.0 */
/* Living sandboxes and their commands, as objects; see live.h. */
#include "core/sandbox/live.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/stream/feed.h"
#include "core/sandbox/keeper.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 300

struct running *running_new(const char *id)
{
    struct running *running = xnew(struct running);
    running->refs = 1;
    (void)snprintf(running->id, sizeof running->id, "%s", id);
    (void)pthread_mutex_init(&running->lock, NULL);
    return running;
}

struct running *running_ref(struct running *running)
{
    running->refs++;
    return running;
}

void running_free(struct running *running)
{
    if (!running || --running->refs > 0)
        return;
    if (running->error != running->output)
        stream_free(running->error);
    stream_free(running->output);
    stream_free(running->input);
    if (running->feed)
        feed_stop(running->feed);
    execution_record_clear(&running->record);
    (void)pthread_mutex_destroy(&running->lock);
    free(running);
}

/* Whether there is an end in memory that is not in the store: such a command is still in the list. */
static bool is_ahead(struct live *live)
{
    bool is_any = false;

    (void)pthread_mutex_lock(&live->lock);
    for (struct running *running = live->commands; running && !is_any; running = running->next) {
        (void)pthread_mutex_lock(&running->lock);
        is_any = execution_is_over(&running->record);
        (void)pthread_mutex_unlock(&running->lock);
    }
    (void)pthread_mutex_unlock(&live->lock);
    return is_any;
}

void live_settle(struct live *live)
{
    if (!is_ahead(live))
        return;
    (void)pthread_mutex_lock(&live->turn); // which is held until it is recorded
    (void)pthread_mutex_unlock(&live->turn);
}

void running_copy(struct running *running, struct execution_record *out)
{
    (void)pthread_mutex_lock(&running->lock);
    execution_record_copy(out, &running->record);
    (void)pthread_mutex_unlock(&running->lock);
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
void running_set(struct running *running, const struct execution_record *next)
{
    struct execution_record *own = &running->record;

    (void)pthread_mutex_lock(&running->lock);
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
    (void)pthread_mutex_unlock(&running->lock);
    for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
        free((char *)gone[i]);
}

bool running_is_cancelled(struct running *running)
{
    (void)pthread_mutex_lock(&running->lock);
    bool is_so = running->record.stop_at != 0;
    (void)pthread_mutex_unlock(&running->lock);
    return is_so;
}

struct live *live_new(struct core *core, const struct sandbox_record *record)
{
    struct live *live = xnew(struct live);
    live->refs = 1;
    live->core = core;
    (void)snprintf(live->id, sizeof live->id, "%s", record->id);
    (void)pthread_mutex_init(&live->box_lock, NULL);
    (void)pthread_mutex_init(&live->turn, NULL);
    (void)pthread_mutex_init(&live->lock, NULL);
    (void)pthread_cond_init(&live->changed, NULL);
    sandbox_record_copy(&live->record, record);
    live->last_number = (uint32_t)record->process_count;
    live->active_at = record->active_at;
    live->counted_cpu_ms = record->counted_cpu_ms;
    return live;
}

struct live *live_ref(struct live *live)
{
    live->refs++;
    return live;
}

void live_free(struct live *live)
{
    if (!live || --live->refs > 0)
        return;
    assert(!live->is_watched);
    while (live->commands) {
        struct running *running = live->commands;
        live->commands = running->next;
        running_free(running);
    }
    box_free(live->box);
    for (char **entry = live->runtime_env; entry && *entry; entry++)
        free(*entry);
    free(live->runtime_env);
    sandbox_record_clear(&live->record);
    (void)pthread_cond_destroy(&live->changed);
    (void)pthread_mutex_destroy(&live->lock);
    (void)pthread_mutex_destroy(&live->turn);
    (void)pthread_mutex_destroy(&live->box_lock);
    free(live);
}

int live_went_back(struct error *err)
{
    error_set(err, ERROR_CONFLICT, "the sandbox has just gone back to a checkpoint; try again");
    return error_about(err, "sandbox", "state");
}

int live_lock_box(struct live *live, struct error *err)
{
    (void)pthread_mutex_lock(&live->box_lock);
    if (live->box && !live->is_box_over)
        return 0;
    (void)pthread_mutex_unlock(&live->box_lock);
    if (live_is_in(live, sandbox_in(SANDBOX_PAUSING)))
        return live_went_back(err);
    error_set(err, ERROR_GONE, "the sandbox has ended");
    return error_about(err, "sandbox", "ended");
}

bool live_try_box(struct live *live)
{
    if (pthread_mutex_trylock(&live->box_lock) != 0)
        return false;
    if (live->box && !live->is_box_over)
        return true;
    (void)pthread_mutex_unlock(&live->box_lock);
    return false;
}

void live_unlock_box(struct live *live)
{
    (void)pthread_mutex_unlock(&live->box_lock);
    if (atomic_exchange(&live->has_news, false))
        keeper_arm(live->core->keeper, live);
}

bool live_is_in(struct live *live, unsigned states)
{
    (void)pthread_mutex_lock(&live->lock);
    bool is_in = (sandbox_in(live->record.state) & states) != 0;
    (void)pthread_mutex_unlock(&live->lock);
    return is_in;
}

int live_await_calm(struct live *live, struct error *err)
{
    const unsigned restless =
        sandbox_in(SANDBOX_CREATING) | sandbox_in(SANDBOX_PAUSING) | sandbox_in(SANDBOX_RESUMING);
    struct timespec deadline;
    int code = 0;

    (void)clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    (void)pthread_mutex_lock(&live->lock);
    while ((sandbox_in(live->record.state) & restless) && code != ETIMEDOUT)
        code = pthread_cond_timedwait(&live->changed, &live->lock, &deadline);
    enum sandbox_state state = live->record.state;
    (void)pthread_mutex_unlock(&live->lock);
    if (!(sandbox_in(state) & restless))
        return 0;
    return error_set(err, ERROR_TIMEOUT, "the sandbox is still %s; try again",
                     sandbox_state_name(state));
}

uint32_t live_next_number(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    uint32_t next = live->last_number + 1;
    (void)pthread_mutex_unlock(&live->lock);
    return next;
}

void live_touch(struct live *live)
{
    live->active_at = (int64_t)clock_wall_ms();
}

void live_copy(struct live *live, struct sandbox_record *out)
{
    (void)pthread_mutex_lock(&live->lock);
    sandbox_record_copy(out, &live->record);
    (void)pthread_mutex_unlock(&live->lock);
}

/* What a change of state changes. All other texts of a record stay where they are as long as it lives. */
static void move_state(struct sandbox_record *to, struct sandbox_record *from)
{
    const char *texts[] = {to->reason, to->error};

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
    from->reason = texts[0];
    from->error = texts[1];
}

void live_change(struct live *live, struct sandbox_record *next)
{
    (void)pthread_mutex_lock(&live->lock);
    bool was_over = (sandbox_in(live->record.state) & SANDBOX_OVER) != 0;
    bool is_over = (sandbox_in(next->state) & SANDBOX_OVER) != 0;
    move_state(&live->record, next);
    (void)pthread_cond_broadcast(&live->changed);
    (void)pthread_mutex_unlock(&live->lock);
    sandbox_record_clear(next);
    if (is_over && !was_over)
        registry_end(live->core->registry, live, false);
}
