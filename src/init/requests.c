/* SPDX-License-Identifier: Apache-2.0 */
/* The conversation with the engine: its requests, and what it is told of output and ends. */
#include "init/init.h"

#include "base/auto.h"
#include "init/conversation.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>

static struct process *new_process(struct init *init, uint32_t id)
{
    struct process *process = calloc(1, sizeof *process);
    if (!process)
        return NULL;
    process->id = id;
    process->terminal_fd = process->screen_fd = -1;
    process->kill_fd = process->freezer_fd = process->procs_fd = -1;
    process->input = (struct input){.sink_fd = -1, .sock_fd = -1, .later_fd = -1};
    for (int i = 0; i < 2; i++)
        process->outputs[i] = (struct output){.pipe_fd = -1, .end_fd = -1, .spool_fd = -1};
    process->next = init->processes;
    init->processes = process;
    init->n_processes++;
    return process;
}

/* The engine's end of a terminal: a copy of the master goes with the answer, on a socket of its own. */
static void answer_started(struct process *process, int sock)
{
    (void)link_send(sock, LINK_STARTED, 0, process->id, NULL, 0, &process->terminal_fd,
                    process->terminal_fd >= 0 ? 1 : 0);
}

static void refuse_spawn(struct init *init, uint32_t id, int sys, const char *text)
{
    struct link_exit end = {.cause = CAUSE_NOT_RUN, .code = 126, .sys = sys};

    (void)snprintf(end.text, sizeof end.text, "%s", text);
    (void)link_send(init->control, LINK_EXITED, 0, id, &end, sizeof end, NULL, 0);
}

static void on_spawn(struct init *init, struct link_message *message)
{
    struct link_spawn_view view;
    if (!link_spawn_parse(message, &view) || process_find(init, message->header.process))
        return;
    autofd answer = link_spawn_take(message, view.spawn->fds, SPAWN_ANSWER);
    struct process *process =
        init->n_processes < INIT_MAX_PROCESSES ? new_process(init, message->header.process) : NULL;
    if (!process) {
        refuse_spawn(init, message->header.process, ENOMEM,
                     "the sandbox has too many processes that were not collected");
        return;
    }
    spawn_start(init, process, message, &view);
    if (view.spawn->timeout_ms && !process->has_ended)
        process->deadline_us = process->started_us + view.spawn->timeout_ms * 1000;
    if (answer >= 0)
        answer_started(process, answer);
}

/* With the list of the leaf's processes attached where the engine has one. */
static void on_signal(struct init *init, const struct link_message *message)
{
    struct link_signal request;
    struct process *process = process_find(init, message->header.process);
    if (!process || message->header.length != sizeof request)
        return;
    memcpy(&request, message->payload, sizeof request);
    process_signal(init, process, request.signal, request.is_whole_tree,
                   message->n_fds ? message->fds[0] : -1);
}

static void on_resize(struct init *init, const struct link_message *message)
{
    struct link_resize request;
    struct process *process = process_find(init, message->header.process);
    if (!process || process->terminal_fd < 0 || message->header.length != sizeof request)
        return;
    memcpy(&request, message->payload, sizeof request);
    struct winsize size = {.ws_row = request.rows, .ws_col = request.cols};
    (void)ioctl(process->terminal_fd, TIOCSWINSZ, &size);
}

static void on_input(struct init *init, struct link_message *message)
{
    struct process *process = process_find(init, message->header.process);
    if (process && message->n_fds == 1 && input_attach(&process->input, message->fds[0]))
        message->fds[0] = -1;
}

static void on_end_input(struct init *init, const struct link_message *message)
{
    struct process *process = process_find(init, message->header.process);
    if (process)
        input_end(&process->input);
}

static void on_collect(struct init *init, const struct link_message *message)
{
    struct process *process = process_find(init, message->header.process);
    if (process && process->has_ended)
        process_remove(init, process);
}

static void on_files(const struct init *init, struct link_message *message)
{
    const char *user = message->payload;
    const char *end = user + message->header.length;
    const char *base = message->header.length ? memchr(user, '\0', message->header.length) : NULL;

    if (message->n_fds != 1 || !base || ++base >= end || end[-1] != '\0')
        return;
    int sock = message->fds[0];
    message->fds[0] = -1;
    conversation_start(sock, user, base, init->drops_set_ids);
}

/* What it was to be started with could not be received. Of other messages the other end sees that what it sent along was closed. */
static int on_too_many_files(struct init *init, const struct link_header *header)
{
    if (header->type == LINK_SPAWN && !process_find(init, header->process))
        refuse_spawn(init, header->process, EMFILE,
                     "the sandbox has too many executions: their outputs take all files that PID 1 "
                     "may open");
    return 1;
}

int serve_control(struct init *init)
{
    static char buffer[LINK_MAX_MESSAGE + sizeof(struct link_header)] __attribute__((aligned(16)));
    struct link_message message;

    int got = link_receive(init->control, buffer, sizeof buffer, &message, MSG_DONTWAIT);
    if (got == 0)
        return -1;
    if (got < 0 && errno == EMFILE)
        return on_too_many_files(init, &message.header);
    if (got < 0)
        return errno == EAGAIN ? 0 : errno == EPROTO ? 1 : -1;
    switch (message.header.type) {
    case LINK_SPAWN:
        on_spawn(init, &message);
        break;
    case LINK_SIGNAL:
        on_signal(init, &message);
        break;
    case LINK_RESIZE:
        on_resize(init, &message);
        break;
    case LINK_COLLECT:
        on_collect(init, &message);
        break;
    case LINK_FILES:
        on_files(init, &message);
        break;
    case LINK_INPUT:
        on_input(init, &message);
        break;
    case LINK_END_INPUT:
        on_end_input(init, &message);
        break;
    default:
        break;
    }
    link_message_clear(&message);
    return 1;
}

void serve_hello(struct init *init)
{
    struct link_hello hello = {.version = LINK_VERSION,
                               .n_processes = init->n_processes,
                               .is_one_shot = init->is_one_shot};
    int slot = BOOT_SLOT;
    (void)link_send(init->control, LINK_HELLO, 0, 0, &hello, sizeof hello, &slot, 1);
    for (struct process *process = init->processes; process; process = process->next) {
        process->is_reported = false;
        process->has_new_output = true;
    }
}

static bool tell_output(struct init *init, struct process *process)
{
    struct link_output output = {process->outputs[0].produced, process->outputs[1].produced};
    if (link_send(init->control, LINK_OUTPUT, 0, process->id, &output, sizeof output, NULL, 0) < 0)
        return false;
    process->has_new_output = false;
    return true;
}

void serve_output(struct init *init)
{
    uint64_t now = init_now_us();
    bool may_tell_output = now - init->output_announced_us >= OUTPUT_EVERY_US;

    if (init->control < 0 || init->is_control_full)
        return;
    for (struct process *process = init->processes; process; process = process->next) {
        if (process->has_new_output && (may_tell_output || process->has_ended)) {
            if (!tell_output(init, process)) {
                init->is_control_full = true;
                return;
            }
            init->output_announced_us = now;
        }
        if (process->has_ended && !process->is_reported) {
            if (link_send(init->control, LINK_EXITED, 0, process->id, &process->end,
                          sizeof process->end, NULL, 0) < 0) {
                init->is_control_full = true;
                return;
            }
            process->is_reported = true;
        }
    }
}
