/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of giving up rights, in an order in which each is still possible; see egress_confine.h. */
#include "egress/egress_confine.h"

#include "base/auto.h"
#include "base/filter.h"

#include <grp.h>
#include <linux/capability.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define NOBODY 65534
#define FILES 65536
#define MEMORY_BYTES ((rlim_t)4 << 30)

/* Beside what every program has (base/filter.h). */
static const struct filter_rule rules[] = {
    {SYS_recvfrom, FILTER_ALWAYS, 0},
    {SYS_sendto, FILTER_ALWAYS, 0},
    {SYS_splice, FILTER_ALWAYS, 0},
    {SYS_epoll_pwait, FILTER_ALWAYS, 0},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, FILTER_ALWAYS, 0},
    {SYS_poll, FILTER_ALWAYS, 0},
#endif
    {SYS_ppoll, FILTER_ALWAYS, 0},
    {SYS_epoll_ctl, FILTER_ALWAYS, 0},
    {SYS_recvmsg, FILTER_ALWAYS, 0}, // descriptors come from the supervisor alone
    {SYS_sendmsg, FILTER_ALWAYS, 0},
    {SYS_accept4, FILTER_ALWAYS, 0},
    {SYS_close, FILTER_ALWAYS, 0},
    {SYS_socket, FILTER_FIRST_IS, AF_INET},
    {SYS_connect, FILTER_ALWAYS, 0},
    {SYS_getsockopt, FILTER_ALWAYS, 0},
    {SYS_setsockopt, FILTER_ALWAYS, 0},
    {SYS_shutdown, FILTER_ALWAYS, 0},
    {SYS_pipe2, FILTER_ALWAYS, 0},
    {SYS_getpid, FILTER_ALWAYS, 0},       // libcrypto
    {SYS_openat, FILTER_REFUSED, ENOENT}, // libraries look for files, of which there are none
    {SYS_newfstatat, FILTER_REFUSED, ENOENT},
};

/* An empty file system that cannot be written to becomes the root, and the machine's own is gone from here. */
static int leave_files(struct error *err)
{
    const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;

    if (unshare(CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        return error_sys(err, "leave the machine's namespaces");
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("empty", "/proc", "tmpfs", flags, "size=4k,nr_inodes=1,mode=0555") < 0 ||
        chdir("/proc") < 0)
        return error_sys(err, "mount an empty root");
    if (syscall(SYS_pivot_root, ".", ".") == 0) {
        if (umount2(".", MNT_DETACH) < 0)
            return error_sys(err, "let go of the machine's files");
    } else if (chroot(".") < 0) { // the first file system does not move (pivot_root(2))
        return error_sys(err, "enter an empty root");
    }
    return chdir("/") < 0 ? error_sys(err, "enter an empty root") : 0;
}

static int set_limits(struct error *err)
{
    static const struct {
        int resource;
        rlim_t limit;
    } limits[] = {
        {RLIMIT_AS, MEMORY_BYTES},
        {RLIMIT_FSIZE, 0},
        {RLIMIT_CORE, 0},
        {RLIMIT_MSGQUEUE, 0},
    };

    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        const struct rlimit limit = {limits[i].limit, limits[i].limit};
        if (setrlimit(limits[i].resource, &limit) < 0)
            return error_sys(err, "set limits");
    }
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) < 0)
        return error_sys(err, "set limits");
    files.rlim_max = files.rlim_max < FILES ? files.rlim_max : FILES;
    files.rlim_cur = files.rlim_max;
    return setrlimit(RLIMIT_NOFILE, &files) < 0 ? error_sys(err, "set limits") : 0;
}

static int become_nobody(struct error *err)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct none[2] = {0};

    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++) {
        if (prctl(PR_CAPBSET_DROP, capability) < 0)
            return error_sys(err, "drop capabilities");
    }
    if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
        setresuid(NOBODY, NOBODY, NOBODY) < 0 || syscall(SYS_capset, &header, none) < 0)
        return error_sys(err, "become nobody");
    const struct rlimit alone = {0, 0}; // no process but this
    if (prctl(PR_SET_DUMPABLE, 0) < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 ||
        setrlimit(RLIMIT_NPROC, &alone) < 0)
        return error_sys(err, "close the worker to others");
    return 0;
}

int egress_confine(struct error *err)
{
    if (leave_files(err) < 0 || set_limits(err) < 0 || become_nobody(err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_load(rules, ARRAY_SIZE(rules)) < 0)
        return error_sys(err, "filter system calls");
    return 0;
}
