/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by system call: every number, other entries to the kernel, namespaces, mounts, requests to devices. */
#include "attack/attacker.h"
#include "engine/seccomp_table.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <termios.h>

static const struct seccomp_rule *find_rule(long number)
{
    for (size_t i = 0; i < COUNT(seccomp_table); i++) {
        if (seccomp_table[i].number == number)
            return &seccomp_table[i];
    }
    return NULL;
}

struct call {
    long number;
    struct itimerval patience;
};

/* The call with nothing but zeroes; one that waits for ever is ended by the timer. */
static int call_zeroes(void *data)
{
    const struct call *call = data;
    (void)setitimer(ITIMER_REAL, &call->patience, NULL);
    long result = raw_call(call->number, 0, 0, 0, 0, 0, 0);
    // What is returned here may be a second process, in the same memory: only the code counts.
    return result < 0 && result > -256 ? (int)-result : 0;
}

static void check_number(long number)
{
    const struct seccomp_rule *rule = find_rule(number);
    // The traps of probes: since 6.14 no filter is asked, and who calls them from elsewhere is ended.
    if (number == __NR_uretprobe || number == __NR_uprobe)
        return;
    bool is_open = rule && (rule->ask || rule->action == SECCOMP_RET_ALLOW);
    struct call call = {.number = number, .patience.it_value = {.tv_usec = 20000}};
    if (!is_open) // does not wait, but on a busy machine it may be long until its turn
        call.patience.it_value = (struct timeval){.tv_sec = 20};
    int got = in_child(call_zeroes, &call);
    if (is_open && got == -SIGSYS)
        complain("call %ld (%s) ends the process", number, rule->name);
    if (is_open)
        return;
    uint32_t action = rule ? rule->action : SECCOMP_ABSENT;
    if (got != (int)(action & SECCOMP_RET_DATA))
        complain("call %ld (%s): %d, not %d", number, rule ? rule->name : "unknown", got,
                 (int)(action & SECCOMP_RET_DATA));
}

static void every_call(int argc, char **argv)
{
    for (long number = 0; number < 1024; number++) {
        if (number != __NR_sync) // allowed, and slow for the whole machine
            check_number(number);
    }
}

static int call_32bit(void *data)
{
    long result = *(long *)data;
    __asm__ volatile("int $0x80"
                     : "+a"(result)
                     : "b"(0), "c"(0), "d"(0)
                     : "memory", "cc", "r8", "r9", "r10", "r11");
    return 0;
}

static int call_x32(void *data)
{
    (void)raw_call(0x40000000L | *(long *)data, 0, 0, 0, 0, 0, 0);
    return 0;
}

/* Other entries to the kernel have other numbers: none is answered. A kernel without them faults instead. */
static void other_entries(int argc, char **argv)
{
    static long old_numbers[] = {20 /* getpid */, 102 /* socketcall */, 359 /* socket */, 310, 120};
    static long x32_numbers[] = {__NR_getpid, __NR_socket, 512, 520, 547, __NR_unshare};
    for (size_t i = 0; i < COUNT(old_numbers); i++) {
        int got = in_child(call_32bit, &old_numbers[i]);
        if (got != -SIGSYS && got != -SIGSEGV)
            complain("32-bit call %ld: %d", old_numbers[i], got);
    }
    for (size_t i = 0; i < COUNT(x32_numbers); i++) {
        int got = in_child(call_x32, &x32_numbers[i]);
        if (got != -SIGSYS)
            complain("x32 call %ld: %d", x32_numbers[i], got);
    }
}

static int nothing(void *data)
{
    return 0;
}

static void try_new_namespace(int kind)
{
    static char stack[65536];
    uint64_t clone3_args[11] = {(uint64_t)kind, [4] = SIGCHLD};
    REFUSED(unshare(kind), EPERM);
    if (kind != 0x80) // in clone that bit is part of the signal's number
        REFUSED(clone(nothing, stack + sizeof stack, kind | SIGCHLD, NULL), EPERM);
    REFUSED(syscall(SYS_clone3, clone3_args, sizeof clone3_args), ENOSYS);
}

