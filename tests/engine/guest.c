/* SPDX-License-Identifier: Apache-2.0 */
/* What an honest program does: speak, read, sleep, fork, catch signals, tell how it was started; see guest.h. */
#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

void say(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
    (void)fflush(stdout);
}

void pause_for_ever(void)
{
    for (;;)
        (void)pause();
}

static int number(int argc, char **argv, int index)
{
    return index < argc ? atoi(argv[index]) : 0;
}

static int run_exit(int argc, char **argv)
{
    return number(argc, argv, 1);
}

static int run_echo(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        printf("%s%s", i > 1 ? " " : "", argv[i]);
    putchar('\n');
    return 0;
}

/* Both outputs, in turn. */
static int run_both(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (dprintf(i % 2 ? STDOUT_FILENO : STDERR_FILENO, "%s\n", argv[i]) < 0)
            return 1;
    }
    return 0;
}

static int run_cat(int argc, char **argv)
{
    char data[65536];
    ssize_t got;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : STDIN_FILENO;
    while ((got = read(fd, data, sizeof data)) > 0) {
        for (ssize_t at = 0; at < got;) {
            ssize_t wrote = write(STDOUT_FILENO, data + at, (size_t)(got - at));
            if (wrote < 0)
                return 2;
            at += wrote;
        }
    }
    return got < 0;
}

static int run_sleep(int argc, char **argv)
{
    struct timespec time = {number(argc, argv, 1), 0};
    say("ready");
    while (nanosleep(&time, &time) < 0 && errno == EINTR)
        ;
    return 0;
}

/* N bytes in which every position can be told: byte i is i * 7 + i / 256. */
static int run_bytes(int argc, char **argv)
{
    static unsigned char data[65536];
    uint64_t left = strtoull(argv[1], NULL, 10);
    for (uint64_t at = 0; left > 0;) {
        size_t part = left < sizeof data ? (size_t)left : sizeof data;
        for (size_t i = 0; i < part; i++, at++)
            data[i] = (unsigned char)(at * 7 + at / 256);
        if (fwrite(data, 1, part, stdout) != part)
            return 1;
        left -= part;
    }
    return fflush(stdout) != 0;
}

static int run_lines(int argc, char **argv)
{
    for (int i = 0; i < number(argc, argv, 1); i++)
        printf("line %d\n", i);
    return 0;
}

static int run_env(int argc, char **argv)
{
    for (char **at = environ; *at; at++)
        puts(*at);
    return 0;
}

/* How many bytes of arguments and environment came. */
static int run_sizes(int argc, char **argv)
{
    size_t arguments = 0;
    size_t environment = 0;
    for (int i = 0; i < argc; i++)
        arguments += strlen(argv[i]) + 1;
    for (char **at = environ; *at; at++)
        environment += strlen(*at) + 1;
    say("%d %zu %zu", argc, arguments, environment);
    return 0;
}

static int run_cwd(int argc, char **argv)
{
    char path[4096];
    struct stat info;
    if (!getcwd(path, sizeof path) || stat(".", &info) < 0)
        return 1;
    say("%s %u", path, (unsigned)info.st_uid);
    return 0;
}

static int run_ids(int argc, char **argv)
{
    uid_t u[3];
    gid_t g[3];
    gid_t groups[64];
    if (getresuid(&u[0], &u[1], &u[2]) < 0 || getresgid(&g[0], &g[1], &g[2]) < 0)
        return 1;
    printf("uid %u %u %u gid %u %u %u groups", u[0], u[1], u[2], g[0], g[1], g[2]);
    int count = getgroups(64, groups);
    for (int i = 0; i < count; i++)
        printf(" %u", groups[i]);
    say("%s", "");
    return 0;
}

static int run_fds(int argc, char **argv)
{
    for (int fd = 0; fd < 65536; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            printf("%d ", fd);
    }
    say("%s", "");
    return 0;
}

