/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Input, size and signals of what runs; see execution.h. PID 1 of the box holds the terminal or the pipe; this end is a socket that is opened
 * with the first byte, and again by the next server. What waits in it is all that waits.
 */
#include "core/execution/execution.h"

#include "core/execution/executions.h"
#include "core/execution/input_room.h"
#include "core/sandbox/monitor.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"

#include <errno.h>
#include <sys/socket.h>

static int refuse_ended(const char *id, struct error *err)
{
    return error_refuse(err, ERROR_ENDED, "execution", "execution '%s' has ended", id);
}

static int refuse_closed(const char *id, struct error *err)
{
    return error_refuse(err, ERROR_COMPLETE, "execution",
                        "execution '%s' takes no input: it was started without, or it is closed",
                        id);
}

/* As it is in memory, if the actor may know of it; its state in *state. */
static int look(struct execution *execution, const struct actor *actor, enum execution_state *state,
                enum execution_kind *kind, struct error *err)
{
    autolock(&execution->lock);
    if (!actor_sees_in(actor, &execution->record.owner, execution->record.sandbox_id))
        return error_missing(err, "execution", execution->id);
    *state = execution->record.state;
    *kind = execution->record.kind;
    return 0;
}

/* One that runs, in memory; *out is NULL where the store would have to be asked. */
static int find_quick(struct executions *executions, const struct actor *actor, const char *id,
                      enum execution_kind *kind, struct execution **out, struct error *err)
{
    autoptr(execution) execution = executions_find(executions, id);
    enum execution_state state = EXECUTION_QUEUED;

    *out = NULL;
    if (!execution)
        return 0;
    if (look(execution, actor, &state, kind, err) < 0)
        return -1;
    if (state == EXECUTION_QUEUED)
        return error_refuse(err, ERROR_STATE, "execution", "execution '%s' has not begun yet", id);
    if (state != EXECUTION_RUNNING)
        return refuse_ended(id, err);
    *out = take(execution);
    return 0;
}

/* What is not in memory is not there for the actor, or has ended. */
static int find_running(struct executions *executions, const struct actor *actor, const char *id,
                        enum execution_kind *kind, struct execution **out, struct error *err)
{
    autoclear(execution_info) info = {0};

    if (find_quick(executions, actor, id, kind, out, err) < 0)
        return -1;
    if (*out)
        return 0;
    return execution_get(executions, actor, id, NULL, &info, err) < 0 ? -1 : refuse_ended(id, err);
}

/* Somebody has more to send than there is room for. With the input's lock held. */
static void await_room(struct executions *executions, struct execution *execution)
{
    struct sandboxes *sandboxes = executions->sandboxes;

    if (!execution->input_room)
        execution->input_room = input_room_new(monitor_loop(sandboxes->monitor), sandboxes->hub,
                                               execution->id, execution->input_fd);
    input_room_await(execution->input_room);
}

/* 1: as much as there is room for was sent; 0: it has to be opened first. */
static int send_input(struct executions *executions, struct execution *execution, const char *data,
                      size_t length, size_t *taken, struct error *err)
{
    autolock(&execution->input_lock);
    if (execution->is_input_over)
        return refuse_closed(execution->id, err);
    if (execution->input_fd < 0)
        return 0;
    while (*taken < length) {
        ssize_t sent =
            send(execution->input_fd, data + *taken, length - *taken, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno == EAGAIN) {
            await_room(executions, execution);
            return 1;
        }
        if (sent < 0 && *taken == 0)
            return refuse_closed(execution->id, err);
        if (sent < 0)
            return 1; // the next call says it
        *taken += (size_t)sent;
    }
    return 1;
}

static bool is_open(struct execution *execution)
{
    autolock(&execution->input_lock);
    return execution->input_fd >= 0 || execution->is_input_over;
}

static void set_input(struct execution *execution, int fd)
{
    autolock(&execution->input_lock);
    if (execution->is_input_over) // it has ended meanwhile
        (void)close(fd);
    else
        execution->input_fd = fd;
}