static void new_namespaces(int argc, char **argv)
{
    static const int kinds[] = {CLONE_NEWNS,
                                CLONE_NEWPID,
                                CLONE_NEWNET,
                                CLONE_NEWIPC,
                                CLONE_NEWUTS,
                                0x80,
                                /* time */ CLONE_NEWCGROUP};
    for (size_t i = 0; i < COUNT(kinds); i++)
        try_new_namespace(kinds[i]);
}

/* The way to most bugs of the kernel: root of a namespace of one's own, and then mounts and networks in it. */
static void user_namespace(int argc, char **argv)
{
    try_new_namespace(CLONE_NEWUSER);
    try_new_namespace(CLONE_NEWUSER | CLONE_NEWNS);
    try_new_namespace(CLONE_NEWUSER | CLONE_NEWNET);
}

static void enter_namespaces(int argc, char **argv)
{
    static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        REFUSED(setns(fd, 0), EPERM);
        if (fd >= 0)
            (void)close(fd);
        (void)snprintf(path, sizeof path, "/proc/1/ns/%s", names[i]);
        REFUSED(open(path, O_RDONLY | O_CLOEXEC), EACCES);
    }
    int first = (int)syscall(SYS_pidfd_open, 1, 0);
    REFUSED(setns(first, CLONE_NEWNS | CLONE_NEWUSER), EPERM);
    if (first >= 0)
        (void)close(first);
}

static void mount_new(int argc, char **argv)
{
    static const char *const types[] = {"tmpfs",  "proc",   "sysfs",   "cgroup",  "cgroup2",
                                        "devpts", "mqueue", "overlay", "debugfs", "bpf"};
    (void)mkdir("/tmp/mnt", 0700);
    for (size_t i = 0; i < COUNT(types); i++) {
        REFUSED(mount("none", "/tmp/mnt", types[i], 0, NULL), EPERM);
        REFUSED(syscall(SYS_fsopen, types[i], 0), EPERM);
    }
    REFUSED(mount("/", "/tmp/mnt", NULL, MS_BIND, NULL), EPERM);
    REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/", 1), EPERM);
    REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/proc/1/root", 1), EPERM);
}

static void remount(int argc, char **argv)
{
    (void)mkdir("/tmp/mnt", 0700);
    REFUSED(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM);
    REFUSED(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), EPERM);
    REFUSED(umount2("/proc/sys", MNT_DETACH), EPERM);
    REFUSED(umount2("/dev", MNT_DETACH), EPERM);
    REFUSED(syscall(SYS_pivot_root, "/tmp", "/tmp"), EPERM);
    REFUSED(syscall(SYS_move_mount, AT_FDCWD, "/", AT_FDCWD, "/tmp/mnt", 0), EPERM);
    REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0), EPERM);
}

/* Without a terminal of its own there is none to be had, and no input can be put into one. */
static void terminal_input(int argc, char **argv)
{
    REFUSED(open("/dev/tty", O_RDWR | O_CLOEXEC), ENXIO);
    REFUSED(open("/dev/console", O_RDWR | O_CLOEXEC), ENOENT);
    REFUSED(open("/dev/tty0", O_RDWR | O_CLOEXEC), ENOENT);
    for (int fd = 0; fd < 3; fd++) {
        REFUSED(ioctl(fd, TIOCSTI, "x"), EPERM);
        REFUSED(syscall(SYS_ioctl, fd, (long)(TIOCSTI | 1UL << 40), "x"), EPERM);
    }
}