/* Lines of a file that begin with one of the words. */
static int run_grep(int argc, char **argv)
{
    char line[1024];
    FILE *file = fopen(argv[1], "re");
    if (!file)
        return 1;
    while (fgets(line, sizeof line, file)) {
        for (int i = 2; i < argc; i++) {
            if (strncmp(line, argv[i], strlen(argv[i])) == 0)
                (void)fputs(line, stdout);
        }
    }
    (void)fclose(file);
    return 0;
}

static int run_session(int argc, char **argv)
{
    say("session %s group %s", getsid(0) == getpid() ? "own" : "other",
        getpgrp() == getpid() ? "own" : "other");
    return 0;
}

/* Dispositions that are not the default, and what is blocked. */
static int run_signals(int argc, char **argv)
{
    sigset_t blocked;
    (void)sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int i = 1; i < 65; i++) {
        struct sigaction action;
        if (sigaction(i, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            say("signal %d is not the default", i);
        if (sigismember(&blocked, i) == 1)
            say("signal %d is blocked", i);
    }
    say("done");
    return 0;
}

static int run_die(int argc, char **argv)
{
    struct rlimit none = {0, 0};
    (void)setrlimit(RLIMIT_CORE, &none);
    (void)raise(number(argc, argv, 1));
    return 99;
}

static int run_crash(int argc, char **argv)
{
    volatile uintptr_t nowhere = 8;
    return *(volatile int *)nowhere;
}

static volatile sig_atomic_t last_signal;

static void remember(int signal)
{
    last_signal = signal;
}

/* Tells each signal as it comes, with the terminal's size for SIGWINCH; ends after COUNT. */
static int run_catch(int argc, char **argv)
{
    sigset_t all;
    sigset_t none;
    sigfillset(&all);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    for (int i = 1; i < 32; i++)
        (void)signal(i, remember);
    say("ready");
    for (int left = number(argc, argv, 1); left > 0; left--) {
        struct winsize size = {0};
        (void)sigsuspend(&none);
        if (last_signal == SIGWINCH && ioctl(0, TIOCGWINSZ, &size) == 0)
            say("got %d size %ux%u", last_signal, size.ws_row, size.ws_col);
        else
            say("got %d", last_signal);
    }
    return 0;
}

/* A parent, and a child in a session of its own; both tell the first signal they get. */
static int run_tree(int argc, char **argv)
{
    sigset_t all;
    int got = 0;
    sigfillset(&all);
    sigdelset(&all, SIGCHLD);
    (void)sigprocmask(SIG_SETMASK, &all, NULL);
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        say("child ready");
    }
    (void)sigwait(&all, &got);
    say("%s got %d", child ? "parent" : "child", got);
    if (child)
        (void)waitpid(child, NULL, 0);
    return 0;
}

static int run_ignore(int argc, char **argv)
{
    for (int i = 1; i < 65; i++)
        (void)signal(i, SIG_IGN);
    say("ready");
    pause_for_ever();
}

static int run_stop(int argc, char **argv)
{
    say("ready");
    (void)raise(SIGSTOP);
    say("continued");
    return 0;
}

/* `daemon NAME [stay]`: a grandchild in a session of its own, deaf to everything, named NAME. */
static int run_daemon(int argc, char **argv)
{
    int ready[2];
    char byte = 0;
    if (pipe(ready) < 0)
        return 1;
    pid_t child = fork();
    if (child == 0) {
        (void)setsid();
        if (fork() != 0)
            _exit(0);
        (void)setsid();
        (void)prctl(PR_SET_NAME, argv[1]);
        for (int i = 1; i < 65; i++)
            (void)signal(i, SIG_IGN);
        (void)!write(ready[1], "r", 1);
        pause_for_ever();
    }
    (void)waitpid(child, NULL, 0);
    if (read(ready[0], &byte, 1) != 1)
        return 1;
    say("ready");
    if (argc > 2)
        pause_for_ever();
    return 0;
}