static struct sandbox *use_box_of(struct executions *executions, struct execution *execution,
                                  struct sandbox **found, struct error *err)
{
    *found = registry_find(executions->sandboxes->registry, execution->record.sandbox_id);
    if (!*found) {
        (void)refuse_ended(execution->id, err);
        return NULL;
    }
    return sandbox_use_box(*found, err);
}

/* PID 1 is asked once for as long as this server and the process live. */
static int open_input(struct executions *executions, struct execution *execution, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    autobox held = use_box_of(executions, execution, &sandbox, err);
    int fd = -1;

    if (!held)
        return -1;
    if (is_open(execution))
        return 0; // somebody else was faster
    if (box_open_input(sandbox->box, execution->number, &fd, err) < 0)
        return error_is(err, ERROR_COMPLETE) ? refuse_closed(execution->id, err) : -1;
    set_input(execution, fd);
    return 0;
}

int execution_write_input_quick(struct executions *executions, const struct actor *actor,
                                const char *id, const void *data, size_t length, size_t *taken,
                                struct error *err)
{
    autoptr(execution) execution = NULL;
    enum execution_kind kind = EXECUTION_COMMAND;

    *taken = 0;
    if (find_quick(executions, actor, id, &kind, &execution, err) < 0)
        return -1;
    return execution ? send_input(executions, execution, data, length, taken, err) : 0;
}

int execution_write_input(struct executions *executions, const struct actor *actor, const char *id,
                          const void *data, size_t length, size_t *taken, struct error *err)
{
    autoptr(execution) execution = NULL;
    enum execution_kind kind = EXECUTION_COMMAND;

    *taken = 0;
    if (find_running(executions, actor, id, &kind, &execution, err) < 0)
        return -1;
    int sent = send_input(executions, execution, data, length, taken, err);
    if (sent != 0)
        return sent < 0 ? -1 : 0;
    if (open_input(executions, execution, err) < 0)
        return -1;
    return send_input(executions, execution, data, length, taken, err) < 0 ? -1 : 0;
}

int execution_close_input(struct executions *executions, const struct actor *actor, const char *id,
                          struct error *err)
{
    autoptr(execution) execution = NULL;
    enum execution_kind kind = EXECUTION_COMMAND;

    if (find_running(executions, actor, id, &kind, &execution, err) < 0)
        return -1;
    if (kind != EXECUTION_TERMINAL) // what was sent stays in the socket for PID 1
        execution_shut_input(execution);
    autoptr(sandbox) sandbox = NULL;
    autobox held = use_box_of(executions, execution, &sandbox, err);
    return held ? box_end_input(sandbox->box, execution->number, err) : -1;
}

int execution_resize(struct executions *executions, const struct actor *actor, const char *id,
                     struct terminal_size size, struct error *err)
{
    autoptr(execution) execution = NULL;
    enum execution_kind kind = EXECUTION_COMMAND;

    if (size.rows == 0 || size.cols == 0)
        return error_set(err, ERROR_INVALID, "a terminal has at least one row and one column");
    if (find_running(executions, actor, id, &kind, &execution, err) < 0)
        return -1;
    if (kind != EXECUTION_TERMINAL)
        return error_refuse(err, ERROR_STATE, "execution", "execution '%s' has no terminal", id);
    autoptr(sandbox) sandbox = NULL;
    autobox held = use_box_of(executions, execution, &sandbox, err);
    return held ? box_resize(sandbox->box, execution->number, size.rows, size.cols, err) : -1;
}

int execution_signal(struct executions *executions, const struct actor *actor, const char *id,
                     int signal, bool is_whole_tree, struct error *err)
{
    autoptr(execution) execution = NULL;
    enum execution_kind kind = EXECUTION_COMMAND;

    if (find_running(executions, actor, id, &kind, &execution, err) < 0)
        return -1;
    autoptr(sandbox) sandbox = NULL;
    autobox held = use_box_of(executions, execution, &sandbox, err);
    return held ? box_signal(sandbox->box, execution->number, signal, is_whole_tree, err) : -1;
}
