/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on parts of the kernel that have calls of their own. Where one is not refused it does no harm: names and times
 * are set to what they are, and what would reboot or load something gets arguments that come to nothing.
 */
#include "attack/attacker.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <time.h>

static void host_name(int argc, char **argv)
{
    struct utsname now = {0};
    (void)uname(&now);
    REFUSED(sethostname(now.nodename, strlen(now.nodename)), EPERM);
    REFUSED(syscall(SYS_setdomainname, now.domainname, strlen(now.domainname)), EPERM);
}

static void clock_set(int argc, char **argv)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_REALTIME, &now);
    struct timeval then = {now.tv_sec, now.tv_nsec / 1000};
    REFUSED(clock_settime(CLOCK_REALTIME, &now), EPERM);
    REFUSED(syscall(SYS_settimeofday, &then, NULL), EPERM);
}

static void kernel_log(int argc, char **argv)
{
    char text[128];
    REFUSED(syscall(SYS_syslog, 3 /* read all */, text, sizeof text), EPERM);
    REFUSED(syscall(SYS_syslog, 10 /* its size */, NULL, 0), EPERM);
    REFUSED(open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC), ENOENT);
    REFUSED(open("/dev/kmsg", O_WRONLY | O_NONBLOCK | O_CLOEXEC), ENOENT);
    if (is_readable("/proc/kmsg"))
        complain("/proc/kmsg is readable");
}

static void bpf(int argc, char **argv)
{
    REFUSED(syscall(SYS_bpf, 0, NULL, 0), EPERM);
}

static void perf(int argc, char **argv)
{
    REFUSED(syscall(SYS_perf_event_open, NULL, 0, -1, -1, 0), EPERM);
}

static void user_faults(int argc, char **argv)
{
    REFUSED(syscall(SYS_userfaultfd, 0), EPERM);
    REFUSED(syscall(SYS_userfaultfd, 1 /* of its own mode only */), EPERM);
    REFUSED(open("/dev/userfaultfd", O_RDWR | O_CLOEXEC), ENOENT);
}

static void io_uring(int argc, char **argv)
{
    REFUSED(syscall(425 /* io_uring_setup */, 1, NULL), EPERM);
    REFUSED(syscall(426 /* io_uring_enter */, -1, 0, 0, 0, NULL, 0), EPERM);
    REFUSED(syscall(427 /* io_uring_register */, -1, 0, NULL, 0), EPERM);
}

static void keyrings(int argc, char **argv)
{
    REFUSED(syscall(SYS_keyctl, 0, -3, 0), EPERM);
    REFUSED(syscall(SYS_add_key, "user", "burrow-attack", "x", 1, -2), EPERM);
    REFUSED(syscall(SYS_request_key, "user", "burrow-attack", NULL, -2), EPERM);
    if (*read_text("/proc/keys") || *read_text("/proc/key-users"))
        complain("keys can be seen");
}

/* A handle opens a file by its number, past every directory above it (the "shocker" of 2014). */
static void file_handles(int argc, char **argv)
{
    struct {
        unsigned bytes;
        int type;
        unsigned char handle[128];
    } root = {.bytes = 8, .type = 1, .handle = {2}};
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REFUSED(syscall(SYS_open_by_handle_at, fd, &root, O_RDONLY), EPERM);
    REFUSED(syscall(SYS_open_by_handle_at, AT_FDCWD, &root, O_RDONLY), EPERM);
    if (fd >= 0)
        (void)close(fd);
}

static void kernel_modules(int argc, char **argv)
{
    REFUSED(syscall(SYS_init_module, NULL, 0, ""), EPERM);
    REFUSED(syscall(SYS_finit_module, -1, "", 0), EPERM);
    REFUSED(syscall(SYS_delete_module, "burrow-attack", O_NONBLOCK), EPERM);
}

static void another_kernel(int argc, char **argv)
{
    REFUSED(syscall(SYS_kexec_load, 0, 0, NULL, 0xfff0UL /* no such flags */), EPERM);
    REFUSED(syscall(SYS_kexec_file_load, -1, -1, 0, NULL, 0), EPERM);
    REFUSED(syscall(SYS_reboot, 0xfee1dead, 0 /* not the second word */, 0, NULL), EPERM);
}

static void swap_and_accounts(int argc, char **argv)
{
    REFUSED(syscall(SYS_swapon, "/tmp/burrow-attack-none", 0), EPERM);
    REFUSED(syscall(SYS_swapoff, "/tmp/burrow-attack-none"), EPERM);
    REFUSED(syscall(SYS_acct, "/tmp/burrow-attack-none"), EPERM);
    REFUSED(syscall(SYS_quotactl, 0, NULL, 0, NULL), EPERM);
}

static void io_ports(int argc, char **argv)
{
    REFUSED(syscall(SYS_iopl, 3), EPERM);
    REFUSED(syscall(SYS_ioperm, 0x80, 1, 1), EPERM);
    REFUSED(open("/dev/port", O_RDWR | O_CLOEXEC), ENOENT);
    REFUSED(open("/dev/mem", O_RDONLY | O_CLOEXEC), ENOENT);
    REFUSED(open("/dev/kmem", O_RDONLY | O_CLOEXEC), ENOENT);
    if (is_readable("/proc/kcore"))
        complain("/proc/kcore is readable");
}

static void priority(int argc, char **argv)
{
    REFUSED(nice(-5) == -1 && errno ? -1 : 0, EPERM);
    REFUSED(syscall(SYS_sched_setscheduler, 0, SCHED_FIFO, &(int){1}), EPERM);
}

static int crash(void *data)
{
    (void)raise(SIGSEGV);
    return 0;
}

/* The core limit stays what it is, and a crash leaves no core and starts no handler outside. */
static void core_dump(int argc, char **argv)
{
    struct rlimit none = {0}, more = {RLIM_INFINITY, RLIM_INFINITY}, now = {7, 7};
    struct stat info;
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

const struct inside_attack inside_kernel[] = {
    {"host-name", host_name},
    {"clock", clock_set},
    {"kernel-log", kernel_log},
    {"bpf", bpf},
    {"perf", perf},
    {"userfaultfd", user_faults},
    {"io-uring", io_uring},
    {"keyrings", keyrings},
    {"file-handles", file_handles},
    {"kernel-modules", kernel_modules},
    {"kexec", another_kernel},
    {"swap-and-accounts", swap_and_accounts},
    {"physical-memory", io_ports},
    {"priority", priority},
    {"core-dump", core_dump},
    {0},
};