/* A child goes on writing after its parent has ended: waits until it is PID 1's, then says what it was told. */
static int run_linger(int argc, char **argv)
{
    say("parent");
    if (fork() > 0)
        return 3;
    struct timespec tick = {0, 1000000};
    while (getppid() != 1)
        (void)nanosleep(&tick, NULL);
    for (int i = 0; i < 20; i++)
        (void)nanosleep(&tick, NULL);
    say("child");
    return 0;
}

/* The name of a process, or "" when it is gone or a zombie. */
static void read_living(int pid, char name[64])
{
    char path[64];
    char text[256] = "";
    char state = 'Z';
    (void)snprintf(path, sizeof path, "/proc/%d/stat", pid);
    *name = '\0';
    int fd = open(path, O_RDONLY);
    if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
        sscanf(text, "%*d (%63[^)]) %c", name, &state) == 2 && (state == 'Z' || state == 'X'))
        *name = '\0';
    (void)close(fd);
}

/* Names of all processes but PID 1 and this one. */
static int run_ps(int argc, char **argv)
{
    DIR *proc = opendir("/proc");
    for (struct dirent *entry; proc && (entry = readdir(proc));) {
        char name[64];
        int pid = atoi(entry->d_name);
        if (pid <= 1 || pid == getpid())
            continue;
        read_living(pid, name);
        if (*name)
            printf("%s\n", name);
    }
    say("end");
    return 0;
}

/* Counts up in the first 8 bytes of a file, for ever. */
static int run_count(int argc, char **argv)
{
    int fd = open(argv[1], O_RDWR | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, 4096) < 0)
        return 1;
    volatile uint64_t *count = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (count == MAP_FAILED)
        return 2;
    struct timespec tick = {0, 100000};
    say("ready");
    for (;;) {
        ++*count;
        (void)nanosleep(&tick, NULL);
    }
}

/* Until a file begins with the text. */
static int run_await(int argc, char **argv)
{
    struct timespec tick = {0, 1000000};
    for (;;) {
        char text[256] = "";
        int fd = open(argv[1], O_RDONLY);
        if (fd >= 0 && read(fd, text, sizeof text - 1) > 0 &&
            strncmp(text, argv[2], strlen(argv[2])) == 0)
            return 0;
        (void)close(fd);
        (void)nanosleep(&tick, NULL);
    }
}

static int run_tty(int argc, char **argv)
{
    struct winsize size = {0};
    struct stat info;
    int opened = open("/dev/tty", O_RDWR);
    say("isatty %d%d%d", isatty(0), isatty(1), isatty(2));
    say("controlling %d foreground %d", opened >= 0 && isatty(opened), tcgetpgrp(0) == getpgrp());
    (void)ioctl(0, TIOCGWINSZ, &size);
    say("size %ux%u", size.ws_row, size.ws_col);
    const char *name = ttyname(0);
    if (fstat(0, &info) < 0 || !name)
        return 1;
    say("name %.9s owner %u mode %o access %d", name, (unsigned)info.st_uid,
        (unsigned)info.st_mode & 0777, access(name, R_OK | W_OK));
    return 0;
}

static int run_write(int argc, char **argv)
{
    int fd = open(argv[1], O_WRONLY | O_CREAT | O_APPEND, 0644);
    return fd < 0 || dprintf(fd, "%s\n", argv[2]) < 0;
}

static int run_unlink(int argc, char **argv)
{
    return unlink(argv[1]) < 0 ? errno : 0;
}

static int run_mkfifo(int argc, char **argv)
{
    (void)unlink(argv[1]);
    return mkfifo(argv[1], 0666) < 0 ? errno : 0;
}

static int run_hostname(int argc, char **argv)
{
    char name[256] = "";
    (void)gethostname(name, sizeof name);
    say("%s", name);
    return 0;
}

static void first_line(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);
    text[got < 0 ? 0 : got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    (void)close(fd);
}

