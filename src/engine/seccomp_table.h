/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which system calls a guest may make: every x86_64 call by name, with the reason per group.
 * tools/seccomp-gen turns this table into the program that seccomp.c loads; the tests compare that
 * program with this table.
 *
 * A call is allowed, asked about (its arguments decide), refused (EPERM) or absent (ENOSYS, as on a
 * kernel without it). Numbers that are not here are absent too, so a call that a newer kernel
 * brings stays shut until somebody adds it. Calls of another architecture (int 0x80, x32) end the
 * process: their numbers mean other things.
 *
 * Questions look at the low 32 bits of an argument, so they may be asked alone only where the kernel
 * does the same (int, unsigned int, or cut as clone's flags are). Junk in the upper half then
 * changes nothing (CVE-2019-10063). A pointer needs a second question about its upper half.
 *
 * Threads: plain values.
 */
#pragma once
#include <errno.h>
#include <linux/audit.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/sched.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <asm/unistd.h>

#ifndef __x86_64__
#error "the table of system calls is x86_64's; another machine needs its own"
#endif

// Younger than the headers of our oldest kernel.
#ifndef __NR_uretprobe
#define __NR_uretprobe 335
#endif
#ifndef __NR_uprobe
#define __NR_uprobe 336
#endif
#ifndef __NR_cachestat
#define __NR_cachestat 451
#endif
#ifndef __NR_fchmodat2
#define __NR_fchmodat2 452
#endif
#ifndef __NR_map_shadow_stack
#define __NR_map_shadow_stack 453
#endif
#ifndef __NR_futex_wake
#define __NR_futex_wake 454
#endif
#ifndef __NR_futex_wait
#define __NR_futex_wait 455
#endif
#ifndef __NR_futex_requeue
#define __NR_futex_requeue 456
#endif
#ifndef __NR_statmount
#define __NR_statmount 457
#endif
#ifndef __NR_listmount
#define __NR_listmount 458
#endif
#ifndef __NR_lsm_get_self_attr
#define __NR_lsm_get_self_attr 459
#endif
#ifndef __NR_lsm_set_self_attr
#define __NR_lsm_set_self_attr 460
#endif
#ifndef __NR_lsm_list_modules
#define __NR_lsm_list_modules 461
#endif
#ifndef __NR_mseal
#define __NR_mseal 462
#endif
#ifndef __NR_setxattrat
#define __NR_setxattrat 463
#endif
#ifndef __NR_getxattrat
#define __NR_getxattrat 464
#endif
#ifndef __NR_listxattrat
#define __NR_listxattrat 465
#endif
#ifndef __NR_removexattrat
#define __NR_removexattrat 466
#endif
#ifndef __NR_open_tree_attr
#define __NR_open_tree_attr 467
#endif
#ifndef __NR_file_getattr
#define __NR_file_getattr 468
#endif
#ifndef __NR_file_setattr
#define __NR_file_setattr 469
#endif

// Younger than musl's headers.
#ifndef PR_SCHED_CORE
#define PR_SCHED_CORE 62
#endif

#define SECCOMP_REFUSED (SECCOMP_RET_ERRNO | EPERM)
#define SECCOMP_ABSENT (SECCOMP_RET_ERRNO | ENOSYS)

enum {
    SECCOMP_LAST_NUMBER = __NR_file_setattr, // the highest in the table
    SECCOMP_X32_NUMBER =
        0x40000000, // and all above, but for -1: that one is how a tracer skips a call
};

struct seccomp_question;

struct seccomp_answer {
    uint32_t value;
    uint32_t action;                     // SECCOMP_RET_*, unless there is a
    const struct seccomp_question *next; // further question
};

/* Looks at one argument. Answers end with an empty one. */
struct seccomp_question {
    unsigned arg;
    uint32_t mask;  // bits that count; 0: all 32
    bool is_high;   // its upper 32 bits instead: for pointers, of which all 64 count
    bool is_secret; // instead: are all 64 bits the secret of this launch? Then the first answer
    struct seccomp_answer answers[8];
    uint32_t otherwise;                           // unless there is a
    const struct seccomp_question *otherwise_ask; // further question
};

struct seccomp_rule {
    const char *name;
    uint32_t number;
    uint32_t action;
    const struct seccomp_question *ask; // decides in place of the action, unless NULL
};

/* Threads and forks, but no namespaces: a nested user namespace is the door to most of the kernel's
 * bugs. */
static const struct seccomp_question seccomp_clone_flags = {
    .arg = 0,
    .mask = CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
            CLONE_NEWPID | CLONE_NEWNET,
    .answers = {{0, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_REFUSED,
};

/* clone3's flags are behind a pointer, out of sight. libc falls back to clone; PID 1 knows the
 * secret. */
static const struct seccomp_question seccomp_clone3_secret = {
    .arg = 2, // clone3 takes two; the kernel ignores the rest
    .is_secret = true,
    .answers = {{.action = SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_ABSENT,
};

#define SECCOMP_NO_SUCH_IOCTL (SECCOMP_RET_ERRNO | ENOTTY) // what a file without it says

/* Pushing input into a terminal, line disciplines, the console. */
static const struct seccomp_question seccomp_ioctl_terminal = {
    .arg = 1,
    .answers = {{TIOCSTI, SECCOMP_REFUSED},
                {TIOCLINUX, SECCOMP_REFUSED},
                {TIOCSETD, SECCOMP_REFUSED},
                {TIOCCONS, SECCOMP_REFUSED}},
    .otherwise = SECCOMP_RET_ALLOW,
};

/* Sharing blocks between two files, as cp and package managers do. The rest of the number is btrfs's, for a whole volume. */
static const struct seccomp_question seccomp_ioctl_clone = {
    .arg = 1,
    .answers = {{FICLONE, SECCOMP_RET_ALLOW},
                {FICLONERANGE, SECCOMP_RET_ALLOW},
                {FIDEDUPERANGE, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_NO_SUCH_IOCTL,
};

/* Flags of a file (lsattr, chattr). Not where its blocks are on the host's disk: without FIEMAP programs look for holes. */
static const struct seccomp_question seccomp_ioctl_flags = {
    .arg = 1,
    .answers = {{FS_IOC_GETFLAGS, SECCOMP_RET_ALLOW},
                {FS_IOC_SETFLAGS, SECCOMP_RET_ALLOW},
                {FS_IOC_FIEMAP, SECCOMP_RET_ERRNO | EOPNOTSUPP}},
    .otherwise = SECCOMP_NO_SUCH_IOCTL,
};

/* The same flags by their other name. The rest maps, freezes, trims or shuts down a whole file system. */
static const struct seccomp_question seccomp_ioctl_attributes = {
    .arg = 1,
    .answers = {{FS_IOC_FSGETXATTR, SECCOMP_RET_ALLOW}, {FS_IOC_FSSETXATTR, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_NO_SUCH_IOCTL,
};

/* By type, the second byte: what the files of a box have, and nothing that reaches the file system below, a device or a
 * namespace. */
static const struct seccomp_question seccomp_ioctl_command = {
    .arg = 1,
    .mask = 0xff00,
    .answers = {{'T' << 8 /* terminals; FIONREAD, FIONBIO and their like */,
                 .next = &seccomp_ioctl_terminal},
                {0x89 << 8 /* sockets */, SECCOMP_RET_ALLOW},
                {0x94 << 8, .next = &seccomp_ioctl_clone},
                {'f' << 8, .next = &seccomp_ioctl_flags},
                {'X' << 8, .next = &seccomp_ioctl_attributes},
                {'R' << 8 /* random numbers */, SECCOMP_RET_ALLOW},
                {0x8a << 8 /* epoll */, SECCOMP_RET_ALLOW},
                {0xff << 8 /* pidfds */, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_NO_SUCH_IOCTL,
};

/*
 * Huge pages are set aside for a program of the host's, count in no box's memory and are few. ENOMEM is what a machine
 * without them says, and programs go on with small ones.
 */
#define SECCOMP_NO_HUGE_PAGES (SECCOMP_RET_ERRNO | ENOMEM)

static const struct seccomp_question seccomp_mmap_flags = {
    .arg = 3,
    .mask = MAP_HUGETLB,
    .answers = {{0, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_NO_HUGE_PAGES,
};

static const struct seccomp_question seccomp_memfd_flags = {
    .arg = 1,
    .mask = MFD_HUGETLB,
    .answers = {{0, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_NO_HUGE_PAGES,
};

static const struct seccomp_question seccomp_shmget_flags = {
    .arg = 2,
    .mask = SHM_HUGETLB,
    .answers = {{0, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_NO_HUGE_PAGES,
};

/* A group for core scheduling makes the other half of a core stand still while it runs. EINVAL: as on a kernel without. */
static const struct seccomp_question seccomp_prctl_option = {
    .arg = 0,
    .answers = {{PR_SCHED_CORE, SECCOMP_RET_ERRNO | EINVAL}},
    .otherwise = SECCOMP_RET_ALLOW,
};

/* SCTP, DCCP, MPTCP, L2TP, SMC, UDP-Lite would each load a module. */
static const struct seccomp_question seccomp_inet_protocol = {
    .arg = 2,
    .answers = {{0, SECCOMP_RET_ALLOW},
                {IPPROTO_TCP, SECCOMP_RET_ALLOW},
                {IPPROTO_UDP, SECCOMP_RET_ALLOW},
                {IPPROTO_ICMP, SECCOMP_RET_ALLOW},
                {IPPROTO_ICMPV6, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_RET_ERRNO | EPROTONOSUPPORT, // what Go's MPTCP probe understands
};

/* No raw sockets; and no SOCK_PACKET, by which AF_INET turns into AF_PACKET. */
static const struct seccomp_question seccomp_inet_type = {
    .arg = 1,
    .mask = 0xf, // SOCK_TYPE_MASK: the rest is SOCK_CLOEXEC and SOCK_NONBLOCK
    .answers = {{SOCK_STREAM, .next = &seccomp_inet_protocol},
                {SOCK_DGRAM, .next = &seccomp_inet_protocol}},
    .otherwise = SECCOMP_REFUSED,
};

/* Route netlink is how getifaddrs works. libaudit takes EAFNOSUPPORT for "no audit here" and goes
 * on. */
static const struct seccomp_question seccomp_netlink_protocol = {
    .arg = 2,
    .answers = {{0 /* NETLINK_ROUTE */, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
};

static const struct seccomp_question seccomp_socket_family = {
    .arg = 0,
    .answers = {{AF_UNIX, SECCOMP_RET_ALLOW},
                {AF_INET, .next = &seccomp_inet_type},
                {AF_INET6, .next = &seccomp_inet_type},
                {AF_NETLINK, .next = &seccomp_netlink_protocol}},
    .otherwise = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
};

static const struct seccomp_question seccomp_socketpair_family = {
    .arg = 0,
    .answers = {{AF_UNIX, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_RET_ERRNO | EAFNOSUPPORT,
};

/* Kernel TLS and its like: modules with a long list of bugs, and libraries do without. */
static const struct seccomp_question seccomp_tcp_option = {
    .arg = 2,
    .answers = {{TCP_ULP, SECCOMP_RET_ERRNO | ENOPROTOOPT}},
    .otherwise = SECCOMP_RET_ALLOW,
};

static const struct seccomp_question seccomp_socket_level = {
    .arg = 1,
    .answers = {{IPPROTO_TCP, .next = &seccomp_tcp_option}},
    .otherwise = SECCOMP_RET_ALLOW,
};

/* What is, and what gdb sets to get steady addresses. Others bring back old and weaker memory
 * layouts. */
static const struct seccomp_question seccomp_personality = {
    .arg = 0,
    .answers = {{PER_LINUX, SECCOMP_RET_ALLOW},
                {PER_LINUX | ADDR_NO_RANDOMIZE, SECCOMP_RET_ALLOW},
                {0xffffffff, SECCOMP_RET_ALLOW}},
    .otherwise = SECCOMP_REFUSED,
};

/*
 * A core limit of one byte keeps the host's core_pattern program from being started, which zero would not, so
 * guests keep the one. They are told that it worked: daemons set zero and give up when they cannot.
 */
#define SECCOMP_PRETENDED (SECCOMP_RET_ERRNO | 0)

static const struct seccomp_question seccomp_setrlimit_resource = {
    .arg = 0,
    .answers = {{RLIMIT_CORE, SECCOMP_PRETENDED}},
    .otherwise = SECCOMP_RET_ALLOW,
};

/* Who wants the old value with the new one would get neither, and is told so. */
static const struct seccomp_question seccomp_core_old_high = {
    .arg = 3,
    .is_high = true,
    .answers = {{0, SECCOMP_PRETENDED}},
    .otherwise = SECCOMP_REFUSED,
};

static const struct seccomp_question seccomp_core_old = {
    .arg = 3,
    .answers = {{0, .next = &seccomp_core_old_high}},
    .otherwise = SECCOMP_REFUSED,
};

static const struct seccomp_question seccomp_prlimit_resource = {
    .arg = 1,
    .answers = {{RLIMIT_CORE, .next = &seccomp_core_old}},
    .otherwise = SECCOMP_RET_ALLOW,
};

/* To the kernel, PID 1 and its threads are just processes of the same user: root inside could take their files away. */
static const struct seccomp_question seccomp_prlimit_pid = {
    .arg = 0,
    .answers = {{0 /* oneself */, .next = &seccomp_prlimit_resource}},
    .otherwise = SECCOMP_REFUSED,
};

static const struct seccomp_question seccomp_prlimit_new_high = {
    .arg = 2,
    .is_high = true,
    .answers = {{0 /* reads only */, SECCOMP_RET_ALLOW}},
    .otherwise_ask = &seccomp_prlimit_pid,
};

static const struct seccomp_question seccomp_prlimit_new = {
    .arg = 2,
    .answers = {{0, .next = &seccomp_prlimit_new_high}},
    .otherwise_ask = &seccomp_prlimit_pid,
};

/* The same for its share of the CPU: PID 1 keeps the time of others. */
static const struct seccomp_question seccomp_schedule_pid = {
    .arg = 0,
    .answers = {{1, SECCOMP_REFUSED}},
    .otherwise = SECCOMP_RET_ALLOW,
};

static const struct seccomp_question seccomp_priority_who = {
    .arg = 1,
    .answers = {{1, SECCOMP_REFUSED}},
    .otherwise = SECCOMP_RET_ALLOW,
};

/* By process only: groups and users may hold PID 1. */
static const struct seccomp_question seccomp_setpriority_which = {
    .arg = 0,
    .answers = {{PRIO_PROCESS, .next = &seccomp_priority_who}},
    .otherwise = SECCOMP_REFUSED,
};

static const struct seccomp_question seccomp_ioprio_which = {
    .arg = 0,
    .answers = {{1 /* IOPRIO_WHO_PROCESS */, .next = &seccomp_priority_who}},
    .otherwise = SECCOMP_REFUSED,
};

#define ALLOW(call)                                                                                \
    {                                                                                              \
#call, __NR_##call, SECCOMP_RET_ALLOW, NULL                                                \
    }
#define ASK(call, question)                                                                        \
    {                                                                                              \
#call, __NR_##call, SECCOMP_REFUSED, &(question)                                           \
    }
#define REFUSE(call)                                                                               \
    {                                                                                              \
#call, __NR_##call, SECCOMP_REFUSED, NULL                                                  \
    }
#define ABSENT(call)                                                                               \
    {                                                                                              \
#call, __NR_##call, SECCOMP_ABSENT, NULL                                                   \
    }

// clang-format off
static const struct seccomp_rule seccomp_table[] = {
    // Reading, writing, and all that is done with an open file.
    ALLOW(read), ALLOW(write), ALLOW(open), ALLOW(openat), ALLOW(openat2), ALLOW(creat),
    ALLOW(close), ALLOW(close_range), ALLOW(pread64), ALLOW(pwrite64), ALLOW(readv), ALLOW(writev),
    ALLOW(preadv), ALLOW(pwritev), ALLOW(preadv2), ALLOW(pwritev2), ALLOW(lseek), ALLOW(dup),
    ALLOW(dup2), ALLOW(dup3), ALLOW(fcntl), ALLOW(flock), ALLOW(fsync), ALLOW(fdatasync),
    ALLOW(sync), ALLOW(syncfs), ALLOW(sync_file_range), ALLOW(truncate), ALLOW(ftruncate),
    ALLOW(fallocate), ALLOW(fadvise64), ALLOW(readahead), ALLOW(cachestat), ALLOW(sendfile),
    ALLOW(copy_file_range), ALLOW(pipe), ALLOW(pipe2), ALLOW(splice), ALLOW(tee), ALLOW(vmsplice),
    ASK(ioctl, seccomp_ioctl_command),

    // Names, modes, owners, times, attributes. mknod makes FIFOs; the kernel itself refuses devices
    // in a box.
    ALLOW(stat), ALLOW(fstat), ALLOW(lstat), ALLOW(newfstatat), ALLOW(statx), ALLOW(statfs),
    ALLOW(fstatfs), ALLOW(access), ALLOW(faccessat), ALLOW(faccessat2), ALLOW(getdents),
    ALLOW(getdents64), ALLOW(getcwd), ALLOW(chdir), ALLOW(fchdir), ALLOW(rename), ALLOW(renameat),
    ALLOW(renameat2), ALLOW(mkdir), ALLOW(mkdirat), ALLOW(rmdir), ALLOW(mknod), ALLOW(mknodat),
    ALLOW(link), ALLOW(linkat), ALLOW(unlink), ALLOW(unlinkat), ALLOW(symlink), ALLOW(symlinkat),
    ALLOW(readlink), ALLOW(readlinkat), ALLOW(chmod), ALLOW(fchmod), ALLOW(fchmodat),
    ALLOW(fchmodat2), ALLOW(chown), ALLOW(fchown), ALLOW(lchown), ALLOW(fchownat), ALLOW(umask),
    ALLOW(utime), ALLOW(utimes), ALLOW(futimesat), ALLOW(utimensat), ALLOW(setxattr),
    ALLOW(lsetxattr), ALLOW(fsetxattr), ALLOW(setxattrat), ALLOW(getxattr), ALLOW(lgetxattr),
    ALLOW(fgetxattr), ALLOW(getxattrat), ALLOW(listxattr), ALLOW(llistxattr), ALLOW(flistxattr),
    ALLOW(listxattrat), ALLOW(removexattr), ALLOW(lremovexattr), ALLOW(fremovexattr),
    ALLOW(removexattrat), ALLOW(inotify_init), ALLOW(inotify_init1), ALLOW(inotify_add_watch),
    ALLOW(inotify_rm_watch),
    ALLOW(chroot), // dpkg --root, debootstrap's second stage; leads nowhere outside the box

    // Waiting for many things.
    ALLOW(poll), ALLOW(ppoll), ALLOW(select), ALLOW(pselect6), ALLOW(epoll_create),
    ALLOW(epoll_create1), ALLOW(epoll_ctl), ALLOW(epoll_wait), ALLOW(epoll_pwait),
    ALLOW(epoll_pwait2), ALLOW(eventfd), ALLOW(eventfd2), ALLOW(signalfd), ALLOW(signalfd4),

    // Memory. Protection keys and sealing are V8's; the shadow stack is glibc's.
    ASK(mmap, seccomp_mmap_flags), ALLOW(munmap), ALLOW(mremap), ALLOW(mprotect), ALLOW(msync), ALLOW(mincore),
    ALLOW(madvise), ALLOW(brk), ALLOW(mlock), ALLOW(mlock2), ALLOW(munlock), ALLOW(mlockall),
    ALLOW(munlockall), ALLOW(remap_file_pages), ASK(memfd_create, seccomp_memfd_flags), ALLOW(membarrier),
    ALLOW(pkey_mprotect), ALLOW(pkey_alloc), ALLOW(pkey_free), ALLOW(mseal),
    ALLOW(map_shadow_stack), ALLOW(process_madvise), ALLOW(process_mrelease),

    // Processes and threads.
    ASK(clone, seccomp_clone_flags), ASK(clone3, seccomp_clone3_secret), ALLOW(fork), ALLOW(vfork),
    ALLOW(execve), ALLOW(execveat), ALLOW(exit), ALLOW(exit_group), ALLOW(wait4), ALLOW(waitid),
    ALLOW(getpid), ALLOW(getppid), ALLOW(gettid), ALLOW(setpgid), ALLOW(getpgid), ALLOW(getpgrp),
    ALLOW(setsid), ALLOW(getsid), ALLOW(set_tid_address), ALLOW(futex), ALLOW(futex_waitv),
    ALLOW(futex_wake), ALLOW(futex_wait), ALLOW(futex_requeue), ALLOW(set_robust_list),
    ALLOW(get_robust_list), ALLOW(rseq), ALLOW(arch_prctl), ASK(prctl, seccomp_prctl_option), ALLOW(pidfd_open),
    ALLOW(sched_yield), ASK(sched_setparam, seccomp_schedule_pid), ALLOW(sched_getparam),
    ASK(sched_setscheduler, seccomp_schedule_pid), ALLOW(sched_getscheduler),
    ALLOW(sched_get_priority_max), ALLOW(sched_get_priority_min), ALLOW(sched_rr_get_interval),
    ASK(sched_setaffinity, seccomp_schedule_pid), ALLOW(sched_getaffinity),
    ASK(sched_setattr, seccomp_schedule_pid), ALLOW(sched_getattr), ALLOW(getpriority),
    ASK(setpriority, seccomp_setpriority_which), ASK(ioprio_set, seccomp_ioprio_which),
    ALLOW(ioprio_get), ALLOW(getcpu), ALLOW(getrusage), ALLOW(times),
    ALLOW(getrlimit), ASK(setrlimit, seccomp_setrlimit_resource),
    ASK(prlimit64, seccomp_prlimit_new), ALLOW(sysinfo), ALLOW(uname), ALLOW(getrandom),
    ALLOW(restart_syscall), ASK(personality, seccomp_personality),

    // Debuggers: the kernel's ptrace rules decide, and they keep PID 1 (not dumpable) and other
    // users' processes shut.
    ALLOW(ptrace), ALLOW(process_vm_readv), ALLOW(process_vm_writev), ALLOW(pidfd_getfd),

    // Who one is. With no_new_privs and a cut bounding set these only go down.
    ALLOW(getuid), ALLOW(geteuid), ALLOW(getgid), ALLOW(getegid), ALLOW(getresuid),
    ALLOW(getresgid), ALLOW(getgroups), ALLOW(setuid), ALLOW(setgid), ALLOW(setreuid),
    ALLOW(setregid), ALLOW(setresuid), ALLOW(setresgid), ALLOW(setgroups), ALLOW(setfsuid),
    ALLOW(setfsgid), ALLOW(capget), ALLOW(capset), ALLOW(seccomp), ALLOW(landlock_create_ruleset),
    ALLOW(landlock_add_rule), ALLOW(landlock_restrict_self),

    // Signals.
    ALLOW(rt_sigaction), ALLOW(rt_sigprocmask), ALLOW(rt_sigreturn), ALLOW(rt_sigpending),
    ALLOW(rt_sigtimedwait), ALLOW(rt_sigqueueinfo), ALLOW(rt_tgsigqueueinfo), ALLOW(rt_sigsuspend),
    ALLOW(sigaltstack), ALLOW(kill), ALLOW(tkill), ALLOW(tgkill), ALLOW(pidfd_send_signal),
    ALLOW(pause),

    // Time, read and waited for.
    ALLOW(time), ALLOW(gettimeofday), ALLOW(clock_gettime), ALLOW(clock_getres),
    ALLOW(clock_nanosleep), ALLOW(nanosleep), ALLOW(alarm), ALLOW(getitimer), ALLOW(setitimer),
    ALLOW(timer_create), ALLOW(timer_settime), ALLOW(timer_gettime), ALLOW(timer_getoverrun),
    ALLOW(timer_delete), ALLOW(timerfd_create), ALLOW(timerfd_settime), ALLOW(timerfd_gettime),

    // Sockets: unix, inet, inet6 and route netlink.
    ASK(socket, seccomp_socket_family), ASK(socketpair, seccomp_socketpair_family),
    ASK(setsockopt, seccomp_socket_level), ALLOW(getsockopt), ALLOW(connect), ALLOW(bind),
    ALLOW(listen), ALLOW(accept), ALLOW(accept4), ALLOW(shutdown), ALLOW(getsockname),
    ALLOW(getpeername), ALLOW(sendto), ALLOW(sendmsg), ALLOW(sendmmsg), ALLOW(recvfrom),
    ALLOW(recvmsg), ALLOW(recvmmsg),

    // System V and POSIX queues, semaphores, shared memory: private to the box's IPC namespace.
    ASK(shmget, seccomp_shmget_flags), ALLOW(shmat), ALLOW(shmctl), ALLOW(shmdt), ALLOW(semget), ALLOW(semop),
    ALLOW(semtimedop), ALLOW(semctl), ALLOW(msgget), ALLOW(msgsnd), ALLOW(msgrcv), ALLOW(msgctl),
    ALLOW(mq_open), ALLOW(mq_unlink), ALLOW(mq_timedsend), ALLOW(mq_timedreceive), ALLOW(mq_notify),
    ALLOW(mq_getsetattr),

    // The mount family: what a box sees is built before the guest starts.
    REFUSE(mount), REFUSE(umount2), REFUSE(pivot_root), REFUSE(open_tree), REFUSE(open_tree_attr),
    REFUSE(move_mount), REFUSE(fsopen), REFUSE(fsconfig), REFUSE(fsmount), REFUSE(fspick),
    REFUSE(mount_setattr), REFUSE(statmount), REFUSE(listmount),

    // Namespaces.
    REFUSE(unshare), REFUSE(setns),

    // Large, young or much-attacked parts of the kernel which programs do without.
    REFUSE(io_uring_setup), REFUSE(io_uring_enter), REFUSE(io_uring_register), REFUSE(bpf),
    REFUSE(userfaultfd), REFUSE(perf_event_open), REFUSE(fanotify_init), REFUSE(fanotify_mark),
    REFUSE(memfd_secret), REFUSE(kcmp), REFUSE(modify_ldt), REFUSE(lsm_get_self_attr),
    REFUSE(lsm_set_self_attr), REFUSE(lsm_list_modules),

    // Keyrings are not namespaced; file handles reach around the root.
    REFUSE(add_key), REFUSE(request_key), REFUSE(keyctl), REFUSE(name_to_handle_at),
    REFUSE(open_by_handle_at),

    // NUMA placement is the host's. All of it, so that libnuma finds none rather than half.
    REFUSE(mbind), REFUSE(set_mempolicy), REFUSE(get_mempolicy), REFUSE(set_mempolicy_home_node),
    REFUSE(migrate_pages), REFUSE(move_pages),

    // The machine's clock, names, modules, swap, quota, accounting, log, ports, power.
    REFUSE(settimeofday), REFUSE(clock_settime), REFUSE(adjtimex), REFUSE(clock_adjtime),
    REFUSE(sethostname), REFUSE(setdomainname), REFUSE(create_module), REFUSE(init_module),
    REFUSE(finit_module), REFUSE(delete_module), REFUSE(get_kernel_syms), REFUSE(query_module),
    REFUSE(kexec_load), REFUSE(kexec_file_load), REFUSE(reboot), REFUSE(swapon), REFUSE(swapoff),
    REFUSE(quotactl), REFUSE(quotactl_fd), REFUSE(nfsservctl), REFUSE(acct), REFUSE(syslog),
    REFUSE(iopl), REFUSE(ioperm), REFUSE(vhangup), REFUSE(lookup_dcookie), REFUSE(uselib),
    REFUSE(ustat), REFUSE(sysfs),

    // Gone from the kernel, or never there; it says ENOSYS as well.
    ABSENT(_sysctl), ABSENT(getpmsg), ABSENT(putpmsg), ABSENT(afs_syscall), ABSENT(tuxcall),
    ABSENT(security), ABSENT(set_thread_area), ABSENT(get_thread_area), ABSENT(epoll_ctl_old),
    ABSENT(epoll_wait_old), ABSENT(vserver),

    // Asynchronous files: one count for the whole machine (fs.aio-max-nr), which one guest could take. Databases go on
    // without, as on a kernel that has none.
    ABSENT(io_setup), ABSENT(io_destroy), ABSENT(io_submit), ABSENT(io_cancel), ABSENT(io_getevents),
    ABSENT(io_pgetevents),

    // So young that whoever calls them has an older way.
    ABSENT(file_getattr), ABSENT(file_setattr),

    // Traps that a probe of the host leaves in a program. Kernels since 6.14 ask no filter about
    // them.
    ABSENT(uretprobe), ABSENT(uprobe),
};
// clang-format on

#undef ALLOW
#undef ASK
#undef REFUSE
#undef ABSENT
