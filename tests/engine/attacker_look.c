/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks that look around: what of the host, of PID 1 and of others can be seen from a box. */
#include "attacker.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>

static void hello(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    (void)puts("hello");
}

/* Prints its arguments, one a line, escaped where it must be. */
static void say(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        (void)printf("[%s]\n", argv[i]);
}

static void cat(int argc, char **argv)
{
    for (int i = 0; i < argc; i++)
        (void)fputs(read_text(argv[i]), stdout);
}

static void who(int argc, char **argv)
{
    gid_t groups[64];
    uid_t r, e, s;
    gid_t rg, eg, sg;
    (void)argc;
    (void)argv;
    (void)getresuid(&r, &e, &s);
    (void)getresgid(&rg, &eg, &sg);
    (void)printf("%u %u %u %u %u %u", r, e, s, rg, eg, sg);
    int count = getgroups(COUNT(groups), groups);
    for (int i = 0; i < count; i++)
        (void)printf(" +%u", groups[i]);
    (void)puts("");
}

static void environment(int argc, char **argv)
{
    extern char **environ;
    (void)argc;
    (void)argv;
    for (char **at = environ; *at; at++)
        (void)puts(*at);
}

/* Just 0, 1 and 2, and a working directory below the root. */
static void inherited(int argc, char **argv)
{
    char cwd[4096];
    struct sigaction action;
    sigset_t blocked;

    for (int fd = 3; fd < 70000; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            complain("fd %d is open", fd);
    }
    REFUSED(fchdir(0), ENOTDIR);
    if (!getcwd(cwd, sizeof cwd) || cwd[0] != '/')
        complain("the working directory is '%s'", cwd);
    if (argc > 0 && strcmp(cwd, argv[0]) != 0)
        complain("the working directory is '%s', not '%s'", cwd, argv[0]);
    for (int number = 1; number <= 31; number++) {
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
            complain("signal %d is not at its default", number);
    }
    (void)sigprocmask(SIG_SETMASK, NULL, &blocked);
    for (int number = 1; number <= 31; number++) {
        if (sigismember(&blocked, number) == 1)
            complain("signal %d is blocked", number);
    }
}

static void check_field(const char *status, const char *name, const char *want)
{
    char line[64];
    (void)snprintf(line, sizeof line, "\n%s:\t%s\n", name, want);
    if (!strstr(status, line))
        complain("%s is not %s", name, want);
}

/* argv: the bounding set; what root has of it. */
static void rights(int argc, char **argv)
{
    const char *status = read_text("/proc/self/status");
    struct rlimit core = {7, 7};

    if (argc < 2)
        return;
    check_field(status, "CapInh", "0000000000000000");
    check_field(status, "CapAmb", "0000000000000000");
    check_field(status, "CapBnd", argv[0]);
    check_field(status, "CapPrm", argv[1]);
    check_field(status, "CapEff", argv[1]);
    check_field(status, "NoNewPrivs", "1");
    check_field(status, "Seccomp", "2");
    REFUSED(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, 0, 0, 0), EPERM);
    REFUSED(prctl(PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0), EINVAL);
    if (getrlimit(RLIMIT_CORE, &core) < 0 || core.rlim_cur != 1 || core.rlim_max != 1)
        complain("the core limit is not one byte");
}

static bool is_readable(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, &byte, 1);
    (void)close(fd);
    return got > 0;
}

static bool is_number(const char *name)
{
    return strspn(name, "0123456789") == strlen(name);
}

static void list_readable(const char *dir_path, int depth)
{
    DIR *dir = opendir(dir_path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        struct stat info;
        bool is_process = strcmp(dir_path, "/proc") == 0 && is_number(entry->d_name);
        if (entry->d_name[0] == '.' || is_process)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
        if (lstat(path, &info) < 0 || depth > 12)
            continue;
        if (S_ISDIR(info.st_mode))
            list_readable(path, depth + 1);
        else if (S_ISREG(info.st_mode) && is_readable(path))
            (void)puts(path);
    }
    (void)closedir(dir);
}

/* Every kernel file that gives this user at least one byte. */
static void readable(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    list_readable("/proc", 0);
    list_readable("/sys", 0);
    list_readable("/proc/self", 0);
}

/* Every file of the kernel's that opens for writing. The process's own and what is in the overlay
 * do not count. */
static void list_writable(const char *dir_path, int depth)
{
    DIR *dir = opendir(dir_path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char path[4096];
        struct stat info;
        bool is_process = strcmp(dir_path, "/proc") == 0 && is_number(entry->d_name);
        if (entry->d_name[0] == '.' || is_process)
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
        if (lstat(path, &info) < 0 || depth > 12)
            continue;
        if (S_ISDIR(info.st_mode)) {
            list_writable(path, depth + 1);
            continue;
        }
        int fd = S_ISREG(info.st_mode) ? open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC) : -1;
        if (fd >= 0) {
            complain("%s opens for writing", path);
            (void)close(fd);
        }
    }
    (void)closedir(dir);
}

static void writable(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    list_writable("/proc", 0);
    REFUSED_AS(open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC), EACCES, EROFS);
    REFUSED_AS(open("/proc/sys/kernel/hostname", O_WRONLY | O_CLOEXEC), EACCES, EROFS);
    REFUSED_AS(open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC), EACCES, EROFS);
    REFUSED_AS(open("/proc/sysrq-trigger", O_WRONLY | O_CLOEXEC), EACCES, ENOENT);
    REFUSED(open("/proc/1/oom_score_adj", O_WRONLY | O_CLOEXEC), EACCES);
}

