/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on others: processes in and out of the box, shared memory and queues, sockets, the
 * network. */
#include "attacker.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>

#define KEY 0x62757272

static void check_untouchable(pid_t pid, int want_trace, int want_memory)
{
    char byte;
    struct iovec own = {&byte, 1}, theirs = {(void *)0x400000, 1};
    REFUSED(ptrace(PTRACE_ATTACH, pid, 0, 0), want_trace);
    REFUSED(ptrace(PTRACE_SEIZE, pid, 0, 0), want_trace);
    REFUSED(process_vm_readv(pid, &own, 1, &theirs, 1, 0), want_memory);
    REFUSED(process_vm_writev(pid, &own, 1, &theirs, 1, 0), want_memory);
}

/* PID 1: visible, and out of reach for root of the box too. */
static void first(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    check_untouchable(1, EPERM, EPERM);
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    if (pidfd >= 0) {
        for (int fd = 0; fd < 16; fd++)
            REFUSED(syscall(SYS_pidfd_getfd, pidfd, fd, 0), EPERM);
        (void)close(pidfd);
    }
    for (int number = 1; number <= 64; number++) {
        if (kill(1, number) < 0 && errno != EPERM && errno != EINVAL)
            complain("signal %d to PID 1: %s", number, strerror(errno));
    }
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
    REFUSED(syscall(SYS_get_robust_list, 1, &(void *){0}, &(size_t){0}), EPERM);
}

/* Waits until the kernel says that PID 1's memory is open to debuggers: then its files are its user's. */
static void first_open(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct stat info = {.st_uid = 1};
    (void)argc;
    (void)argv;
    (void)puts("waiting");
    (void)fflush(stdout);
    for (int i = 0; i < 60000 && info.st_uid != 0; i++) {
        (void)nanosleep(&pause, NULL);
        (void)stat("/proc/1/environ", &info);
    }
    if (info.st_uid != 0)
        complain("PID 1's memory does not open");
    check_untouchable(1, EPERM, EPERM);
    REFUSED(open("/proc/1/mem", O_RDWR | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/maps", O_RDONLY | O_CLOEXEC), EACCES);
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    for (int fd = 0; fd < 16; fd++)
        REFUSED(syscall(SYS_pidfd_getfd, pidfd, fd, 0), EPERM);
    (void)close(pidfd);
}

static bool is_visible(int pid)
{
    char path[32];
    (void)snprintf(path, sizeof path, "/proc/%d", pid);
    return access(path, F_OK) == 0;
}

/* argv: process numbers of the host. Also every number that could be one: none is there. */
static void guessed(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        pid_t pid = atoi(argv[i]);
        if (pid < 64)
            continue; // may be a number of ours as well
        check_untouchable(pid, ESRCH, ESRCH);
        REFUSED(kill(pid, SIGKILL), ESRCH);
        REFUSED(syscall(SYS_pidfd_open, pid, 0), ESRCH);
        REFUSED(syscall(SYS_tgkill, pid, pid, SIGKILL), ESRCH);
        REFUSED(syscall(SYS_rt_sigqueueinfo, pid, SIGKILL, &(siginfo_t){.si_code = SI_QUEUE}),
                ESRCH);
    }
    for (pid_t pid = 64; pid < 70000; pid++) {
        if (kill(pid, 0) == 0)
            complain("process %d is there", pid);
    }
    for (pid_t pid = 64; pid < 2000; pid++) {
        if (is_visible(pid))
            complain("/proc/%d is there", pid);
    }
}

/* Every process that can be seen but itself; sleepers of other users and of its own were started
 * before. */
static void visible(int argc, char **argv)
{
    DIR *dir = opendir("/proc");
    unsigned seen = 0;
    (void)argc;
    (void)argv;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = atoi(entry->d_name);
        if (pid <= 1 || pid == getpid())
            continue;
        seen++;
        check_untouchable(pid, EPERM, EPERM);
        REFUSED(kill(pid, SIGKILL), EPERM);
    }
    if (seen == 0)
        complain("nobody else is there");
}

/* Ends everything it may; what must not end is looked at from outside. */
static void kill_all(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)kill(-1, SIGTERM);
    (void)kill(-1, SIGKILL);
    (void)kill(1, SIGKILL);
    (void)kill(1, SIGSEGV);
    (void)kill(1, SIGSTOP);
}

/* Nobody but PID 1 and itself is left. */
static void alone(int argc, char **argv)
{
    DIR *dir = opendir("/proc");
    (void)argc;
    (void)argv;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        pid_t pid = atoi(entry->d_name);
        if (pid > 1 && pid != getpid())
            complain("process %d is there", pid);
    }
}

/* Sends files to itself and never takes them, until the kernel says that its user has too many
 * under way. */
