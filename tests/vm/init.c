/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of the test machine (see run): loads modules, mounts the root disk and the control groups asked for, runs each
 * test program, and powers off. Speaks over the second serial port, where no kernel message comes between: the programs'
 * own TAP, and lines that begin with '@'.
 * Asked by the kernel command line: cgroups=v2|v1|hybrid programs=NAME,NAME... without=WORD,WORD...
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROGRAM_SECONDS 150
#define GRACE_TRIES 50 // of 100 ms
#define MAX_WORDS 32

static void power_off(void)
{
    (void)fflush(stdout);
    sync();
    (void)reboot(RB_POWER_OFF);
    for (;;)
        pause();
}

static void give_up(const char *what)
{
    printf("@broken %s: %s\n", what, strerror(errno));
    power_off();
}

static void must_mount(const char *type, const char *source, const char *target,
                       const char *options)
{
    (void)mkdir(target, 0755); // is there, or the mount says what is wrong
    if (mount(source, target, type, 0, options) < 0)
        give_up(target);
}

static void pause_briefly(void)
{
    struct timespec tenth = {.tv_nsec = 100000000};
    (void)nanosleep(&tenth, NULL);
}

/* /modules names the files in the order in which they need each other. */
static void load_modules(void)
{
    char line[256];
    FILE *list = fopen("/modules", "re");
    if (!list)
        give_up("/modules");
    while (fgets(line, sizeof line, list)) {
        line[strcspn(line, "\n")] = '\0';
        int fd = open(line, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || (syscall(SYS_finit_module, fd, "", 0) < 0 && errno != EEXIST))
            give_up(line);
        (void)close(fd);
    }
    (void)fclose(list);
}

/* pivot_root cannot leave the initramfs, so the machine moves to a disk, as every machine does. */
static void enter_root_disk(void)
{
    for (int tries = 0; access("/dev/vda", F_OK) < 0 && tries < GRACE_TRIES; tries++)
        pause_briefly();
    must_mount("ext4", "/dev/vda", "/disk", "prjquota");
    static const char *const kept[] = {"dev", "proc", "sys"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        char from[16], to[32];
        (void)snprintf(from, sizeof from, "/%s", kept[i]);
        (void)snprintf(to, sizeof to, "/disk/%s", kept[i]);
        if (mount(from, to, NULL, MS_MOVE, NULL) < 0)
            give_up(to);
    }
    if (chdir("/disk") < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0 ||
        chdir("/") < 0)
        give_up("enter the root disk");
}

static void mount_v1(void)
{
    static const char *const hierarchies[] = {"memory", "pids", "freezer", "cpuset"};
    must_mount("tmpfs", "tmpfs", "/sys/fs/cgroup", "mode=755");
    must_mount("cgroup", "cgroup", "/sys/fs/cgroup/cpu,cpuacct", "cpu,cpuacct");
    for (size_t i = 0; i < sizeof hierarchies / sizeof *hierarchies; i++) {
        char path[64];
        (void)snprintf(path, sizeof path, "/sys/fs/cgroup/%s", hierarchies[i]);
        must_mount("cgroup", "cgroup", path, hierarchies[i]);
    }
}

static void mount_cgroups(const char *mode)
{
    if (strcmp(mode, "v2") == 0) {
        must_mount("cgroup2", "cgroup2", "/sys/fs/cgroup", NULL);
        return;
    }
    mount_v1();
    if (strcmp(mode, "hybrid") == 0)
        must_mount("cgroup2", "cgroup2", "/sys/fs/cgroup/unified", NULL);
}

static void open_port(void)
{
    int fd = open("/dev/ttyS1", O_WRONLY | O_NOCTTY);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        give_up("/dev/ttyS1");
    if (fd > STDERR_FILENO)
        (void)close(fd);
}

static void bring_up(const char *cgroups)
{
    must_mount("devtmpfs", "devtmpfs", "/dev", NULL);
    open_port();
    must_mount("proc", "proc", "/proc", NULL);
    must_mount("sysfs", "sysfs", "/sys", NULL);
    load_modules();
    enter_root_disk();
    must_mount("devpts", "devpts", "/dev/pts", "mode=620,ptmxmode=666");
    must_mount("tmpfs", "tmpfs", "/dev/shm", NULL);
    must_mount("tmpfs", "tmpfs", "/run", NULL);
    mount_cgroups(cgroups);
}

static unsigned count_lines(const char *path)
{
    unsigned count = 0;
    int c;
    FILE *file = fopen(path, "re");
    if (!file)
        give_up(path);
    while ((c = getc(file)) != EOF)
        count += c == '\n';
    (void)fclose(file);
    return count;
}

/* A process that is neither us nor the kernel's: it has a command line. Writes its name to `name`. */
static bool find_stray_process(char name[1024])
{
    DIR *proc = opendir("/proc");
    bool is_found = false;
    for (struct dirent *entry; !is_found && (entry = readdir(proc));) {
        char path[300];
        int pid = atoi(entry->d_name);
        (void)snprintf(path, sizeof path, "/proc/%d/cmdline", pid);
        int fd = pid > 1 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        ssize_t got = fd < 0 ? 0 : read(fd, name, 1023);
        name[got > 0 ? got : 0] = '\0';
        is_found = got > 0;
        if (fd >= 0)
            (void)close(fd);
    }
    (void)closedir(proc);
    return is_found;
}

