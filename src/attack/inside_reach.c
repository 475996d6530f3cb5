/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attacks on others: PID 1, processes of the host and of another box, what is left in memory that could be shared. Where one
 * is not refused it does no harm: processes are traced without being stopped, and sent the signal that is none.
 */
#include "attack/attacker.h"

#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>

#define KEY 0x62757272
#define FIRST_NAMESPACE "pid:[4026531836]" // of processes: the machine's, on every Linux

/* False, with a complaint, where a signal to all would reach the whole machine. */
static bool is_apart(void)
{
    char name[64] = "";
    (void)!readlink("/proc/self/ns/pid", name, sizeof name - 1);
    if (strcmp(name, FIRST_NAMESPACE) != 0)
        return true;
    complain("it is among the processes of the machine");
    return false;
}

static void check_untouchable(pid_t pid, int want)
{
    char byte;
    struct iovec own = {&byte, 1}, theirs = {(void *)1, 1};
    REFUSED(ptrace(PTRACE_SEIZE, pid, 0, 0), want);
    REFUSED(process_vm_readv(pid, &own, 1, &theirs, 1, 0), want);
    REFUSED(process_vm_writev(pid, &own, 1, &theirs, 1, 0), want);
}

/* PID 1: visible, and out of reach for root of the box too. */
static void first_trace(int argc, char **argv)
{
    check_untouchable(1, EPERM);
    if (is_apart())
        REFUSED(ptrace(PTRACE_ATTACH, 1, 0, 0), EPERM);
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    if (pidfd >= 0) {
        for (int fd = 0; fd < 16; fd++)
            REFUSED(syscall(SYS_pidfd_getfd, pidfd, fd, 0), EPERM);
        (void)close(pidfd);
    }
    REFUSED(syscall(SYS_get_robust_list, 1, &(void *){0}, &(size_t){0}), EPERM);
}

/* Whether PID 1 still serves is seen from outside. */
static void first_signals(int argc, char **argv)
{
    if (!is_apart())
        return;
    for (int number = 1; number <= 64; number++) {
        if (kill(1, number) < 0 && errno != EPERM && errno != EINVAL)
            complain("signal %d to PID 1: %s", number, strerror(errno));
    }
}

static void first_limits(int argc, char **argv)
{
    if (!is_apart())
        return;
    for (int resource = 0; resource < 16; resource++)
        REFUSED(syscall(SYS_prlimit64, 1, resource, &(uint64_t[2]){0}, NULL), EPERM);
    REFUSED(syscall(SYS_setpriority, 0, 1, 19), EPERM);
    REFUSED(syscall(SYS_setpriority, 1, 1, 19), EPERM);
    REFUSED(syscall(SYS_setpriority, 2, 0, 19), EPERM);
    REFUSED(syscall(SYS_sched_setscheduler, 1, 5 /* idle */, &(int){0}), EPERM);
    REFUSED(syscall(SYS_sched_setaffinity, 1, 8, &(uint64_t){1}), EPERM);
    REFUSED(syscall(SYS_sched_setattr, 1, &(uint32_t[12]){48, 5}, 0), EPERM);
    REFUSED(syscall(SYS_ioprio_set, 1, 1, 3 << 13), EPERM);
    REFUSED(syscall(SYS_ioprio_set, 3, 0, 3 << 13), EPERM);
    REFUSED(open("/proc/1/oom_score_adj", O_WRONLY | O_CLOEXEC), EACCES);
}

static void check_absent(pid_t pid)
{
    check_untouchable(pid, ESRCH);
    REFUSED(kill(pid, 0), ESRCH);
    REFUSED(syscall(SYS_pidfd_open, pid, 0), ESRCH);
    REFUSED(syscall(SYS_tgkill, pid, pid, 0), ESRCH);
    REFUSED(syscall(SYS_rt_sigqueueinfo, pid, 0, &(siginfo_t){.si_code = SI_QUEUE}), ESRCH);
}

/* argv: process numbers of the host. Also every number that could be one: none is there. */
static void other_processes(int argc, char **argv)
{
    char path[32];
    pid_t highest = getpid(); // of a box nobody but itself and those before it
    for (int i = 0; i < argc; i++) {
        pid_t pid = atoi(argv[i]);
        if (pid > highest) // else it may be a number of the box as well
            check_absent(pid);
    }
    for (pid_t pid = highest + 1; pid < 70000; pid++) {
        if (kill(pid, 0) == 0)
            complain("process %d is there", pid);
    }
    for (pid_t pid = highest + 1; pid < 2000; pid++) {
        (void)snprintf(path, sizeof path, "/proc/%d", pid);
        if (access(path, F_OK) == 0)
            complain("/proc/%d is there", pid);
    }
}

