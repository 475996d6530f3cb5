/* SPDX-License-Identifier: Apache-2.0 */
/* The floor's child; see floor_child.h. */
#include "floor_child.h"

#include "base/auto.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/prctl.h>

#define X32_BIT 0x40000000u

/* What Docker leaves a container's root, for want of a better common measure. */
#define KEPT_CAPABILITIES                                                                          \
    (1u << CAP_CHOWN | 1u << CAP_DAC_OVERRIDE | 1u << CAP_FSETID | 1u << CAP_FOWNER |              \
     1u << CAP_NET_BIND_SERVICE | 1u << CAP_SETGID | 1u << CAP_SETUID | 1u << CAP_SETPCAP |        \
     1u << CAP_SYS_CHROOT | 1u << CAP_KILL)

#define DENY(name)                                                                                 \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), BPF_STMT(BPF_RET | BPF_K, REFUSE)
#define REFUSE (SECCOMP_RET_ERRNO | EPERM)

static const struct sock_filter filter[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, REFUSE),
    DENY(mount),
    DENY(umount2),
    DENY(pivot_root),
    DENY(setns),
    DENY(unshare),
    DENY(bpf),
    DENY(perf_event_open),
    DENY(userfaultfd),
    DENY(keyctl),
    DENY(add_key),
    DENY(io_uring_setup),
    DENY(kexec_load),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static const char *const environment[] = {"PATH=/usr/bin:/bin", "HOME=/root", NULL};

static int sleep_until_killed(void *unused)
{
    for (;;)
        (void)syscall(SYS_pause);
    return 0;
}

pid_t floor_clone_sleeper(int flags)
{
    // shares our memory, so nothing is copied; a stack of its own, since we go on
    static char stack[4096] __attribute__((aligned(16)));
    return clone(sleep_until_killed, stack + sizeof stack, CLONE_VM | flags, NULL);
}

static int join_groups(struct floor_child *child)
{
    for (unsigned i = 0; i < FLOOR_GROUPS; i++) {
        if (child->tasks[i] >= 0 && write(child->tasks[i], "0", 1) != 1)
            return -1;
    }
    return unshare(CLONE_NEWCGROUP); // only now: its root is where we stand
}

static int attach_root(struct floor_child *child)
{
    struct mount_attr private = {.propagation = 1 << 18}; // MS_PRIVATE
    if (sys_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &private) < 0 ||
        sys_move_mount(child->root, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -1;
    if (child->usr >= 0 &&
        sys_move_mount(child->usr, "", child->root, "usr", MOVE_MOUNT_F_EMPTY_PATH) < 0)
        return -1;
    return fchdir(child->root);
}

static int mount_proc(struct floor_child *child)
{
    return (int)syscall(SYS_mount, "proc", "proc", "proc", 1 << 1 | 1 << 2 | 1 << 3, NULL);
}

static int pivot(struct floor_child *child)
{
    if (syscall(SYS_pivot_root, ".", ".") < 0)
        return -1;
    return (int)syscall(SYS_umount2, ".", 2 /* MNT_DETACH */);
}

static int name_host(struct floor_child *child)
{
    return (int)syscall(SYS_sethostname, "floor", 5L);
}

static int enter_user_namespace(struct floor_child *child)
{
    if (setns(child->user_namespace, CLONE_NEWUSER) < 0)
        return -1;
    // raw: the C libraries' own would tell all threads of the shared memory
    if (syscall(SYS_setresgid, 0, 0, 0) < 0 || syscall(SYS_setresuid, 0, 0, 0) < 0 ||
        syscall(SYS_setgroups, 0L, NULL) < 0)
        return -1;
    return sys_close_range(3, ~0u, 0);
}

static int cut_capabilities(struct floor_child *child)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {
        {.effective = KEPT_CAPABILITIES, .permitted = KEPT_CAPABILITIES}};

    for (int cap = 0; cap < 64; cap++) {
        if (cap < 32 && KEPT_CAPABILITIES & 1u << cap)
            continue;
        if (prctl(PR_CAPBSET_DROP, cap) < 0 && errno == EINVAL)
            break; // past the last one
    }
    return (int)syscall(SYS_capset, &header, data);
}

static int filter_calls(struct floor_child *child)
{
    struct sock_fprog program = {.len = ARRAY_SIZE(filter), .filter = (struct sock_filter *)filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -1;
    return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int execute(struct floor_child *child)
{
    return execve(child->argv[0], (char *const *)child->argv, (char *const *)environment);
}

static const struct {
    const char *name;
    int (*run)(struct floor_child *child);
} steps[] = {
    {"join the control groups", join_groups},
    {"attach the root", attach_root},
    {"mount proc", mount_proc},
    {"pivot", pivot},
    {"name the host", name_host},
    {"enter the user namespace", enter_user_namespace},
    {"cut the capabilities", cut_capabilities},
    {"filter system calls", filter_calls},
    {"execute", execute},
};

static _Noreturn void run_child(struct floor_child *child)
{
    for (unsigned i = 0; i < ARRAY_SIZE(steps); i++) {
        if (steps[i].run(child) < 0) {
            child->failed_errno = errno;
            child->failed_step = steps[i].name;
            break;
        }
    }
    _exit(FLOOR_FAILED);
}

pid_t floor_clone_child(struct floor_child *child, uint64_t extra_flags, int *pidfd)
{
    struct clone_args args = {
        .flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC |
                 CLONE_NEWUTS | extra_flags,
        .pidfd = (uintptr_t)pidfd,
        .exit_signal = SIGCHLD,
    };
    long pid = sys_clone3_vfork(&args);
    if (pid == 0)
        run_child(child);
    if (pid < 0) {
        errno = (int)-pid;
        return -1;
    }
    return (pid_t)pid;
}
