/* SPDX-License-Identifier: Apache-2.0 */
/*
 * burrow-egress: the way out of boxes with a policy. The supervisor goes on as nobody's child, and says "ready" on its standard output when it listens, or what is wrong.
 *
 * usage: burrow-egress DATA-DIRECTORY ADDRESSES RESOLVERS PROXY      each of the last three may be ""
 */
#include "base/auto.h"
#include "base/mem.h"
#include "egress/supervisor.h"
#include "egress/egress_address.h"
#include "egress/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Only one supervisor has a data directory; one that is just ending is waited for. */
static int take_lock(struct supervisor *supervisor, struct error *err)
{
    autofree char *path = xasprintf("%s/" EGRESS_LOCK, supervisor->data_dir);

    supervisor->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (supervisor->lock < 0)
        return error_sys(err, "open '%s'", path);
    for (int i = 0; i < 100; i++) {
        if (flock(supervisor->lock, LOCK_EX | LOCK_NB) == 0)
            return 0;
        (void)usleep(20000);
    }
    return error_set(err, ERROR_CONFLICT, "another burrow-egress has the data directory '%s'",
                     supervisor->data_dir);
}

static int listen_to_servers(struct supervisor *supervisor, struct error *err)
{
    struct sockaddr_un name;
    autofd directory = egress_address(supervisor->data_dir, &name, err);

    if (directory < 0)
        return -1;
    supervisor->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (supervisor->listener < 0)
        return error_sys(err, "make a socket");
    (void)unlink(name.sun_path); // of one that has ended: the lock is ours
    (void)umask(0177);
    if (bind(supervisor->listener, (const struct sockaddr *)&name, sizeof name) < 0 ||
        listen(supervisor->listener, 64) < 0)
        return error_sys(err, "listen on '%s/" EGRESS_SOCKET "'", supervisor->data_dir);
    return 0;
}

static int open_gateway(struct supervisor *supervisor, const char *addresses, struct error *err)
{
    static const enum gateway_listener listeners[] = {GATEWAY_DNS_UDP, GATEWAY_DNS_TCP,
                                                      GATEWAY_FLOWS, GATEWAY_HOST};
    const struct gateway_options options = {.addresses = *addresses ? addresses : NULL};

    if (gateway_open(supervisor->data_dir, &options, &supervisor->gateway, err) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(listeners); i++) {
        if (gateway_listen(supervisor->gateway, listeners[i], &supervisor->sockets[i], err) < 0)
            return -1;
    }
    return gateway_refusals(supervisor->gateway, &supervisor->refusals, err);
}

static int start(struct supervisor *supervisor, char **argv, struct error *err)
{
    if (take_lock(supervisor, err) < 0 || open_gateway(supervisor, argv[2], err) < 0)
        return -1;
    if (*argv[4] && supervisor_read_proxy(argv[4], &supervisor->proxy, err) < 0)
        return -1;
    if (supervisor_start_worker(supervisor, err) < 0)
        return -1;
    return listen_to_servers(supervisor, err);
}

/* Not the server's, nor of its terminal. */
static bool leave_parent(void)
{
    pid_t pid = fork();

    if (pid > 0)
        _exit(0);
    return pid == 0 && setsid() >= 0 && chdir("/") == 0;
}

static void limit(void)
{
    const struct rlimit no_core = {0, 0};

    (void)setrlimit(RLIMIT_CORE, &no_core); // secrets are in memory
    (void)prctl(PR_SET_DUMPABLE, 0);
    (void)signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 && files.rlim_cur < files.rlim_max) {
        files.rlim_cur = files.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &files);
    }
}

int main(int argc, char **argv)
{
    struct supervisor supervisor = {.lock = -1, .listener = -1, .refusals = -1};
    struct error err = {0};

    if (argc > 1 && strcmp(argv[1], "--worker") == 0)
        return worker_main(argc, argv);
    if (argc != 5) {
        (void)printf("usage: burrow-egress DATA-DIRECTORY ADDRESSES RESOLVERS PROXY\n");
        return 2;
    }
    if (!leave_parent())
        return 1;
    limit();
    supervisor.data_dir = argv[1];
    supervisor.resolvers_setting = argv[3];
    supervisor.proxy_setting = argv[4];
    supervisor.worker.sock = -1;
    for (size_t i = 0; i < SUPERVISOR_CLIENTS; i++)
        supervisor.clients[i].frames.sock = -1;
    if (start(&supervisor, argv, &err) < 0) {
        (void)printf("%s\n", err.text);
        return 1;
    }
    (void)printf("ready\n");
    (void)fflush(stdout);
    int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (nothing >= 0)
        (void)dup2(nothing, STDOUT_FILENO);
    int result = supervisor_run(&supervisor, &err);
    autofree char *path = xasprintf("%s/" EGRESS_SOCKET, supervisor.data_dir);
    (void)unlink(path);
    return result < 0;
}