/* Every process of another user that can be seen. */
static void other_users(int argc, char **argv)
{
    DIR *dir = opendir("/proc");
    unsigned seen = 0;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 1 || pid == getpid())
            continue;
        seen++;
        check_untouchable(pid, EPERM);
        REFUSED(kill(pid, SIGKILL), EPERM);
    }
    if (seen == 0)
        complain("nobody else is there");
}

/* argv: a text that a process of another box has in its arguments and in its environment. */
static void secrets(int argc, char **argv)
{
    DIR *dir = opendir("/proc");
    for (struct dirent *entry; argc > 0 && dir && (entry = readdir(dir));) {
        static const char *const files[] = {"cmdline", "environ", "status", "comm"};
        pid_t pid = atoi(entry->d_name);
        for (size_t i = 0; pid > 0 && pid != getpid() && i < COUNT(files); i++) {
            char path[64];
            (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
            if (strstr(read_text(path), argv[0]))
                complain("%s has what another sandbox's process knows", path);
        }
    }
}

/* Ends everything it may; what must not end is looked at from outside. */
static void kill_all(int argc, char **argv)
{
    if (!is_apart())
        return;
    (void)kill(-1, SIGTERM);
    (void)kill(-1, SIGKILL);
    (void)kill(1, SIGKILL);
    (void)kill(1, SIGSEGV);
    (void)kill(1, SIGSTOP);
}

static void wait_for_signal(int argc, char **argv)
{
    say_and_wait("waiting");
}

/* Leaves something in every shared place there is, then says so and waits. */
static void leave(int argc, char **argv)
{
    int shm = open("/dev/shm/left", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    int tmp = open("/tmp/left", O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    struct mq_attr size = {.mq_maxmsg = 2, .mq_msgsize = 64};
    mqd_t queue = mq_open("/left", O_RDWR | O_CREAT, 0666, &size);
    int segment = shmget(KEY, 4096, IPC_CREAT | 0666);
    int messages = msgget(KEY, IPC_CREAT | 0666);
    int semaphores = semget(KEY, 1, IPC_CREAT | 0666);
    int sock = listen_abstract("left-by-a-box");
    if (shm < 0 || tmp < 0 || queue == (mqd_t)-1 || segment < 0 || messages < 0 || semaphores < 0 ||
        sock < 0)
        say_and_wait("could not leave everything");
    say_and_wait("left");
}

static void find_left(int argc, char **argv)
{
    REFUSED(open("/dev/shm/left", O_RDWR | O_CLOEXEC), ENOENT);
    REFUSED(open("/tmp/left", O_RDWR | O_CLOEXEC), ENOENT);
    REFUSED(mq_open("/left", O_RDWR), ENOENT);
    REFUSED(shmget(KEY, 4096, 0), ENOENT);
    REFUSED(msgget(KEY, 0), ENOENT);
    REFUSED(semget(KEY, 1, 0), ENOENT);
    for (int id = 0; id < 4096; id++) {
        if (shmat(id, NULL, SHM_RDONLY) != (void *)-1)
            complain("segment %d can be attached", id);
    }
}

/* argv: names of abstract sockets that are open elsewhere. */
static void find_sockets(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", argv[i]);
        socklen_t length =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(argv[i]));
        REFUSED(connect(sock, (struct sockaddr *)&address, length), ECONNREFUSED);
        (void)close(sock);
    }
    if (listen_abstract("my-own") < 0)
        complain("no socket of its own");
    const char *list = read_text("/proc/net/unix");
    if (!strstr(list, "@my-own"))
        complain("its own socket is not listed");
    const char *name = list;
    while ((name = strchr(name, '@'))) {
        if (strncmp(name, "@my-own", 7) != 0)
            complain("listed: %.60s", name);
        name++;
    }
}

const struct inside_attack inside_reach[] = {
    {"pid1-trace", first_trace},
    {"pid1-signals", first_signals},
    {"pid1-limits", first_limits},
    {"other-processes", other_processes},
    {"other-users", other_users},
    {"secrets", secrets},
    {"kill-all", kill_all},
    {"wait", wait_for_signal},
    {"leave", leave},
    {"find-left", find_left},
    {"find-sockets", find_sockets},
    {0},
};
