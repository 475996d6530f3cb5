/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks by system call: every number, other entries to the kernel, socket families, terminals,
 * namespaces. */
#include "attacker.h"
#include "engine/seccomp_table.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>

static const struct seccomp_rule *find_rule(long number)
{
    for (size_t i = 0; i < COUNT(seccomp_table); i++) {
        if (seccomp_table[i].number == number)
            return &seccomp_table[i];
    }
    return NULL;
}

/* The call with nothing but zeroes; one that waits for ever is ended by the timer. */
static int call_zeroes(void *data)
{
    long number = *(long *)data;
    struct itimerval soon = {.it_value = {.tv_usec = 20000}};
    (void)setitimer(ITIMER_REAL, &soon, NULL);
    long result = raw_call(number, 0, 0, 0, 0, 0, 0);
    // What is returned here may be a second process, in the same memory: only the code counts.
    return result < 0 && result > -256 ? (int)-result : 0;
}

static void check_number(long number)
{
    const struct seccomp_rule *rule = find_rule(number);
    // The traps of probes: since 6.14 no filter is asked, and who calls them from elsewhere is
    // ended.
    if (number == __NR_uretprobe || number == __NR_uprobe)
        return;
    int got = in_child(call_zeroes, &number);
    bool is_open = rule && (rule->ask || rule->action == SECCOMP_RET_ALLOW);
    if (is_open && got == -SIGSYS)
        complain("call %ld (%s) ends the process", number, rule->name);
    if (is_open)
        return;
    uint32_t action = rule ? rule->action : SECCOMP_ABSENT;
    if (got != (int)(action & SECCOMP_RET_DATA))
        complain("call %ld (%s): %d, not %d", number, rule ? rule->name : "unknown", got,
                 (int)(action & SECCOMP_RET_DATA));
}

static void all_calls(int argc, char **argv)
{
    (void)argc;
    (void)argv;
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

/* Other entries to the kernel have other numbers: none is answered. A kernel without them faults
 * instead. */
static void other_entries(int argc, char **argv)
{
    static long old_numbers[] = {20 /* getpid */, 102 /* socketcall */, 359 /* socket */, 310, 120};
    static long x32_numbers[] = {__NR_getpid, __NR_socket, 512, 520, 547, __NR_unshare};
    (void)argc;
    (void)argv;
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

static void check_family(int family, int type)
{
    bool is_open =
        family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK;
    int fd = socket(family, type, 0);
    int code = errno;
    if (fd >= 0)
        (void)close(fd);
    if (is_open && fd < 0 && !(family == AF_INET6 && code == EAFNOSUPPORT) &&
        code != ESOCKTNOSUPPORT)
        complain("family %d type %d: %s", family, type, strerror(code));
    if (!is_open && (fd >= 0 || code != EAFNOSUPPORT))
        complain("family %d type %d: %s", family, type, fd >= 0 ? "opens" : strerror(code));
}

static void sockets(int argc, char **argv)
{
    int pair[2];
    (void)argc;
    (void)argv;
    for (int family = 0; family <= 50; family++) {
        check_family(family, SOCK_DGRAM);
        check_family(family, SOCK_STREAM | SOCK_CLOEXEC);
        if (family != AF_UNIX)
            REFUSED(socketpair(family, SOCK_STREAM, 0, pair), EAFNOSUPPORT);
    }
    for (int protocol = 1; protocol < 64; protocol++)
        REFUSED(socket(AF_NETLINK, SOCK_RAW, protocol), EAFNOSUPPORT);
    REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_ICMP), EPERM);
    REFUSED(socket(AF_INET, SOCK_RAW, IPPROTO_RAW), EPERM);
    REFUSED(socket(AF_INET6, SOCK_RAW, IPPROTO_ICMPV6), EPERM);
    REFUSED(socket(AF_INET, SOCK_PACKET, 0x300), EPERM);
    REFUSED(socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP), EPROTONOSUPPORT);
    REFUSED(socket(AF_INET, SOCK_STREAM, 262), EPROTONOSUPPORT);
    REFUSED(syscall(SYS_socket, (long)AF_PACKET | 1L << 32, SOCK_RAW, 0), EAFNOSUPPORT);
    REFUSED(syscall(__NR_io_uring_setup, 1, NULL), EPERM);
}

