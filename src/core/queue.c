/* SPDX-License-Identifier: Apache-2.0 */
/* Executions that wait for their turn; see queue.h. */
#include "core/queue.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/command.h"
#include "core/ending.h"
#include "core/note.h"

#include <string.h>

#define STARTERS 4 // threads: a start may wait for its sandbox to wake

struct queue {
    struct core *core;
    struct workers *starters;     // of its own, so that nobody else waits for a sandbox that wakes
    pthread_mutex_t lock;         // guards all below
    struct running *first, *last; // by next_queued; each holds a reference
    unsigned n_waiting;           // with places that are reserved
    unsigned n_running;           // of those it started, or is starting
    bool is_open;
};

int queue_new(struct core *core, struct queue **out, struct error *err)
{
    unsigned at_once = core->settings.queue_at_once;
    const struct workers_settings starters = {
        .lane = {[WORKERS_SLOW] = {at_once < STARTERS ? at_once : STARTERS, at_once}}};
    struct queue *queue = xnew(struct queue);

    queue->core = core;
    (void)pthread_mutex_init(&queue->lock, NULL);
    if (workers_new(&starters, &queue->starters, err) < 0) {
        queue_free(queue);
        return -1;
    }
    *out = queue;
    return 0;
}

void queue_stop(struct queue *queue)
{
    if (!queue)
        return;
    (void)pthread_mutex_lock(&queue->lock);
    queue->is_open = false;
    (void)pthread_mutex_unlock(&queue->lock);
    workers_free(queue->starters);
    queue->starters = NULL;
}

void queue_free(struct queue *queue)
{
    if (!queue)
        return;
    while (queue->first) {
        struct running *running = queue->first;
        queue->first = running->next_queued;
        running_free(running);
    }
    workers_free(queue->starters);
    (void)pthread_mutex_destroy(&queue->lock);
    free(queue);
}

// ---- ends without a beginning ----

static void describe_end(const struct running *running, enum execution_state state,
                         const char *error, struct execution_record *ended)
{
    int64_t now = (int64_t)clock_wall_ms();

    *ended = running->record; // texts are borrowed
    ended->state = state;
    ended->cause = state == EXECUTION_CANCELLED ? EXECUTION_STOPPED : EXECUTION_NOT_RUN;
    ended->exit_code = NO_EXIT_CODE;
    if (error)
        ended->error = error;
    ended->started_at = state == EXECUTION_CANCELLED ? 0 : now;
    ended->stdout_stream = ended->stderr_stream = NULL; // of a start that failed
    ended->ended_at = ended->updated_at = now;
}

static int put_end(struct core *core, struct live *live, const struct execution_record *ended,
                   struct error *err)
{
    struct note note = {.type = EVENT_COMPLETED, .reason = "execution", .now = ended->ended_at};
    unsigned parts = EXECUTION_PART_STATE | EXECUTION_PART_RESULT;
    autotransaction together = {0};
    bool is_put;

    note_fact(&note, "execution", ended->id);
    note_fact(&note, "state", execution_state_name(ended->state));
    do
        is_put = store_begin(core->store, STORE_FAST, &together, err) == 0 &&
                 store_execution_update(core->store, ended, parts, EXECUTION_OPEN, err) == 0 &&
                 (!live || note_put(live, &note, err) == 0) && store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    return is_put ? 0 : -1;
}

static void leave(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    live->n_executions--;
    (void)pthread_mutex_unlock(&live->lock);
}

void queue_end(struct queue *queue, struct running *running, enum execution_state state,
               const char *error)
{
    struct core *core = queue->core;
    autoptr(live) live = registry_find(core->registry, running->record.sandbox_id);
    struct execution_record ended;
    struct error err = {0};

    if (live)
        (void)pthread_mutex_lock(&live->turn);
    describe_end(running, state, error, &ended);
    if (put_end(core, live, &ended, &err) < 0)
        log_error("the end of a queued command could not be recorded",
                  F("execution", (const char *)running->id), F("error", (const char *)err.text));
    running_set(running, &ended);
    if (live) {
        leave(live);
        (void)pthread_mutex_unlock(&live->turn);
    }
    registry_end_command(core->registry, running, false);
    hub_tell(core->hub, running->id);
}

// ---- starting ----

static int start(struct queue *queue, struct running *running, struct error *err)
{
    autoptr(live) live = registry_find(queue->core->registry, running->record.sandbox_id);

    if (live && !live_is_over(live))
        return command_start_queued(live, running, err);
    return error_set(err, ERROR_GONE, "its sandbox has ended");
}

/* Its sandbox has ended, or is just about to. */
static bool is_sandbox_gone(const struct error *err)
{
    return err->kind == ERROR_GONE ||
           (err->kind == ERROR_CONFLICT && err->reason && strcmp(err->reason, "state") == 0);
}

