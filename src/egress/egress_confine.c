/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of giving up rights, in an order in which each is still possible; see egress_confine.h. */
#include "egress/egress_confine.h"

#include "base/auto.h"

#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#else
#error "which AUDIT_ARCH is this?"
#endif

#define NOBODY 65534
#define FILES 65536
#define MEMORY_BYTES ((rlim_t)4 << 30)

enum condition {
    ALWAYS,
    FIRST_IS,    // argument 0 equals `value`
    THIRD_LACKS, // argument 2 has no bit of `value`
    NEVER,       // fails; libraries look for files, of which there are none
};

static const struct rule {
    unsigned number;
    enum condition condition;
    unsigned value;
} rules[] = {
    {SYS_recvfrom, ALWAYS, 0},
    {SYS_sendto, ALWAYS, 0},
    {SYS_splice, ALWAYS, 0},
    {SYS_epoll_pwait, ALWAYS, 0},
#ifdef SYS_epoll_wait
    {SYS_epoll_wait, ALWAYS, 0},
    {SYS_poll, ALWAYS, 0},
#endif
    {SYS_ppoll, ALWAYS, 0},
    {SYS_epoll_ctl, ALWAYS, 0},
    {SYS_recvmsg, ALWAYS, 0}, // descriptors come from the supervisor alone
    {SYS_sendmsg, ALWAYS, 0},
    {SYS_accept4, ALWAYS, 0},
    {SYS_close, ALWAYS, 0},
    {SYS_socket, FIRST_IS, AF_INET},
    {SYS_connect, ALWAYS, 0},
    {SYS_getsockopt, ALWAYS, 0},
    {SYS_setsockopt, ALWAYS, 0},
    {SYS_shutdown, ALWAYS, 0},
    {SYS_pipe2, ALWAYS, 0},
    {SYS_brk, ALWAYS, 0}, // memory, none of it executable
    {SYS_mmap, THIRD_LACKS, PROT_EXEC},
    {SYS_mprotect, THIRD_LACKS, PROT_EXEC},
    {SYS_munmap, ALWAYS, 0},
    {SYS_mremap, ALWAYS, 0},
    {SYS_madvise, ALWAYS, 0},
    {SYS_futex, ALWAYS, 0},         // locks in libcrypto; there is no other thread
    {SYS_clock_gettime, ALWAYS, 0}, // where the kernel's own page does not answer
    {SYS_gettimeofday, ALWAYS, 0},
    {SYS_getrandom, ALWAYS, 0},
    {SYS_getpid, ALWAYS, 0}, // libcrypto
    {SYS_rt_sigreturn, ALWAYS, 0},
    {SYS_restart_syscall, ALWAYS, 0}, // after a stop
    {SYS_exit_group, ALWAYS, 0},
    {SYS_openat, NEVER, 0},
    {SYS_newfstatat, NEVER, 0},
};

#define LOAD(field) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define MAX_CODE 256
_Static_assert(5 + 5 * ARRAY_SIZE(rules) < MAX_CODE, "room for all rules");

struct code {
    struct sock_filter list[MAX_CODE];
    unsigned short length;
};

static void add(struct code *code, struct sock_filter instruction)
{
    code->list[code->length++] = instruction;
}

/* The kernel takes families and protections as 32 bits, so the lower halves are all there is to compare (little-endian). */
static void add_rule(struct code *code, const struct rule *rule)
{
    add(code, (struct sock_filter)BPF_JUMP(
                  BPF_JMP | BPF_JEQ | BPF_K, rule->number, 0,
                  rule->condition == ALWAYS || rule->condition == NEVER ? 1 : 4));
    if (rule->condition == FIRST_IS) {
        add(code, (struct sock_filter)LOAD(args[0]));
        add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, rule->value, 1, 0));
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    }
    if (rule->condition == THIRD_LACKS) {
        add(code, (struct sock_filter)LOAD(args[2]));
        add(code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, rule->value, 0, 1));
        add(code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    }
    add(code, (struct sock_filter)RETURN(rule->condition == NEVER ? SECCOMP_RET_ERRNO | ENOENT
                                                                  : SECCOMP_RET_ALLOW));
}

static int filter_calls(struct error *err)
{
    struct code code = {.length = 0};

    add(&code, (struct sock_filter)LOAD(arch));
    add(&code, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
    add(&code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    add(&code, (struct sock_filter)LOAD(nr));
    for (size_t i = 0; i < ARRAY_SIZE(rules); i++)
        add_rule(&code, &rules[i]);
    add(&code, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    const struct sock_fprog program = {.len = code.length, .filter = code.list};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
        return error_sys(err, "filter system calls");
    return 0;
}

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
    return filter_calls(err);
}
