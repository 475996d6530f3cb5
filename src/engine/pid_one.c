/* SPDX-License-Identifier: Apache-2.0 */
/* PID 1 of a box on the host; see pid_one.h. */
#include "engine/pid_one.h"

#include "base/fd.h"
#include "engine/launch.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

bool pid_one_is(const char *status)
{
    const char *line = strstr(status, "\nNSpid:");
    size_t length = line ? strcspn(line + 1, "\n") : 0;

    return length > 2 && line[length] == '1' && line[length - 1] == '\t';
}

static void look_at(pid_t pid, void *data)
{
    pid_t *found = data;
    char path[40], text[4096];
    struct error ignored = {0};

    (void)snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    if (*found == 0 && fd_read_knob(AT_FDCWD, path, text, sizeof text, &ignored) == 0 &&
        pid_one_is(text))
        *found = pid;
}

pid_t pid_one_known(const struct box *box)
{
    return box->pid ? box->pid : box->init_pid;
}

/* Among its processes, of which no other can be in a namespace of its own. */
int pid_one_find(struct box *box, pid_t *out, struct error *err)
{
    pid_t found = pid_one_known(box);

    if (!found && cgroup_each_process(box->cgroup, look_at, &found, err) < 0)
        return -1;
    if (!box->pid)
        box->init_pid = found;
    *out = found;
    return 0;
}

/* It holds the other end of this until it ends. */
bool pid_one_lives(const struct box *box)
{
    struct pollfd control = {.fd = box->control};

    return poll(&control, 1, 0) >= 0 && !(control.revents & (POLLHUP | POLLERR | POLLNVAL));
}