/* Runs with a terminal as 0, 1 and 2, its own controlling terminal. */
static void terminal(int argc, char **argv)
{
    static const unsigned long shut[] = {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS};
    static const unsigned long junk[] = {0, 1UL << 32, 0xffffffffUL << 32, 0xdeadbeefUL << 32};
    char letter[] = "x";
    int discipline = 0;
    (void)argc;
    (void)argv;
    int tty = open("/dev/tty", O_RDWR | O_CLOEXEC);
    if (tty < 0)
        complain("no controlling terminal: %s", strerror(errno));
    for (int fd = 0; fd < 3; fd++) {
        for (size_t i = 0; i < COUNT(shut) * COUNT(junk); i++) {
            long number = (long)(shut[i % COUNT(shut)] | junk[i / COUNT(shut)]);
            void *data = number == TIOCSETD ? (void *)&discipline : letter;
            REFUSED(syscall(SYS_ioctl, fd, number, data), EPERM);
            REFUSED(syscall(SYS_ioctl, tty, number, data), EPERM);
        }
    }
    REFUSED(ioctl(tty, 0x4b46 /* KDGKBENT */, letter), ENOTTY);
    REFUSED(ioctl(tty, 0x5600 /* VT_OPENQRY */, letter), ENOTTY);
}

/* Without a terminal of its own there is none to be had. */
static void no_terminal(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    REFUSED(open("/dev/tty", O_RDWR | O_CLOEXEC), ENXIO);
    REFUSED(open("/dev/console", O_RDWR | O_CLOEXEC), ENOENT);
    REFUSED(open("/dev/tty0", O_RDWR | O_CLOEXEC), ENOENT);
    for (int fd = 0; fd < 3; fd++) {
        REFUSED(ioctl(fd, TIOCSTI, "x"), EPERM);
        REFUSED(syscall(SYS_ioctl, fd, (long)(TIOCSTI | 1UL << 40), "x"), EPERM);
    }
}

/* argv: files and directories. What can be asked of the file system below them is asked in vain. */
static void volume(int argc, char **argv)
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
    (void)argc;
    (void)argv;
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
static void odd_format(int argc, char **argv)
{
    char path[64];
    (void)argc;
    (void)argv;
    (void)snprintf(path, sizeof path, "/tmp/odd-%u", getuid());
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755);
    WORKS(write(fd, "\1\2\3\4\5\6\7\10", 8));
    (void)close(fd);
    if (in_child(execute_odd, path) != ENOEXEC)
        complain("an odd program was not refused as such");
}

static int nothing(void *data)
{
    (void)data;
    return 0;
}

static void namespaces(int argc, char **argv)
{
    static const int kinds[] = {CLONE_NEWUSER, CLONE_NEWNS,  CLONE_NEWPID,    CLONE_NEWNET,
                                CLONE_NEWIPC,  CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80 /* time */};
    static const char *const names[] = {"user", "mnt", "pid", "net", "ipc", "uts", "cgroup"};
    static char stack[65536];
    uint64_t clone3_args[11] = {CLONE_NEWUSER, [4] = SIGCHLD};
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        REFUSED(unshare(kinds[i]), EPERM);
        if (kinds[i] != 0x80) // in clone that bit is part of the signal's number
            REFUSED(clone(nothing, stack + sizeof stack, kinds[i] | SIGCHLD, NULL), EPERM);
        clone3_args[0] = (uint64_t)kinds[i];
        REFUSED(syscall(SYS_clone3, clone3_args, sizeof clone3_args), ENOSYS);
    }
    for (size_t i = 0; i < COUNT(names); i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        REFUSED(setns(fd, 0), EPERM);
        if (fd >= 0)
            (void)close(fd);
    }
}

