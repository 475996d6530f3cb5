/* SPDX-License-Identifier: Apache-2.0 */
/* Makes user namespaces with maps; see idmap.h. */
#include "engine/idmap.h"

#include "base/auto.h"
#include "base/fd.h"
#include "engine/raw.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * The child only exists, so that its namespace does. It runs beside us in the same memory and touches none of it. It shares
 * all our descriptors, the lock of the data directory among them: should we be killed, it must not outlive us.
 */
RUNS_IN_CHILD static void exist(void *parent)
{
    (void)RAW(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    while (RAW(SYS_getppid, 0, 0, 0, 0, 0) == (long)(intptr_t)parent)
        (void)RAW(SYS_pause, 0, 0, 0, 0, 0);
    for (;;)
        (void)RAW(SYS_exit, 0, 0, 0, 0, 0);
}

static int write_map(int proc_fd, const char *name, const char *map, struct error *err)
{
    return fd_write_knob(proc_fd, name, map, err);
}

/* Of users and of groups: lines of uid_map and gid_map. */
struct maps {
    char uids[48], gids[48];
};

static int fill(pid_t child, const struct maps *maps, int *out, struct error *err)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d", (int)child);
    autofd proc_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc_fd < 0)
        return error_sys(err, "open %s", path);
    if (write_map(proc_fd, "uid_map", maps->uids, err) < 0 ||
        write_map(proc_fd, "gid_map", maps->gids, err) < 0)
        return -1;
    int fd = openat(proc_fd, "ns/user", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open the user namespace");
    *out = fd;
    return 0;
}

/*
 * What the processes of a user namespace hold of the kernel (inotify, signals under way, message queues, and more) is also
 * counted for the user who made it (user_namespaces(7), kernel/ucount.c). So this thread alone has the first id of the
 * range while it makes one, with all its capabilities: the counts of a box are then the box's own and not root's.
 */
static int become_maker(uint32_t id)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

    if (syscall(SYS_capget, &header, data) < 0 || syscall(SYS_setresuid, -1, id, -1) < 0)
        return -1;
    for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        data[i].effective = data[i].permitted;
    return (int)syscall(SYS_capset, &header, data);
}

/* The real user is root all the time, so this cannot fail; a thread that went on as another would. */
static void become_root(void)
{
    if (syscall(SYS_setresuid, -1, 0, -1) < 0)
        abort();
}

static pid_t clone_as(uint32_t id, struct clone_args *args)
{
    int death_signal = 0; // another user takes it away
    (void)prctl(PR_GET_PDEATHSIG, &death_signal);
    pid_t child = become_maker(id) < 0
                      ? -errno
                      : (pid_t)raw_clone3(args, 0, exist, (void *)(intptr_t)getpid());
    become_root();
    if (death_signal)
        (void)prctl(PR_SET_PDEATHSIG, death_signal);
    return child;
}

static int create(uint32_t first_id, const struct maps *maps, int *out, struct error *err)
{
    char stack[4096] __attribute__((aligned(16)));
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_FILES | CLONE_NEWUSER,
        .stack = (uint64_t)(uintptr_t)stack,
        .stack_size = sizeof stack,
    };
    sigset_t all;
    sigset_t before;

    // The child shares our memory: a handler must not run in it.
    sigfillset(&all);
    (void)pthread_sigmask(SIG_BLOCK, &all, &before);
    pid_t child = clone_as(first_id, &args);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (child < 0)
        return error_sys_code(
            err, -child,
            "make a user namespace (is user.max_user_namespaces 0, or is this a chroot?)");
    int result = fill(child, maps, out, err);
    (void)kill(child, SIGKILL);
    while (waitpid(child, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    return result < 0 ? error_wrap(err, "map ids from %u", first_id) : 0;
}

int idmap_create(uint32_t first_id, uint32_t count, int *out, struct error *err)
{
    struct maps maps;

    (void)snprintf(maps.uids, sizeof maps.uids, "0 %u %u\n", first_id, count);
    (void)snprintf(maps.gids, sizeof maps.gids, "%s", maps.uids);
    return create(first_id, &maps, out, err);
}

int idmap_create_one(uint32_t uid, uint32_t gid, uint32_t first_id, int *out, struct error *err)
{
    struct maps maps;

    (void)snprintf(maps.uids, sizeof maps.uids, "%u %u 1\n", uid, first_id);
    (void)snprintf(maps.gids, sizeof maps.gids, "%u %u 1\n", gid, first_id);
    return create(first_id, &maps, out, err);
}