/* A group below any hierarchy's root: at start there is none. */
static bool find_stray_cgroup(const char *root, int depth, char name[1024])
{
    DIR *dir = opendir(root);
    bool is_found = false;
    for (struct dirent *entry; dir && !is_found && (entry = readdir(dir));) {
        char path[1024];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
            snprintf(path, sizeof path, "%s/%s", root, entry->d_name) >= (int)sizeof path)
            continue;
        is_found = depth == 0 || find_stray_cgroup(path, depth - 1, name);
        if (depth == 0)
            memcpy(name, path, sizeof path);
    }
    if (dir)
        (void)closedir(dir);
    return is_found;
}

/* So that what one program left is not held against the next. */
static void remove_cgroup(const char *path)
{
    DIR *dir = opendir(path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char below[1024];
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.' &&
            snprintf(below, sizeof below, "%s/%s", path, entry->d_name) < (int)sizeof below)
            remove_cgroup(below);
    }
    if (dir)
        (void)closedir(dir);
    (void)rmdir(path);
}

static void reap(void)
{
    while (waitpid(-1, NULL, WNOHANG) > 0)
        continue;
}

static void report_leftovers(const char *cgroups, unsigned mounts_before)
{
    char name[1024];
    int depth = strcmp(cgroups, "v2") == 0 ? 0 : 1; // of the hierarchies' roots
    for (int tries = 0; find_stray_process(name) && tries < GRACE_TRIES; tries++) {
        pause_briefly();
        reap();
    }
    if (find_stray_process(name))
        printf("@left the process '%s'\n", name);
    for (int i = 0; i < 10 && find_stray_cgroup("/sys/fs/cgroup", depth, name); i++) {
        printf("@left the cgroup '%s'\n", name);
        remove_cgroup(name);
    }
    unsigned mounts = count_lines("/proc/self/mountinfo");
    if (mounts != mounts_before)
        printf("@left %u mounts where %u were\n", mounts, mounts_before);
}

/* What the program is not to run: tests for worlds of control groups that are not this machine's, and those in without=. */
static void add_unwanted(const char *cgroups, const char *argv[MAX_WORDS])
{
    static const char *const worlds[] = {"v2", "v1", "hybrid"};
    static char words[MAX_WORDS][128];
    char *without = getenv("without");
    size_t n = 0;
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        if (strcmp(worlds[i], cgroups) != 0)
            (void)snprintf(words[n++], sizeof *words, "!_on_%s", worlds[i]);
    }
    for (char *word = strtok(without, ","); word && n < MAX_WORDS - 2; word = strtok(NULL, ","))
        (void)snprintf(words[n++], sizeof *words, "!%s", word);
    for (size_t i = 0; i < n; i++)
        argv[i + 1] = words[i];
}

static void exec_program(const char *name, const char *cgroups)
{
    const char *argv[MAX_WORDS] = {name};
    char path[256];
    add_unwanted(cgroups, argv);
    sigset_t none;
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)snprintf(path, sizeof path, "/tests/%s", name);
    (void)setsid();
    execv(path, (char *const *)argv);
    fprintf(stderr, "cannot execute %s: %s\n", path, strerror(errno));
    _exit(127);
}

/* Waits for `child`, reaping whatever else ends; kills all when time is up. Returns its wait status, -1 for late. */
static int wait_for(pid_t child)
{
    struct timespec now, left = {.tv_sec = 1};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    time_t end = now.tv_sec + PROGRAM_SECONDS;
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    while (now.tv_sec < end) {
        int status;
        for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
            if (pid == child)
                return status;
        }
        (void)sigtimedwait(&chld, NULL, &left);
        (void)clock_gettime(CLOCK_MONOTONIC, &now);
    }
    return -1;
}

static double now(void)
{
    struct timespec time;
    (void)clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void run_program(const char *name, const char *cgroups)
{
    double began = now();
    unsigned mounts = count_lines("/proc/self/mountinfo");
    printf("@begin %s\n", name);
    (void)fflush(stdout);
    pid_t child = fork();
    if (child == 0)
        exec_program(name, cgroups);
    int status = wait_for(child);
    printf("\n");
    if (status == -1)
        printf("@end late\n");
    else if (WIFEXITED(status))
        printf("@end exit %d\n", WEXITSTATUS(status));
    else
        printf("@end signal %d\n", WTERMSIG(status));
    printf("@took %.1f\n", now() - began);
    report_leftovers(cgroups, mounts);
    (void)kill(-1, SIGKILL);
    reap();
}

int main(void)
{
    const char *cgroups = getenv("cgroups");
    char *programs = getenv("programs");
    sigset_t chld;
    sigemptyset(&chld);
    sigaddset(&chld, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &chld, NULL);
    if (!cgroups || !programs)
        give_up("cgroups= and programs= are not on the kernel's command line");
    bring_up(cgroups);
    (void)setenv("PATH", "/usr/sbin:/usr/bin:/sbin:/bin", 1);
    (void)setenv("HOME", "/root", 1);
    (void)setenv("TMPDIR", "/tmp", 1);
    (void)setenv("BURROW_IN_VM", "1", 1);
    printf("@up\n");
    for (char *name = strtok(programs, ","); name; name = strtok(NULL, ","))
        run_program(name, cgroups);
    printf("@done\n");
    power_off();
}