static void mounting(int argc, char **argv)
{
    static const char *const types[] = {"tmpfs",  "proc",   "sysfs",   "cgroup",  "cgroup2",
                                        "devpts", "mqueue", "overlay", "debugfs", "bpf"};
    (void)argc;
    (void)argv;
    WORKS(mkdir("/tmp/mnt", 0700));
    for (size_t i = 0; i < COUNT(types); i++) {
        REFUSED(mount("none", "/tmp/mnt", types[i], 0, NULL), EPERM);
        REFUSED(syscall(SYS_fsopen, types[i], 0), EPERM);
    }
    REFUSED(mount("none", "/tmp/mnt", "cgroup", 0, "memory"), EPERM);
    REFUSED(mount("/", "/tmp/mnt", NULL, MS_BIND, NULL), EPERM);
    REFUSED(mount(NULL, "/proc/sys", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM);
    REFUSED(mount(NULL, "/", NULL, MS_REC | MS_SHARED, NULL), EPERM);
    REFUSED(umount2("/proc/sys", MNT_DETACH), EPERM);
    REFUSED(umount2("/dev", MNT_DETACH), EPERM);
    REFUSED(syscall(SYS_pivot_root, "/tmp", "/tmp"), EPERM);
    REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/", 1), EPERM);
    REFUSED(syscall(SYS_open_tree, AT_FDCWD, "/proc/1/root", 1), EPERM);
    REFUSED(syscall(SYS_move_mount, AT_FDCWD, "/", AT_FDCWD, "/tmp/mnt", 0), EPERM);
    REFUSED(syscall(SYS_mount_setattr, AT_FDCWD, "/", 0, NULL, 0), EPERM);
}

static void machine(int argc, char **argv)
{
    struct timespec now = {1, 0};
    struct timeval then = {1, 0};
    char handle[128] = "";
    (void)argc;
    (void)argv;
    REFUSED(sethostname("evil", 4), EPERM);
    REFUSED(syscall(SYS_setdomainname, "evil", 4), EPERM);
    REFUSED(clock_settime(CLOCK_REALTIME, &now), EPERM);
    REFUSED(syscall(SYS_settimeofday, &then, NULL), EPERM);
    REFUSED(syscall(SYS_reboot, 0xfee1dead, 672274793, 0x01234567, NULL), EPERM);
    REFUSED(syscall(SYS_syslog, 3, handle, sizeof handle), EPERM);
    REFUSED(syscall(SYS_bpf, 0, NULL, 0), EPERM);
    REFUSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), EPERM);
    REFUSED(syscall(SYS_userfaultfd, 0), EPERM);
    REFUSED(syscall(SYS_keyctl, 0, -3, 0), EPERM);
    REFUSED(syscall(SYS_add_key, "user", "evil", "x", 1, -3), EPERM);
    REFUSED(syscall(SYS_request_key, "user", "evil", NULL, -3), EPERM);
    REFUSED(syscall(SYS_open_by_handle_at, AT_FDCWD, handle, O_RDONLY), EPERM);
    REFUSED(syscall(SYS_iopl, 3), EPERM);
    REFUSED(syscall(SYS_finit_module, 0, "", 0), EPERM);
    REFUSED(syscall(SYS_kexec_load, 0, 0, NULL, 0), EPERM);
    REFUSED(syscall(SYS_swapon, "/tmp/x", 0), EPERM);
    REFUSED(syscall(SYS_acct, "/tmp/x"), EPERM);
    REFUSED(nice(-5) == -1 && errno ? -1 : 0, EPERM);
    REFUSED(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &(int){1}), EPERM);
}

/* The core limit stays what it is, and a crash leaves no core. */
static int crash(void *data)
{
    (void)data;
    (void)raise(SIGSEGV);
    return 0;
}

static void core(int argc, char **argv)
{
    struct rlimit none = {0}, more = {RLIM_INFINITY, RLIM_INFINITY}, now = {7, 7};
    struct stat info;
    (void)argc;
    (void)argv;
    WORKS(syscall(SYS_setrlimit, RLIMIT_CORE, &none));
    WORKS(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, NULL));
    WORKS(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &more, NULL));
    REFUSED(syscall(SYS_prlimit64, 0, RLIMIT_CORE, &none, &now), EPERM);
    if (getrlimit(RLIMIT_CORE, &now) < 0 || now.rlim_cur != 1 || now.rlim_max != 1)
        complain("the core limit is %llu", (unsigned long long)now.rlim_cur);
    WORKS(chdir("/tmp"));
    if (in_child(crash, NULL) != -SIGSEGV)
        complain("the crash ended otherwise");
    REFUSED(stat("/tmp/core", &info), ENOENT);
}

static void crash_now(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)crash(NULL);
}

const struct attack call_attacks[] = {
    {"all-calls", all_calls},     {"other-entries", other_entries},
    {"sockets", sockets},         {"terminal", terminal},
    {"no-terminal", no_terminal}, {"namespaces", namespaces},
    {"mounting", mounting},       {"machine", machine},
    {"volume", volume},           {"set-aside", set_aside},
    {"odd-format", odd_format},   {"core", core},
    {"crash", crash_now},         {0},
};