static void start_one(void *data)
{
    autoptr(running) running = data;
    struct queue *queue = running->queue;
    struct error err = {0};

    if (running->record.error)
        queue_end(queue, running, EXECUTION_FAILED, NULL); // refused when it was asked for
    else if (start(queue, running, &err) == 0)
        return; // its end makes room
    else if (running_is_cancelled(running))
        queue_end(queue, running, EXECUTION_CANCELLED, NULL);
    else if (is_sandbox_gone(&err))
        queue_end(queue, running, EXECUTION_CANCELLED, "its sandbox has ended");
    else
        queue_end(queue, running, EXECUTION_FAILED, err.text);
    queue_left(queue);
}

/* The next one that may start now, which is counted; or NULL. */
static struct running *next_one(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    struct running *running = NULL;
    if (queue->is_open && queue->n_running < queue->core->settings.queue_at_once)
        running = queue->first;
    if (running) {
        queue->first = running->next_queued;
        if (!queue->first)
            queue->last = NULL;
        running->next_queued = NULL;
        running->is_waiting = false;
        queue->n_waiting--;
        queue->n_running++;
    }
    (void)pthread_mutex_unlock(&queue->lock);
    return running;
}

/* Nobody is free to start it: it is the first again. */
static void put_back(struct queue *queue, struct running *running)
{
    (void)pthread_mutex_lock(&queue->lock);
    running->next_queued = queue->first;
    running->is_waiting = true;
    queue->first = running;
    if (!queue->last)
        queue->last = running;
    queue->n_waiting++;
    queue->n_running--;
    (void)pthread_mutex_unlock(&queue->lock);
}

void queue_look_after(struct queue *queue)
{
    struct error full = {0};

    for (struct running *running; (running = next_one(queue));) {
        if (workers_submit(queue->starters, WORKERS_SLOW, start_one, running, &full) < 0) {
            put_back(queue, running); // the keeper comes by
            return;
        }
    }
}

void queue_left(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->n_running--;
    (void)pthread_mutex_unlock(&queue->lock);
    queue_look_after(queue);
}

void queue_start(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->is_open = true;
    (void)pthread_mutex_unlock(&queue->lock);
    queue_look_after(queue);
}

// ---- waiting ----

int queue_reserve(struct queue *queue, struct error *err)
{
    (void)pthread_mutex_lock(&queue->lock);
    bool has_room = queue->n_waiting < queue->core->settings.queue_length;
    queue->n_waiting += has_room;
    (void)pthread_mutex_unlock(&queue->lock);
    if (has_room)
        return 0;
    error_set(err, ERROR_LIMIT, "%u commands are waiting already; try again later",
              queue->core->settings.queue_length);
    return error_about(err, "queue", "full");
}

void queue_give_back(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    queue->n_waiting--;
    (void)pthread_mutex_unlock(&queue->lock);
}

static void append(struct queue *queue, struct running *running)
{
    running_ref(running);
    running->queue = queue;
    (void)pthread_mutex_lock(&queue->lock);
    running->is_waiting = true;
    if (queue->last)
        queue->last->next_queued = running;
    else
        queue->first = running;
    queue->last = running;
    (void)pthread_mutex_unlock(&queue->lock);
}

void queue_add(struct queue *queue, struct running *running)
{
    append(queue, running);
    queue_look_after(queue);
}

void queue_adopt(struct queue *queue, const struct execution_record *record)
{
    autoptr(running) running = running_new(record->id);
    autoptr(live) live = registry_find(queue->core->registry, record->sandbox_id);

    execution_record_copy(&running->record, record);
    // Its own may have been used already: a crash may have come between its start and the record of that.
    running->number = 0;
    running->is_queued = running->is_renumbered = true;
    registry_add_command(queue->core->registry, running);
    if (live) {
        (void)pthread_mutex_lock(&live->lock);
        live->n_executions++;
        (void)pthread_mutex_unlock(&live->lock);
    }
    (void)pthread_mutex_lock(&queue->lock);
    queue->n_waiting++; // however many there are
    (void)pthread_mutex_unlock(&queue->lock);
    append(queue, running);
}

/* With the lock held. */
static void unlink_one(struct queue *queue, struct running *running)
{
    struct running *before = NULL;
    struct running *at = queue->first;

    while (at != running) {
        before = at;
        at = at->next_queued;
    }
    if (before)
        before->next_queued = running->next_queued;
    else
        queue->first = running->next_queued;
    if (queue->last == running)
        queue->last = before;
    running->next_queued = NULL;
    running->is_waiting = false;
    queue->n_waiting--;
}

bool queue_remove(struct queue *queue, struct running *running)
{
    (void)pthread_mutex_lock(&queue->lock);
    bool was_waiting = running->is_waiting;
    if (was_waiting)
        unlink_one(queue, running);
    (void)pthread_mutex_unlock(&queue->lock);
    if (was_waiting)
        running_free(running); // the queue's reference; the caller has one
    return was_waiting;
}

unsigned queue_waiting(struct queue *queue)
{
    (void)pthread_mutex_lock(&queue->lock);
    unsigned count = queue->n_waiting;
    (void)pthread_mutex_unlock(&queue->lock);
    return count;
}