/* Nothing of a kernel file system but proc and devpts is mounted, and no cgroup or sysfs. */
static void mounts(int argc, char **argv)
{
    static char text[1 << 16];
    (void)argc;
    (void)argv;
    (void)snprintf(text, sizeof text, "%s", read_text("/proc/self/mountinfo"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *type = strstr(line, " - ");
        static const char *const known[] = {"overlay ", "proc ", "devpts ", "tmpfs ",
                                            "btrfs ",   "xfs ",  "ext4 "};
        bool is_known = false;
        for (size_t i = 0; type && i < COUNT(known); i++)
            is_known |= strncmp(type + 3, known[i], strlen(known[i])) == 0;
        if (!is_known)
            complain("mounted: %s", line);
        if (strstr(line, " shared:") || strstr(line, " master:"))
            complain("not private: %s", line);
    }
}

static void check_type(const char *path, uint32_t magic)
{
    struct statfs info;
    if (statfs(path, &info) < 0 || (uint32_t)info.f_type != magic)
        complain("%s is not what it must be", path);
}

static void check_device(const char *path, unsigned major, unsigned minor)
{
    struct stat info;
    if (lstat(path, &info) < 0 || !S_ISCHR(info.st_mode) || info.st_rdev != (major << 8 | minor))
        complain("%s is not the device %u:%u", path, major, minor);
}

/* The places every box has are the real ones, whatever the image says they are. */
static void places(int argc, char **argv)
{
    static const char *const dirs[] = {"/proc", "/dev", "/sys", "/tmp", "/run", "/workspace"};
    struct stat info;
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < COUNT(dirs); i++) {
        if (lstat(dirs[i], &info) < 0 || !S_ISDIR(info.st_mode))
            complain("%s is not a directory", dirs[i]);
    }
    check_type("/proc", 0x9fa0);
    check_type("/proc/self", 0x9fa0);
    check_type("/dev/pts", 0x1cd1);
    check_type("/dev/shm", 0x01021994);
    check_device("/dev/null", 1, 3);
    check_device("/dev/zero", 1, 5);
    check_device("/dev/urandom", 1, 9);
    check_device("/dev/tty", 5, 0);
    WORKS(mkdir("/tmp/made", 0700));
    WORKS(mkdir("/run/made", 0700));
    WORKS(mkdir("/workspace/made", 0700));
    WORKS(mkdir("/dev/shm/made", 0700));
    WORKS(mkdir("/sys/made", 0700));
    REFUSED(mkdir("/dev/made", 0700), EROFS);
    REFUSED(mkdir("/proc/made", 0700), ENOENT);
}

/* From a directory held open, up and up, with the own root out of the way. */
static void climb(int argc, char **argv)
{
    struct stat top, here;
    (void)argc;
    (void)argv;
    int held = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    WORKS(fstat(held, &top));
    WORKS(mkdir("/tmp/cell", 0700));
    WORKS(chroot("/tmp/cell"));
    WORKS(fchdir(held));
    for (int i = 0; i < 64; i++)
        WORKS(chdir(".."));
    WORKS(chroot("."));
    WORKS(stat("/", &here));
    if (here.st_dev != top.st_dev || here.st_ino != top.st_ino || access("/l0", F_OK) == 0 ||
        access("/up", F_OK) == 0)
        complain("above the root is another one");
}

/* argv: a directory and its parts, as an attacker would find them. None leads out. */
static void probe(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        int fd = open(argv[i], O_RDONLY | O_NONBLOCK | O_CLOEXEC);
        char text[256];
        ssize_t got = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
        text[got > 0 ? got : 0] = '\0';
        (void)printf("%s: %s\n", argv[i], fd < 0 ? strerror(errno) : text);
        if (fd >= 0)
            (void)close(fd);
    }
}

/* /proc/1 tells nothing that its owner alone may know. */
static void first_process(int argc, char **argv)
{
    static const char *const shut[] = {
        "environ", "auxv",  "maps",       "smaps",     "mem",         "pagemap", "numa_maps", "io",
        "syscall", "stack", "clear_refs", "map_files", "personality", "timers",  "fdinfo",
    };
    static const char *const links[] = {"exe",    "cwd",     "root",  "fd/3",
                                        "ns/mnt", "ns/user", "ns/net"};
    char path[64], target[256];
    (void)argc;
    (void)argv;
    for (size_t i = 0; i < COUNT(shut); i++) {
        (void)snprintf(path, sizeof path, "/proc/1/%s", shut[i]);
        if (is_readable(path))
            complain("%s is readable", path);
    }
    for (size_t i = 0; i < COUNT(links); i++) {
        (void)snprintf(path, sizeof path, "/proc/1/%s", links[i]);
        REFUSED(readlink(path, target, sizeof target), EACCES);
        REFUSED(open(path, O_RDONLY | O_CLOEXEC), EACCES);
        REFUSED(open(path, O_PATH | O_CLOEXEC), EACCES);
    }
    REFUSED(open("/proc/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/task/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/mem", O_RDWR | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/exe", O_WRONLY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/root/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(chdir("/proc/1/cwd"), EACCES);
}

const struct attack look_attacks[] = {
    {"hello", hello},
    {"say", say},
    {"cat", cat},
    {"who", who},
    {"environment", environment},
    {"inherited", inherited},
    {"rights", rights},
    {"readable", readable},
    {"writable", writable},
    {"mounts", mounts},
    {"places", places},
    {"climb", climb},
    {"probe", probe},
    {"first-process", first_process},
    {0},
};
