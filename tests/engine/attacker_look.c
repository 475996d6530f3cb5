/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks that look around: what of the host, of PID 1 and of others can be seen from a box. */
#include "attacker.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <termios.h>

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
    for (char **at = environ; *at; at++)
        (void)puts(*at);
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
    list_readable("/proc", 0);
    list_readable("/sys", 0);
    list_readable("/proc/self", 0);
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

/* Runs with a terminal as 0, 1 and 2, its own controlling terminal. */
static void terminal(int argc, char **argv)
{
    static const unsigned long shut[] = {TIOCSTI, TIOCLINUX, TIOCSETD, TIOCCONS};
    static const unsigned long junk[] = {0, 1UL << 32, 0xffffffffUL << 32, 0xdeadbeefUL << 32};
    char letter[] = "x";
    int discipline = 0;
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

static void crash(int argc, char **argv)
{
    (void)raise(SIGSEGV);
}

const struct inside_attack look_attacks[] = {
    {"say", say},           {"cat", cat},
    {"who", who},           {"environment", environment},
    {"readable", readable}, {"places", places},
    {"probe", probe},       {"terminal", terminal},
    {"crash", crash},       {0},
};
