/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's agent in a sandbox: a socket with a path there. It is made in the box's network, so that no name of the host's can be reached by it, and given its path by a
 * program that runs inside as the session's user: the host follows no path of a guest's. What that program says is the guest's word, and goes to the guest alone. So is how
 * long it takes: the loop waits for it, and no worker does.
 */
#include "base/log.h"
#include "base/mem.h"
#include "ssh/ssh_server_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define READY_MS 30000

static int make_socket(struct ssh_errand *errand)
{
    static const char *const argv[] = {"agent-socket", NULL};
    struct core *core = errand->server->settings.core;
    autoclear(execution_info) info = {0};
    struct error *err = &errand->err;
    int leash[2];

    if (port_make_local(core->ports, errand->sandbox_id, &errand->fds[0], err) != PORT_CONNECTED)
        return -1;
    if (pipe2(leash, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    errand->fds[1] = leash[0];
    autofd theirs = leash[1];
    const struct execution_pipes pipes = {errand->fds[0], theirs, -1};
    const struct execution_request request = {
        .kind = EXECUTION_JOB,
        .command = {.argv = argv},
        .pipes = &pipes,
        .program_fd = errand->server->settings.sftp_fd,
        .standard_output.target = OUTPUT_TO_NONE,
        .standard_error.target = OUTPUT_TO_NONE,
        .tag = "ssh-agent",
    };
    return execution_start(core->executions, &errand->actor, errand->sandbox_id, &request, &info,
                           err);
}

static void work_agent(struct ssh_errand *errand)
{
    errand->result = make_socket(errand);
}

void ssh_agent_free(struct ssh_agent *agent)
{
    if (!agent)
        return;
    loop_timer_clear(&agent->patience);
    loop_watch_free(agent->watch);
    closep(&agent->listener);
    closep(&agent->leash);
    free(agent->message);
    free(agent);
}

/* It is there, or why it is not: without it the session starts all the same, as with any sshd. */
static void conclude(struct ssh_agent *agent, const char *why_not)
{
    struct ssh_channel *channel = agent->channel;
    struct ssh_wire_message *message = take(agent->message);

    channel->agent = NULL;
    loop_watch_free(take(agent->watch)); // before somebody else has the leash
    if (why_not)
        log_warn("SSH: an agent could not be forwarded", F("error", why_not));
    ssh_channel_launch(channel, message, why_not ? NULL : agent);
    ssh_agent_free(agent);
}

static void on_late(void *data)
{
    conclude(data, "no socket was made for the agent in time");
}

/* "/tmp/ssh-…/agent" and the end of a line. */
static void on_told(void *data, unsigned events)
{
    struct ssh_agent *agent = data;
    size_t room = sizeof agent->path - 1 - agent->used;
    ssize_t got = events & LOOP_FAILED ? 0 : read(agent->leash, agent->path + agent->used, room);

    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    agent->used += got > 0 ? (size_t)got : 0;
    char *end = memchr(agent->path, '\n', agent->used);
    if (end && agent->path[0] == '/') {
        *end = '\0';
        conclude(agent, NULL);
    } else if (got <= 0 || agent->used == sizeof agent->path - 1) {
        conclude(agent, "no socket could be made for the agent");
    }
}

static void end_agent(struct ssh_errand *errand)
{
    struct ssh_channel *channel = ssh_channel_of(errand);

    if (!channel)
        return;
    struct ssh_agent *agent = channel->agent;
    agent->listener = take_fd(errand->fds[0]);
    agent->leash = take_fd(errand->fds[1]);
    if (errand->result < 0 || loop_watch_new(channel->loop, agent->leash, on_told, agent,
                                             &agent->watch, &errand->err) < 0) {
        conclude(agent, errand->err.text);
        return;
    }
    loop_watch_set(agent->watch, LOOP_READABLE);
    loop_timer_set(&agent->patience, READY_MS);
}

void ssh_agent_start(struct ssh_channel *channel, struct ssh_wire_message *message)
{
    struct ssh_agent *agent = xnew(struct ssh_agent);

    *agent =
        (struct ssh_agent){.channel = channel, .message = message, .listener = -1, .leash = -1};
    loop_timer_init(&agent->patience, channel->loop, on_late, agent);
    channel->agent = agent;
    if (!ssh_errand_send(
            ssh_errand_new(channel->connection, channel->number, work_agent, end_agent),
            WORKERS_SLOW))
        ssh_channel_refuse(channel, SSH_TOO_MUCH);
}
