/* SPDX-License-Identifier: Apache-2.0 */
/* Commands that try to kill, stop, read or impersonate PID 1 and what it is about to start; see guest.h. */
#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static int run_kill_init(int argc, char **argv)
{
    for (int i = 1; i < 65; i++) {
        (void)kill(1, i);
        (void)syscall(SYS_tgkill, 1, 1, i);
        int pidfd = (int)syscall(SYS_pidfd_open, 1, 0);
        if (pidfd >= 0) {
            (void)syscall(SYS_pidfd_send_signal, pidfd, i, NULL, 0);
            (void)close(pidfd);
        }
    }
    say("done");
    return 0;
}

static char worked[4096];

/* Notes what worked and must not. */
static void verdict(const char *what, long result)
{
    if (result >= 0 && strlen(worked) + strlen(what) + 3 < sizeof worked)
        (void)strcat(strcat(worked, what), ", ");
}

static long read_some(const char *path, int flags)
{
    char byte;
    int fd = open(path, flags);
    if (fd < 0)
        return -1;
    long result = flags == O_WRONLY ? write(fd, "x", 1) : read(fd, &byte, 1);
    (void)close(fd);
    return result > 0 ? 0 : -1;
}

static void try_files(const char *pid)
{
    static const struct {
        const char *name;
        int flags;
    } files[] = {{"mem", O_RDONLY},  {"mem", O_WRONLY},     {"environ", O_RDONLY},
                 {"maps", O_RDONLY}, {"auxv", O_RDONLY},    {"pagemap", O_RDONLY},
                 {"exe", O_RDONLY},  {"syscall", O_RDONLY}, {"stack", O_RDONLY},
                 {"io", O_RDONLY},   {"smaps", O_RDONLY}};
    char path[128];
    char target[256];
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        (void)snprintf(path, sizeof path, "/proc/%s/%s", pid, files[i].name);
        verdict(path, read_some(path, files[i].flags));
    }
    static const char *const links[] = {"exe",  "cwd",  "root",   "fd/0",
                                        "fd/3", "fd/5", "ns/mnt", "ns/user"};
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        (void)snprintf(path, sizeof path, "/proc/%s/%s", pid, links[i]);
        verdict(path, readlink(path, target, sizeof target));
        (void)snprintf(path, sizeof path, "/proc/%s/%s", pid, links[i]);
        int fd = open(path, O_PATH | O_CLOEXEC);
        verdict(path, fd);
        if (fd >= 0)
            (void)close(fd);
    }
    (void)snprintf(path, sizeof path, "/proc/%s/oom_score_adj", pid);
    int fd = open(path, O_WRONLY);
    verdict(path, fd < 0 ? -1 : write(fd, "1000", 4));
    if (fd >= 0)
        (void)close(fd);
}

/* Lets go again: what has executed meanwhile is a fellow guest, and may be traced. */
static void try_trace(pid_t pid)
{
    long result = ptrace(PTRACE_ATTACH, pid, NULL, NULL);
    verdict("ptrace attach", result);
    if (result < 0) {
        result = ptrace(PTRACE_SEIZE, pid, NULL, NULL);
        verdict("ptrace seize", result);
        if (result >= 0)
            (void)ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
    }
    if (result >= 0) {
        (void)waitpid(pid, NULL, __WALL);
        (void)ptrace(PTRACE_DETACH, pid, NULL, NULL);
    }
}

static void try_calls(pid_t pid)
{
    char byte;
    struct iovec here = {&byte, 1};
    struct iovec there = {(void *)0x400000, 1};
    struct rlimit limit = {0, 0};

    try_trace(pid);
    verdict("process_vm_readv", process_vm_readv(pid, &here, 1, &there, 1, 0));
    verdict("process_vm_writev", process_vm_writev(pid, &here, 1, &there, 1, 0));
    verdict("prlimit", prlimit(pid, RLIMIT_NOFILE, &limit, NULL));
    verdict("kcmp", syscall(SYS_kcmp, pid, getpid(), 0, 0, 0));
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return;
    for (int fd = 0; fd < 16; fd++)
        verdict("pidfd_getfd", syscall(SYS_pidfd_getfd, pidfd, fd, 0));
    verdict("setns", syscall(SYS_setns, pidfd, 0x10000000 /* CLONE_NEWUSER */));
    (void)close(pidfd);
}

static int run_spy_init(int argc, char **argv)
{
    try_files("1");
    try_calls(1);
    (void)setpgid(1, getpid());
    verdict("setpriority", setpriority(PRIO_PROCESS, 1, 19));
    say("worked: %s", worked);
    return 0;
}

/* Stops whatever has a pid above ours, again and again. */
static int run_stop_storm(int argc, char **argv)
{
    say("ready");
    for (;;) {
        for (pid_t pid = getpid() + 1; pid < getpid() + 600; pid++)
            (void)kill(pid, SIGSTOP);
    }
    return 0;
}

static void read_name(pid_t pid, char name[32])
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? 0 : read(fd, name, 31);
    name[got > 0 ? got : 0] = '\0';
    (void)close(fd);
}

/* Has PID 1's name still. */
static bool is_newborn(pid_t pid)
{
    char name[32];
    char parent[32];
    read_name(pid, name);
    read_name(1, parent);
    return *name && strcmp(name, parent) == 0;
}

/* Goes for processes that PID 1 has begun to start: they share its memory and fds until they execute. */
static int run_spy_newborn(int argc, char **argv)
{
    say("ready");
    for (pid_t pid = getpid() + 1;; pid = pid < getpid() + 600 ? pid + 1 : getpid() + 1) {
        if (kill(pid, SIGSTOP) < 0)
            continue;
        if (is_newborn(pid)) {
            char text[16];
            (void)snprintf(text, sizeof text, "%d", (int)pid);
            *worked = '\0';
            try_files(text);
            try_calls(pid);
            if (is_newborn(pid)) // what it has become since may be read by its kind
                say("caught, worked: %s", worked);
        }
        (void)kill(pid, SIGCONT);
    }
    return 0;
}

/* Makes marks of overlay, in every way a box could try; 0 when one can be made. */
static int run_overlay_marks(int argc, char **argv)
{
    static const char *const names[] = {"trusted.overlay.opaque", "trusted.overlay.redirect",
                                        "trusted.overlay.metacopy", "trusted.overlay.whiteout"};
    if (mkdir(argv[1], 0755) < 0 || chdir(argv[1]) < 0)
        return 3;
    if (mknod("whiteout", S_IFCHR | 0600, makedev(0, 0)) == 0)
        return 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (setxattr(".", names[i], "y", 1, 0) == 0)
            return 0;
    }
    return 1;
}

const struct command hostile_commands[] = {
    {"kill-init", run_kill_init, ""},
    {"spy-init", run_spy_init, ""},
    {"stop-storm", run_stop_storm, ""},
    {"spy-newborn", run_spy_newborn, ""},
    {"overlay-marks", run_overlay_marks, "DIRECTORY"},
    {0},
};