/* argv: files and directories. What can be asked of the file system below them is asked in vain. */
static void volume_requests(int argc, char **argv)
{
    static const unsigned long shut[] = {
        0xd000943d /* BTRFS_IOC_GET_SUBVOL_ROOTREF */,
        0x81f8943c /* BTRFS_IOC_GET_SUBVOL_INFO */,
        0xd000941e /* BTRFS_IOC_DEV_INFO */,
        0x8400941f /* BTRFS_IOC_FS_INFO */,
        0xc0109414 /* BTRFS_IOC_SPACE_INFO */,
        0x9408 /* BTRFS_IOC_SYNC */,
        0xd0009412 /* BTRFS_IOC_INO_LOOKUP */,
        0xd0009411 /* BTRFS_IOC_TREE_SEARCH */,
        0x5000940e /* BTRFS_IOC_SUBVOL_CREATE */,
        0x80089419 /* BTRFS_IOC_SUBVOL_GETFLAGS */,
        0xc0c0583b /* FS_IOC_GETFSMAP */,
        0x81009431 /* FS_IOC_GETFSLABEL */,
        0xc0045877 /* FIFREEZE */,
        0xc0185879 /* FITRIM */,
        0x80111500 /* FS_IOC_GETFSUUID */,
    };
    static char data[8192];
    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
        for (size_t j = 0; fd >= 0 && j < COUNT(shut); j++) {
            memset(data, 0, sizeof data);
            REFUSED(syscall(SYS_ioctl, fd, shut[j], data), ENOTTY);
            REFUSED(syscall(SYS_ioctl, fd, shut[j] | 1UL << 32, data), ENOTTY);
        }
        memset(data, 0, sizeof data);
        REFUSED(syscall(SYS_ioctl, fd, 0xc020660b /* FS_IOC_FIEMAP */, data), EOPNOTSUPP);
        if (fd < 0)
            complain("%s: %s", argv[i], strerror(errno));
        else
            (void)close(fd);
    }
    // Copies that share blocks stay possible, where the file system can.
    int from = open("/tmp/from", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    int to = open("/tmp/to", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (ioctl(to, 0x40049409 /* FICLONE */, from) < 0 && (errno == ENOTTY || errno == EPERM))
        complain("sharing blocks: %s", strerror(errno));
}

/* What is set aside for others: huge pages by every way, and whole cores. */
static void set_aside(int argc, char **argv)
{
    enum { ANY = MAP_PRIVATE | MAP_ANONYMOUS };
    REFUSED(mmap(NULL, 2 << 20, PROT_READ, ANY | MAP_HUGETLB, -1, 0) == MAP_FAILED ? -1 : 0,
            ENOMEM);
    REFUSED(mmap(NULL, 1 << 30, PROT_READ, ANY | MAP_HUGETLB | 30 << 26, -1, 0) == MAP_FAILED ? -1
                                                                                              : 0,
            ENOMEM);
    REFUSED(syscall(SYS_memfd_create, "huge", 4 /* MFD_HUGETLB */), ENOMEM);
    REFUSED(syscall(SYS_shmget, 0, 2 << 20, 0600 | 04000 /* SHM_HUGETLB */), ENOMEM);
    REFUSED(prctl(62 /* PR_SCHED_CORE */, 1 /* PR_SCHED_CORE_CREATE */, 0, 0, 0), EINVAL);
    REFUSED(prctl(62 /* PR_SCHED_CORE */, 0 /* PR_SCHED_CORE_GET */, 0, 0, 0), EINVAL);
}

static int execute_odd(void *data)
{
    char *const none[] = {NULL};
    (void)execve(data, none, none);
    return errno;
}

/* A program of no format that the kernel knows: for such it once asked the machine for a module. */
static void unknown_formats(int argc, char **argv)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/tmp/odd-%u", getuid());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    WORKS(write(fd, "\1\2\3\4\5\6\7\10", 8));
    (void)close(fd);
    if (in_child(execute_odd, path) != ENOEXEC)
        complain("an odd program was not refused as such");
}

const struct inside_attack inside_calls[] = {
    {"every-call", every_call},
    {"other-entries", other_entries},
    {"new-namespaces", new_namespaces},
    {"user-namespace", user_namespace},
    {"enter-namespaces", enter_namespaces},
    {"mount", mount_new},
    {"remount", remount},
    {"terminal-input", terminal_input},
    {"volume-requests", volume_requests},
    {"set-aside", set_aside},
    {"unknown-formats", unknown_formats},
    {0},
};
