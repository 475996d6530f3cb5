/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of giving up rights, in an order in which each is still possible; see confine.h. */
#include "base/confine.h"
#include "base/auto.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define NOBODY 65534

/* Only fds 0 to 2 are left. */
static int close_others(struct error *err)
{
    if (syscall(SYS_close_range, 3, ~0U, 0) < 0)
        return error_sys(err, "close what was inherited");
    return 0;
}

static int leave_namespaces(struct error *err)
{
    if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWCGROUP) < 0)
        return error_sys(err, "leave the machine's namespaces");
    return 0;
}

/* An empty file system that cannot be written to becomes the root, and the machine's own is gone from here. */
static int leave_files(struct error *err)
{
    const unsigned long flags = MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return error_sys(err, "make mounts private");
    // any directory will do to mount it on: this one every machine has
    if (mount("empty", "/proc", "tmpfs", flags, "size=4k,nr_inodes=1,mode=0555") < 0 ||
        chdir("/proc") < 0)
        return error_sys(err, "mount an empty root");
    if (syscall(SYS_pivot_root, ".", ".") == 0) {
        if (umount2(".", MNT_DETACH) < 0)
            return error_sys(err, "let go of the machine's files");
    } else if (
        chroot(".") <
        0) { // the machine's root is its first file system, which does not move (pivot_root(2))
        return error_sys(err, "enter an empty root");
    }
    return chdir("/") < 0 ? error_sys(err, "enter an empty root") : 0;
}

static int set_capabilities(uint32_t first)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{.effective = first, .permitted = first}};
    return (int)syscall(SYS_capset, &header, data);
}

/* The bounding set goes too: nothing this process could become has more. */
static int drop_bounds(void)
{
    for (int capability = 0; prctl(PR_CAPBSET_READ, capability) >= 0; capability++)
        if (prctl(PR_CAPBSET_DROP, capability) < 0)
            return -1;
    return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
}

/* CAP_SYS_ADMIN is kept over the change of user for one step: machines may reserve new user namespaces for it. */
static int become_nobody(struct error *err)
{
    if (drop_bounds() < 0 || prctl(PR_SET_KEEPCAPS, 1) < 0 || setgroups(0, NULL) < 0 ||
        setresgid(NOBODY, NOBODY, NOBODY) < 0 || setresuid(NOBODY, NOBODY, NOBODY) < 0 ||
        set_capabilities(1U << CAP_SYS_ADMIN) < 0)
        return error_sys(err, "become nobody");
    // without a map, so that no id inside is anybody's
    if (unshare(CLONE_NEWUSER) < 0)
        return error_sys(err, "enter a user namespace");
    if (drop_bounds() < 0 || set_capabilities(0) < 0 || prctl(PR_SET_DUMPABLE, 0) < 0)
        return error_sys(err, "drop capabilities");
    return 0;
}

static int set_limits(const struct confinement *left, struct error *err)
{
    const struct {
        int resource;
        rlim_t limit;
    } limits[] = {
        {RLIMIT_AS, left->memory_bytes},
        {RLIMIT_CPU, left->cpu_seconds},
        {RLIMIT_FSIZE, left->file_bytes},
        {RLIMIT_NOFILE, left->max_files},
        {RLIMIT_NPROC, 0},
        {RLIMIT_CORE, 0},
        {RLIMIT_MEMLOCK, 0},
        {RLIMIT_MSGQUEUE, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(limits); i++) {
        struct rlimit limit = {limits[i].limit, limits[i].limit};
        if (setrlimit(limits[i].resource, &limit) < 0)
            return error_sys(err, "set limits");
    }
    return 0;
}

int confine(const struct confinement *left, struct error *err)
{
    if (close_others(err) < 0 || leave_namespaces(err) < 0 || leave_files(err) < 0 ||
        set_limits(left, err) < 0 || become_nobody(err) < 0)
        return -1;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || filter_load(left->rules, left->n_rules) < 0)
        return error_sys(err, "filter system calls");
    return 0;
}