static void files_under_way(int argc, char **argv)
{
    int pair[2], fds[200];
    char byte = 'x';
    struct iovec part = {&byte, 1};
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof fds)];
    } control = {.header = {.cmsg_len = CMSG_LEN(sizeof fds),
                            .cmsg_level = SOL_SOCKET,
                            .cmsg_type = SCM_RIGHTS}};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control.space};
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < COUNT(fds); i++)
        fds[i] = STDOUT_FILENO;
    memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
    for (int i = 0; i < 1000; i++) {
        if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0)
            break;
        while (sendmsg(pair[0], &message, 0) > 0)
            ;
        if (errno == ETOOMANYREFS)
            break;
    }
    (void)puts(errno == ETOOMANYREFS ? "full" : strerror(errno));
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

static void wait_for_signal(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    for (;;)
        (void)pause();
}

static int listen_abstract(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int sock = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    (void)snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "%s", name);
    socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name));
    return bind(sock, (struct sockaddr *)&address, length) == 0 && listen(sock, 1) == 0 ? sock : -1;
}

/* Leaves something in every shared place there is, then says so and waits. */
static void leave(int argc, char **argv)
{
    (void)argc;
    (void)argv;
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
        complain("could not leave everything");
    (void)puts("left");
    (void)fflush(stdout);
    for (;;)
        (void)pause();
}

/* argv: names of abstract sockets that are open elsewhere. */
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
    if (*read_text("/proc/keys") || *read_text("/proc/key-users"))
        complain("keys can be seen");
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

static int try_connect(const char *address, int port, int type)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int sock = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (inet_pton(AF_INET, address, &to.sin_addr) != 1)
        complain("'%s' is no address", address);
    int result = connect(sock, (struct sockaddr *)&to, sizeof to);
    int code = errno;
    (void)close(sock);
    errno = code;
    return result;
}

/* argv: the port of a listener on the host's loopback, then addresses of the host. */
static void network(int argc, char **argv)
{
    struct sockaddr_in6 to6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    int port = argc > 0 ? atoi(argv[0]) : 1;
    static const char *const outside[] = {"8.8.8.8",     "169.254.169.254", "10.0.0.1",
                                          "192.168.0.1", "172.17.0.1",      "224.0.0.1"};
    REFUSED(try_connect("127.0.0.1", port, SOCK_STREAM), ECONNREFUSED);
    REFUSED(try_connect("0.0.0.0", port, SOCK_STREAM), ECONNREFUSED);
    for (size_t i = 0; i < COUNT(outside); i++)
        REFUSED(try_connect(outside[i], 53, SOCK_DGRAM), ENETUNREACH);
    for (int i = 1; i < argc; i++)
        REFUSED(try_connect(argv[i], port, SOCK_STREAM), ENETUNREACH);
    to6.sin6_port = htons((uint16_t)port);
    int sock = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (sock >= 0)
        REFUSED_AS(connect(sock, (struct sockaddr *)&to6, sizeof to6), ECONNREFUSED, EADDRNOTAVAIL);
    const char *text = read_text("/proc/net/dev");
    unsigned lines = 0;
    for (const char *at = text; (at = strchr(at, '\n')); at++)
        lines++;
    if (lines != 3 || !strstr(text, "\n    lo:"))
        complain("interfaces: %s", text);
    text = read_text("/proc/net/route");
    if (strchr(text, '\n') && strchr(text, '\n')[1])
        complain("routes: %s", text);
    WORKS(try_connect("127.0.0.1", 9, SOCK_DGRAM)); // loopback itself is up
}

/* Races for the runtime's program: opens what any new process runs from, for writing, for the time
 * of many starts. */
static void race_for_exe(int argc, char **argv)
{
    char path[64];
    (void)argc;
    (void)argv;
    (void)puts("racing");
    (void)fflush(stdout);
    for (;;) {
        for (int pid = 1; pid < 600; pid++) {
            static const char *const files[] = {"exe", "mem"};
            if (pid == getpid())
                continue;
            for (size_t i = 0; i < COUNT(files); i++) {
                (void)snprintf(path, sizeof path, "/proc/%d/%s", pid, files[i]);
                int fd = open(path, O_RDWR | O_CLOEXEC);
                char name[128] = "";
                (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
                if (fd >= 0 && i == 0 && readlink(path, name, sizeof name - 1) > 0 &&
                    strstr(name, "burrow"))
                    complain("opened %s", name);
                if (fd >= 0)
                    (void)close(fd);
            }
            (void)snprintf(path, sizeof path, "/proc/%d/exe", pid);
            char target[128] = "";
            if (readlink(path, target, sizeof target - 1) > 0 && strstr(target, "burrow"))
                complain("read the link %s", target);
        }
        (void)fflush(stdout);
    }
}

const struct attack reach_attacks[] = {
    {"first", first},
    {"first-open", first_open},
    {"guessed", guessed},
    {"visible", visible},
    {"kill-all", kill_all},
    {"alone", alone},
    {"files-under-way", files_under_way},
    {"wait", wait_for_signal},
    {"leave", leave},
    {"find-left", find_left},
    {"network", network},
    {"race-for-exe", race_for_exe},
    {0},
};
