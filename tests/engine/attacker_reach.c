/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks on others: processes in and out of the box, shared memory and queues, sockets, the
 * network. */
#include "attacker.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>

/* Nobody but PID 1 and itself is left. */
static void alone(int argc, char **argv)
{
    DIR *dir = opendir("/proc");
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

/* Races for the runtime's program: opens what any new process runs from, for writing, for the time
 * of many starts. */
static void race_for_exe(int argc, char **argv)
{
    char path[64];
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

/* Waits until the kernel says that PID 1's memory is open to debuggers: then its files are its user's. */
static void first_open(int argc, char **argv)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    struct stat info = {.st_uid = 1};
    char byte;
    struct iovec own = {&byte, 1}, theirs = {(void *)0x400000, 1};
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
    REFUSED(ptrace(PTRACE_ATTACH, 1, 0, 0), EPERM);
    REFUSED(ptrace(PTRACE_SEIZE, 1, 0, 0), EPERM);
    REFUSED(process_vm_readv(1, &own, 1, &theirs, 1, 0), EPERM);
    REFUSED(process_vm_writev(1, &own, 1, &theirs, 1, 0), EPERM);
    REFUSED(open("/proc/1/mem", O_RDWR | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/maps", O_RDONLY | O_CLOEXEC), EACCES);
    int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
    for (int fd = 0; fd < 16; fd++)
        REFUSED(syscall(SYS_pidfd_getfd, pidfd, fd, 0), EPERM);
    (void)close(pidfd);
}

const struct inside_attack reach_attacks[] = {
    {"first-open", first_open},
    {"alone", alone},
    {"files-under-way", files_under_way},
    {"race-for-exe", race_for_exe},
    {0},
};
