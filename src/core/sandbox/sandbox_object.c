/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox as an object; see sandbox_object.h. */
#include "core/sandbox/sandbox_object.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/sandbox/registry.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define PATIENCE_S 300

void sandbox_settle(struct sandbox *sandbox)
{
    if (!sandbox->sandboxes->execution_ops->is_ahead(sandbox))
        return;
    (void)pthread_mutex_lock(&sandbox->record_lock); // which is held until it is recorded
    (void)pthread_mutex_unlock(&sandbox->record_lock);
}

struct sandbox *sandbox_new(struct sandboxes *sandboxes, const struct sandbox_record *record)
{
    struct sandbox *sandbox = xnew(struct sandbox);
    sandbox->refs = 1;
    sandbox->sandboxes = sandboxes;
    (void)snprintf(sandbox->id, sizeof sandbox->id, "%s", record->id);
    sandbox->known = (struct id_entry){.id = sandbox->id, .hash = id_hash(sandbox->id)};
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
    sandbox->sandboxes->execution_ops->free_all(sandbox);
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
        registry_end(sandbox->sandboxes->registry, sandbox, false);
}

int sandbox_refuse_ending(struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "sandbox", "the sandbox has ended");
}

bool sandbox_is_over(struct sandbox *sandbox)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    bool is_over = (sandbox_in(sandbox->record.state) & SANDBOX_OVER) != 0;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return is_over;
}

char *sandbox_scratch(struct sandbox *sandbox)
{
    (void)pthread_mutex_lock(&sandbox->lock);
    char *scratch = sandbox->record.scratch ? xstrdup(sandbox->record.scratch) : NULL;
    (void)pthread_mutex_unlock(&sandbox->lock);
    return scratch;
}
