/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that wait until they may run; see queue.h. */
#include "core/execution/queue.h"
#include "base/log_ids.h"
#include "core/sandbox/registry.h"
#include "core/execution/executions.h"
#include "core/execution/execution_start.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/sandbox_event.h"
#include "core/event/hub.h"

#include <limits.h>
#include <string.h>

#define THREADS 4 // threads: a start may wait for its sandbox to wake

struct queue {
    struct executions *executions;
    struct workers *workers; // of its own, so that nobody else waits for a sandbox that wakes
    struct lock lock;        // guards all below
    struct execution *first, *last; // by next_queued; each holds a reference
    unsigned n_waiting;             // with places that are reserved
    unsigned n_running;             // of those it started, or is starting
    bool is_open;
};

int queue_new(struct executions *executions, struct queue **out, struct error *err)
{
    unsigned at_once = executions->sandboxes->settings->queue_at_once;
    const struct workers_settings workers = {
        .lane = {[WORKERS_SLOW] = {at_once < THREADS ? at_once : THREADS, at_once, "queue"}}};
    struct queue *queue = xnew(struct queue);

    queue->executions = executions;
    lock_init(&queue->lock, LOCK_QUEUE);
    if (workers_new(&workers, &queue->workers, err) < 0) {
        queue_free(queue);
        return -1;
    }
    *out = queue;
    return 0;
}

static void set_open(struct queue *queue, bool is_open)
{
    autolock(&queue->lock);
    queue->is_open = is_open;
}

void queue_stop(struct queue *queue)
{
    if (!queue)
        return;
    set_open(queue, false);
    workers_free(take(queue->workers));
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    while (queue->first) {
        struct execution *execution = queue->first;
        queue->first = execution->next_queued;
        execution_free(execution);
    }
    workers_free(queue->workers);
    lock_clear(&queue->lock);
    free(queue);
}

// ---- ends without a beginning ----

static void describe_end(const struct execution *execution, enum execution_state state,
                         const char *error, struct execution_record *ended)
{
    int64_t now = (int64_t)clock_wall_ms();

    *ended = execution->record; // strings are borrowed
    ended->state = state;
    ended->exit.cause = state == EXECUTION_CANCELLED ? EXECUTION_STOPPED : EXECUTION_NOT_RUN;
    ended->exit.code = NO_EXIT_CODE;
    if (error)
        ended->error = error;
    ended->started_at = state == EXECUTION_CANCELLED ? 0 : now;
    ended->stdout_stream = ended->stderr_stream = NULL; // of a start that failed
    ended->ended_at = ended->updated_at = now;
}

