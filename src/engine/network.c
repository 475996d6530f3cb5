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

/*
 * Namespaces made from the parent get a hash table of TCP connections of their own (Linux 6.1). Else the kernel
 * walks the machine's, hundreds of thousands of places, each time some have ended.
 */
RUNS_IN_CHILD static void set_child_tables(void)
{
    static const char entries[] = "1024";
    long fd =
        RAW(SYS_open, "/proc/sys/net/ipv4/tcp_child_ehash_entries", O_WRONLY | O_CLOEXEC, 0, 0, 0);
    if (fd < 0)
        return;
    (void)RAW(SYS_write, fd, entries, sizeof entries - 1, 0, 0);
    (void)RAW(SYS_close, fd, 0, 0, 0, 0);
}

/* Runs beside its parent, in the same memory: raw calls only. */
RUNS_IN_CHILD static void make(void *data)
{
    struct network_maker *maker = data;
    long code = maker->parent < 0 ? 0 : RAW(SYS_setns, maker->parent, CLONE_NEWNET, 0, 0, 0);

    maker->step = "make a network namespace";
    if (code >= 0)
        code = RAW(SYS_unshare, CLONE_NEWNET, 0, 0, 0, 0);
    if (code >= 0) {
        maker->step = "raise the loopback interface";
        code = raise_loopback();
    }
    if (code >= 0 && maker->is_parent)
        set_child_tables();
    if (code >= 0) {
        maker->step = "open a network namespace";
        code = RAW(SYS_open, "/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0, 0, 0);
    }
    maker->fd = code < 0 ? -1 : (int)code;
    maker->code = code < 0 ? (int)-code : 0;
    for (;;)
        (void)RAW(SYS_exit, 0, 0, 0, 0, 0);
}

static int start(struct network_maker *maker, struct error *err)
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

int network_start(struct network_maker *maker, int parent, struct error *err)
{
    maker->parent = parent;
    maker->is_parent = false;
    return start(maker, err);
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

int network_create(int parent, int *out, struct error *err)
{
    struct network_maker maker;
    if (network_start(&maker, parent, err) < 0)
        return -1;
    return network_finish(&maker, out, err);
}

int network_make_parent(int *out, struct error *err)
{
    struct network_maker maker = {.parent = -1, .is_parent = true};
    if (start(&maker, err) < 0)
        return -1;
    return network_finish(&maker, out, err);
}
