/* SPDX-License-Identifier: Apache-2.0 */
/* Where programs in a box find the agent of who is connected; see agent_socket.h. */
#include "sftp/agent_socket.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define BACKLOG 16

static int offer(const char *directory, struct sockaddr_un *address)
{
    address->sun_family = AF_UNIX;
    (void)snprintf(address->sun_path, sizeof address->sun_path, "%s/agent", directory);
    (void)umask(077); // no moment in which others may connect
    if (bind(STDIN_FILENO, (const struct sockaddr *)address, sizeof *address) < 0 ||
        listen(STDIN_FILENO, BACKLOG) < 0)
        return -1;
    return dprintf(STDOUT_FILENO, "%s\n", address->sun_path) < 0 ? -1 : 0;
}

int agent_socket_serve(void)
{
    char directory[] = "/tmp/ssh-XXXXXX";
    struct sockaddr_un address = {0};
    struct pollfd leash = {.fd = STDOUT_FILENO};

    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGHUP, SIG_IGN);
    if (!mkdtemp(directory))
        return 1;
    int result = offer(directory, &address) < 0;
    while (!result && !(leash.revents & (POLLERR | POLLHUP | POLLNVAL)))
        (void)poll(&leash, 1, -1);
    if (address.sun_path[0])
        (void)unlink(address.sun_path);
    (void)rmdir(directory);
    return result;
}
