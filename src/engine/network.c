/* SPDX-License-Identifier: Apache-2.0 */
/* Makes network namespaces; see network.h. */
#include "engine/network.h"

#include "base/auto.h"
#include "engine/raw.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <net/if.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

RUNS_IN_CHILD static long raise_loopback(void)
{
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP};
    long sock = RAW(SYS_socket, AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0, 0, 0);
    if (sock < 0)
        return sock;
    long code = RAW(SYS_ioctl, sock, SIOCSIFFLAGS, &request, 0, 0);
    (void)RAW(SYS_close, sock, 0, 0, 0, 0);
    return code;
}

RUNS_IN_CHILD static long write_setting(const char *path, const char *text, size_t length)
{
    long fd = RAW(SYS_open, path, O_WRONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return fd;
    long code = RAW(SYS_write, fd, text, length, 0, 0);
    (void)RAW(SYS_close, fd, 0, 0, 0, 0);
    return code < 0 ? code : 0;
}

#define SETTING(path, text) write_setting("/proc/sys/net/ipv4/" path, text, sizeof(text) - 1)

/* Runs beside its parent, in the same memory: raw calls only. */
RUNS_IN_CHILD static void make(void *data)
{
    struct network_maker *maker = data;
    long code = RAW(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0);

    maker->step = "make a network namespace";
    if (code >= 0) {
        maker->step = "raise the loopback interface";
        code = raise_loopback();
    }
    // What root in a box cannot do for lack of capabilities over this namespace, everybody in it may.
    if (code >= 0) {
        maker->step = "open low ports in a network namespace";
        code = SETTING("ip_unprivileged_port_start", "0");
    }
    if (code >= 0) {
        (void)SETTING("ping_group_range", "0 2147483647");
        maker->step = "open a network namespace";
        code = RAW(SYS_open, "/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    }
    maker->fd = code < 0 ? -1 : (int)code;
    maker->code = code < 0 ? (int)-code : 0;
    for (;;)
        (void)RAW(SYS_exit, 0, 0, 0, 0, 0);
}

int network_start(struct network_maker *maker, struct error *err)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_FILES,
        .stack = (uint64_t)(uintptr_t)maker->stack,
        .stack_size = sizeof maker->stack,
    };
    sigset_t all;
    sigset_t before;

    maker->fd = -1;
    maker->code = EIO;
    maker->step = "make a network namespace";
    sigfillset(&all); // no handler of ours may run in the child
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    long child = raw_clone3(&args, 0, make, maker);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return error_sys_code(err, (int)-child, "start the maker of a network namespace");
    maker->child = (pid_t)child;
    return 0;
}

int network_finish(struct network_maker *maker, int *out, struct error *err)
{
    while (waitpid(maker->child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    if (maker->code)
        return error_sys_code(err, maker->code, "%s", maker->step);
    *out = maker->fd;
    return 0;
}

int network_create(int *out, struct error *err)
{
    struct network_maker maker;
    if (network_start(&maker, err) < 0)
        return -1;
    return network_finish(&maker, out, err);
}
