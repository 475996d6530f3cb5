/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes the room of executions, and finds them by id; see executions.h. */
#include "core/execution/executions.h"

#include "base/mem.h"
#include "core/stream/streams.h"
#include "core/execution/execution_end.h"
#include "core/execution/queue.h"

#define REMEMBERED 1024 // that have ended

static void tick(struct executions *executions)
{
    queue_tick(executions->queue);
}

static const struct execution_ops ops = {
    .on_exit = execution_on_exit,
    .ended = execution_ended,
    .announce_output = execution_announce_output,
    .check_deadlines = execution_check_deadlines,
    .is_running = execution_is_any_running,
    .is_ahead = execution_is_any_ahead,
    .record_shown = execution_record_shown,
    .put_ends = execution_put_ends,
    .end_all = execution_end_all,
    .free_all = execution_free_all,
    .tick = tick,
};

/* One that is remembered says so too. */
static void on_expired(void *data, const char *id)
{
    autoptr(execution) execution = executions_find(data, id);

    if (!execution)
        return;
    autolock(&execution->lock);
    execution->record.is_output_expired = true;
}

int executions_open(struct sandboxes *sandboxes, struct executions **out, struct error *err)
{
    autoptr(executions) executions = xnew(struct executions);

    executions->sandboxes = sandboxes;
    executions->ended = xcalloc(REMEMBERED, sizeof(struct execution *));
    lock_init(&executions->lock, LOCK_EXECUTIONS);
    if (queue_new(executions, &executions->queue, err) < 0)
        return -1;
    sandboxes->execution_ops = &ops;
    sandboxes->executions = executions;
    streams_tell_expired(sandboxes->streams, on_expired, executions);
    *out = take(executions);
    return 0;
}

/* The entry is the execution's first field. */
static struct execution *execution_of(struct id_entry *entry)
{
    return (struct execution *)entry;
}

static void free_known(struct id_table *known)
{
    for (size_t i = 0; i < known->n_buckets; i++) {
        while (known->buckets[i]) {
            struct execution *execution = execution_of(known->buckets[i]);
            id_table_remove(known, &execution->known);
            execution_free(execution);
        }
    }
    id_table_clear(known);
}

void executions_free(struct executions *executions)
{
    if (!executions)
        return;
    queue_free(executions->queue);
    free_known(&executions->known);
    free(executions->ended);
    lock_clear(&executions->lock);
    free(executions);
}

void executions_add(struct executions *executions, struct execution *execution)
{
    autolock(&executions->lock);
    id_table_put(&executions->known, &execution_ref(execution)->known);
}

/* The one that ended so long ago that it is forgotten now, or NULL. */
static struct execution *remember(struct executions *executions, struct execution *execution)
{
    autolock(&executions->lock);
    size_t place = executions->n_ended++ % REMEMBERED;
    struct execution *forgotten = executions->ended[place];
    executions->ended[place] = execution;
    if (forgotten)
        id_table_remove(&executions->known, &forgotten->known);
    return forgotten;
}

void executions_end(struct executions *executions, struct execution *execution)
{
    execution_free(remember(executions, execution));
}

struct execution *executions_find(struct executions *executions, const char *id)
{
    uint64_t hash = id_hash(id);

    autolock(&executions->lock);
    struct execution *execution = execution_of(id_table_find(&executions->known, id, hash));
    return execution ? execution_ref(execution) : NULL;
}
