/* SPDX-License-Identifier: Apache-2.0 */
/* An execution as an object; see execution_object.h. */
#include "core/execution/execution_object.h"

#include "base/mem.h"
#include "core/execution/input_room.h"
#include "core/stream/feed.h"

#include <stdio.h>
#include <string.h>

struct execution *execution_new(const char *id)
{
    struct execution *execution = xnew(struct execution);
    execution->refs = 1;
    (void)snprintf(execution->id, sizeof execution->id, "%s", id);
    execution->known = (struct id_entry){.id = execution->id, .hash = id_hash(execution->id)};
    lock_init(&execution->lock, LOCK_EXECUTION);
    lock_init(&execution->input_lock, LOCK_EXECUTION_INPUT);
    execution->input_pipe = execution->input_fd = -1;
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
    input_room_stop(execution->input_room);
    closep(&execution->input_fd);
    closep(&execution->input_pipe);
    execution_record_clear(&execution->record);
    lock_clear(&execution->input_lock);
    lock_clear(&execution->lock);
    free(execution);
}

void execution_shut_input(struct execution *execution)
{
    autolock(&execution->input_lock);
    input_room_stop(take(execution->input_room));
    closep(&execution->input_fd);
    execution->is_input_over = true;
}

void execution_copy(struct execution *execution, struct execution_record *out)
{
    autolock(&execution->lock);
    execution_record_copy(out, &execution->record);
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

/* Nothing else is written: all other strings are read without the lock, and stay where they are as long as it is known. */
void execution_set(struct execution *execution, const struct execution_record *next)
{
    struct execution_record *own = &execution->record;

    autolock(&execution->lock);
    const char *gone[] = {
        replace(&own->error, next->error),
        replace(&own->stop_reason, next->stop_reason),
        replace(&own->stdout_stream, next->stdout_stream),
        replace(&own->stderr_stream, next->stderr_stream),
    };
    own->state = next->state;
    own->exit = next->exit;
    own->started_at = next->started_at;
    own->ended_at = next->ended_at;
    own->stop_at = next->stop_at;
    own->updated_at = next->updated_at;
    for (size_t i = 0; i < ARRAY_SIZE(gone); i++)
        free((char *)gone[i]);
}

bool execution_is_cancelled(struct execution *execution)
{
    autolock(&execution->lock);
    return execution->record.stop_at != 0;
}
