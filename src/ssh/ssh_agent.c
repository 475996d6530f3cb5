/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The client's agent in a sandbox: a socket with a path there. It is made in the box's network, so that no name of the host's can be reached by it, and given its path by a
 * program that runs inside as the session's user: the host follows no path of a guest's. What that program says is the guest's word, and goes to the guest alone.
 */
#include "base/auto.h"
#include "base/clock.h"
#include "ssh/ssh_server_impl.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define READY_MS 10000

/* "/tmp/ssh-…/agent" and the end of a line. */
static int read_path(int fd, char path[SSH_AGENT_PATH], struct error *err)
{
    uint64_t until_ms = clock_monotonic_ms() + READY_MS;
    size_t used = 0;

    for (;;) {
        struct pollfd there = {.fd = fd, .events = POLLIN};
        uint64_t now_ms = clock_monotonic_ms();
        if (now_ms >= until_ms || poll(&there, 1, (int)(until_ms - now_ms)) == 0)
            return error_set(err, ERROR_TIMEOUT, "no socket was made for the agent in time");
        ssize_t got = read(fd, path + used, SSH_AGENT_PATH - 1 - used);
        if (got < 0 && errno == EINTR)
            continue;
        used += got > 0 ? (size_t)got : 0;
        path[used] = '\0';
        char *end = strchr(path, '\n');
        if (end && path[0] == '/') {
            *end = '\0';
            return 0;
        }
        if (got <= 0 || used == SSH_AGENT_PATH - 1)
            return error_set(err, ERROR_STATE, "no socket could be made for the agent");
    }
}

int ssh_agent_start(struct ssh_errand *errand, unsigned at, char path[SSH_AGENT_PATH],
                    struct error *err)
{
    static const char *const argv[] = {"agent-socket", NULL};
    struct core *core = errand->server->settings.core;
    autoclear(execution_info) info = {0};
    int leash[2];

    autofd listener = -1;
    if (port_make_local(core->ports, errand->sandbox_id, &listener, err) != PORT_CONNECTED)
        return -1;
    if (pipe2(leash, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd ours = leash[0];
    autofd theirs = leash[1];
    const struct execution_pipes pipes = {listener, theirs, -1};
    const struct execution_request request = {
        .kind = EXECUTION_JOB,
        .command = {.argv = argv},
        .pipes = &pipes,
        .program_fd = errand->server->settings.sftp_fd,
        .standard_output.target = OUTPUT_TO_NONE,
        .standard_error.target = OUTPUT_TO_NONE,
        .tag = "ssh-agent",
    };
    if (execution_start(core->executions, &errand->actor, errand->sandbox_id, &request, &info,
                        err) < 0)
        return -1;
    closep(&theirs);
    if (read_path(ours, path, err) < 0)
        return -1;
    errand->fds[at] = take_fd(listener);
    errand->fds[at + 1] = take_fd(ours);
    return 0;
}