/* What a program takes for the machine. */
static int run_machine(int argc, char **argv)
{
    static const char *const files[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/cpu.max",
                                        "/sys/fs/cgroup/pids.max", "/sys/devices/system/cpu/online",
                                        "/proc/meminfo"};
    char text[256];
    struct statvfs shared = {0};
    cpu_set_t cpus;

    CPU_ZERO(&cpus);
    (void)sched_getaffinity(0, sizeof cpus, &cpus);
    (void)statvfs("/dev/shm", &shared);
    say("cpus %d", CPU_COUNT(&cpus));
    for (unsigned i = 0; i < sizeof files / sizeof *files; i++) {
        first_line(files[i], text, sizeof text);
        say("%s %s", strrchr(files[i], '/') + 1, text);
    }
    say("shm %llu", (unsigned long long)shared.f_blocks * shared.f_frsize);
    return 0;
}

/* How large the file system is, as df has it. */
static int run_disk(int argc, char **argv)
{
    struct statvfs disk;
    if (statvfs(argv[1], &disk) < 0)
        return errno;
    say("%llu", (unsigned long long)disk.f_blocks * disk.f_frsize);
    return 0;
}

/* Says on how many processors it may run, each time that is another number; ends with so many. */
static int run_watch_cpus(int argc, char **argv)
{
    struct timespec tick = {0, 1000000};
    int said = 0;

    while (said != atoi(argv[1])) {
        cpu_set_t cpus;
        CPU_ZERO(&cpus);
        (void)sched_getaffinity(0, sizeof cpus, &cpus);
        if (CPU_COUNT(&cpus) != said)
            say("cpus %d", said = CPU_COUNT(&cpus));
        (void)nanosleep(&tick, NULL);
    }
    return 0;
}

static int run_move(int argc, char **argv)
{
    return rename(argv[1], argv[2]) < 0 ? errno : 0;
}

static int run_link(int argc, char **argv)
{
    return symlink(argv[1], argv[2]) < 0 ? errno : 0;
}

static const struct command plain_commands[] = {
    {"exit", run_exit, "CODE"},
    {"echo", run_echo, "WORD..."},
    {"both", run_both, "LINE...: odd ones to stdout, even ones to stderr"},
    {"cat", run_cat, "[FILE]"},
    {"sleep", run_sleep, "SECONDS"},
    {"bytes", run_bytes, "COUNT"},
    {"lines", run_lines, "COUNT"},
    {"env", run_env, ""},
    {"sizes", run_sizes, "ANYTHING..."},
    {"cwd", run_cwd, ""},
    {"ids", run_ids, ""},
    {"fds", run_fds, ""},
    {"grep", run_grep, "FILE START..."},
    {"session", run_session, ""},
    {"signals", run_signals, ""},
    {"die", run_die, "SIGNAL"},
    {"crash", run_crash, ""},
    {"catch", run_catch, "COUNT"},
    {"tree", run_tree, ""},
    {"ignore", run_ignore, ""},
    {"stop", run_stop, ""},
    {"daemon", run_daemon, "NAME [stay]"},
    {"linger", run_linger, ""},
    {"ps", run_ps, ""},
    {"count", run_count, "FILE"},
    {"await", run_await, "FILE TEXT"},
    {"tty", run_tty, ""},
    {"write", run_write, "FILE LINE"},
    {"unlink", run_unlink, "FILE"},
    {"mkfifo", run_mkfifo, "FILE"},
    {"hostname", run_hostname, ""},
    {"machine", run_machine, ""},
    {"disk", run_disk, "PATH"},
    {"watch-cpus", run_watch_cpus, "COUNT"},
    {"move", run_move, "FROM TO"},
    {"link", run_link, "TEXT LINK"},
    {0},
};

int main(int argc, char **argv)
{
    const struct command *tables[] = {plain_commands, hungry_commands, hostile_commands,
                                      network_commands};
    for (size_t i = 0; argc > 1 && i < sizeof tables / sizeof *tables; i++) {
        for (const struct command *at = tables[i]; at->name; at++) {
            if (strcmp(at->name, argv[1]) == 0)
                return at->run(argc - 1, argv + 1);
        }
    }
    (void)fprintf(stderr, "guest: no command '%s'\n", argc > 1 ? argv[1] : "");
    return 100;
}