static int put_end(struct executions *executions, struct sandbox *sandbox,
                   const struct execution_record *ended, struct error *err)
{
    struct event event = {.type = EVENT_COMPLETED, .reason = "execution", .now = ended->ended_at};
    autotransaction together = {0};
    bool is_put;

    event_fact(&event, "execution", ended->id);
    event_fact(&event, "state", execution_state_name(ended->state));
    do
        is_put = store_begin(executions->sandboxes->store, STORE_FAST, &together, err) == 0 &&
                 store_execution_update(executions->sandboxes->store, ended,
                                        EXECUTION_PART_STATE | EXECUTION_PART_RESULT,
                                        EXECUTION_OPEN, err) == 0 &&
                 (!sandbox || event_put(sandbox, &event, err) == 0) &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

/* Where its sandbox is alive the caller holds record_lock. */
static void end(struct executions *executions, struct sandbox *sandbox, struct execution *execution,
                enum execution_state state, const char *error)
{
    struct execution_record ended;
    struct error err = {0};

    describe_end(execution, state, error, &ended);
    if (put_end(executions, sandbox, &ended, &err) < 0)
        log_error("the end of a queued command could not be recorded", F_EXECUTION(execution->id),
                  F("error", (const char *)err.text));
    execution_set(execution, &ended);
}

static void end_known(struct executions *executions, struct sandbox *sandbox,
                      struct execution *execution, enum execution_state state, const char *error)
{
    autolock(&sandbox->record_lock);
    end(executions, sandbox, execution, state, error);
    execution_leave(sandbox, EXECUTION_COMMAND);
}

void queue_end(struct queue *queue, struct execution *execution, enum execution_state state,
               const char *error)
{
    struct executions *executions = queue->executions;
    autoptr(sandbox) sandbox =
        registry_find(executions->sandboxes->registry, execution->record.sandbox_id);

    if (sandbox)
        end_known(executions, sandbox, execution, state, error);
    else
        end(executions, NULL, execution, state, error);
    executions_end(executions, execution);
    hub_announce(executions->sandboxes->hub, execution->id);
}

// ---- starting ----

static int start(struct queue *queue, struct execution *execution, struct error *err)
{
    autoptr(sandbox) sandbox =
        registry_find(queue->executions->sandboxes->registry, execution->record.sandbox_id);

    if (sandbox && !sandbox_is_over(sandbox))
        return execution_start_queued(sandbox, execution, err);
    return error_set(err, ERROR_GONE, "its sandbox has ended");
}

/* Its sandbox has ended, or is just about to. */
static bool is_sandbox_gone(const struct error *err)
{
    return error_is(err, ERROR_GONE) || error_is(err, ERROR_STATE);
}

static void start_one(void *data)
{
    autoptr(execution) execution = data;
    struct queue *queue = execution->queue;
    struct error err = {0};

    if (execution->record.error)
        queue_end(queue, execution, EXECUTION_FAILED, NULL); // refused when it was asked for
    else if (start(queue, execution, &err) == 0)
        return; // its end makes room
    else if (execution_is_cancelled(execution))
        queue_end(queue, execution, EXECUTION_CANCELLED, NULL);
    else if (is_sandbox_gone(&err))
        queue_end(queue, execution, EXECUTION_CANCELLED, "its sandbox has ended");
    else
        queue_end(queue, execution, EXECUTION_FAILED, err.text);
    queue_left(queue);
}

/* The next one that may start now, which is counted; or NULL. */
static struct execution *next_one(struct queue *queue)
{
    autolock(&queue->lock);
    struct execution *execution = NULL;
    if (queue->is_open && queue->n_running < queue->executions->sandboxes->settings->queue_at_once)
        execution = queue->first;
    if (execution) {
        queue->first = execution->next_queued;
        if (!queue->first)
            queue->last = NULL;
        execution->next_queued = NULL;
        execution->is_waiting = false;
        queue->n_waiting--;
        queue->n_running++;
    }
    return execution;
}

/* Nobody is free to start it: it is the first again. */
static void put_back(struct queue *queue, struct execution *execution)
{
    autolock(&queue->lock);
    execution->next_queued = queue->first;
    execution->is_waiting = true;
    queue->first = execution;
    if (!queue->last)
        queue->last = execution;
    queue->n_waiting++;
    queue->n_running--;
}

void queue_tick(struct queue *queue)
{
    struct error full = {0};

    for (struct execution *execution; (execution = next_one(queue));) {
        if (workers_submit(queue->workers, WORKERS_SLOW, start_one, execution, &full) < 0) {
            put_back(queue, execution); // the monitor comes by
            return;
        }
    }
}

static void count_left(struct queue *queue)
{
    autolock(&queue->lock);
    queue->n_running--;
}

void queue_left(struct queue *queue)
{
    count_left(queue);
    queue_tick(queue);
}

void queue_start(struct queue *queue)
{
    set_open(queue, true);
    queue_tick(queue);
}

// ---- waiting ----

static bool take_place(struct queue *queue, unsigned maximum)
{
    autolock(&queue->lock);
    bool has_room = queue->n_waiting < maximum;
    queue->n_waiting += has_room;
    return has_room;
}

int queue_reserve(struct queue *queue, struct error *err)
{
    unsigned length = queue->executions->sandboxes->settings->queue_length;

    if (take_place(queue, length))
        return 0;
    return error_refuse(err, ERROR_FULL, "queue",
                        "%u commands are waiting already; try again later", length);
}

void queue_give_back(struct queue *queue)
{
    autolock(&queue->lock);
    queue->n_waiting--;
}

static void append(struct queue *queue, struct execution *execution)
{
    execution_ref(execution);
    execution->queue = queue;
    autolock(&queue->lock);
    execution->is_waiting = true;
    if (queue->last)
        queue->last->next_queued = execution;
    else
        queue->first = execution;
    queue->last = execution;
}

void queue_add(struct queue *queue, struct execution *execution)
{
    append(queue, execution);
    queue_tick(queue);
}

void queue_adopt(struct queue *queue, const struct execution_record *record)
{
    autoptr(execution) execution = execution_new(record->id);
    autoptr(sandbox) sandbox =
        registry_find(queue->executions->sandboxes->registry, record->sandbox_id);

    execution_record_copy(&execution->record, record);
    // Its own may have been used already: a crash may have come between its start and the record of that.
    execution->number = 0;
    execution->is_queued = execution->is_renumbered = true;
    executions_add(queue->executions, execution);
    if (sandbox)
        sandbox->n_executions++; // nobody else sees it yet
    (void)take_place(queue, UINT_MAX);
    append(queue, execution);
}

/* With the lock held. */
static void unlink_one(struct queue *queue, struct execution *execution)
{
    struct execution *before = NULL;
    struct execution *at = queue->first;

    while (at != execution) {
        before = at;
        at = at->next_queued;
    }
    if (before)
        before->next_queued = execution->next_queued;
    else
        queue->first = execution->next_queued;
    if (queue->last == execution)
        queue->last = before;
    execution->next_queued = NULL;
    execution->is_waiting = false;
    queue->n_waiting--;
}

static bool unlink_waiting(struct queue *queue, struct execution *execution)
{
    autolock(&queue->lock);
    if (!execution->is_waiting)
        return false;
    unlink_one(queue, execution);
    return true;
}

bool queue_remove(struct queue *queue, struct execution *execution)
{
    if (!unlink_waiting(queue, execution))
        return false;
    execution_free(execution); // the queue's reference; the caller has one
    return true;
}

unsigned queue_waiting(struct queue *queue)
{
    autolock(&queue->lock);
    return queue->n_waiting;
}
