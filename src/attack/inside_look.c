/* SPDX-License-Identifier: Apache-2.0 */
/* Attacks that look around: what of the host, of PID 1 and of others can be seen or opened from a box. */
#include "attack/attacker.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>

static void hello(int argc, char **argv)
{
    (void)puts("hello");
}

/* argv: the user it must be, whatever the program file says. */
static void who_am_i(int argc, char **argv)
{
    uid_t want = argc > 0 ? (uid_t)atoi(argv[0]) : 0, real, effective, saved;
    (void)getresuid(&real, &effective, &saved);
    if (real != want || effective != want || saved != want)
        complain("it became user %u (%u, %u)", effective, real, saved);
    if (getegid() != want)
        complain("it became group %u", getegid());
}

/* argv: a word that each value begins with which was put there for it. Nothing else of a caller came along. */
static void environment(int argc, char **argv)
{
    static const char *const own[] = {"HOME=", "USER=", "PATH="};
    for (char **at = environ; *at; at++) {
        bool is_own = false;
        for (size_t i = 0; i < COUNT(own); i++)
            is_own |= strncmp(*at, own[i], strlen(own[i])) == 0;
        if (!is_own)
            complain("the variable %.40s is there", *at);
    }
}

/* Just 0, 1 and 2, and a working directory below the root. */
static void inherited(int argc, char **argv)
{
    char cwd[4096] = "";
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

/* argv: the bounding set; what this user has of it. */
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

/* Every file of the kernel's that opens for writing. The process's own do not count. */
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

/* A file of the kernel's that steers the whole machine: shut, read-only or not there. */
static void check_unwritable(const char *path)
{
    int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0)
        complain("%s opens for writing", path);
    else if (errno != EACCES && errno != EROFS && errno != ENOENT)
        complain("%s: %s", path, strerror(errno));
    if (fd >= 0)
        (void)close(fd);
}

static void proc_write(int argc, char **argv)
{
    list_writable("/proc", 0);
    check_unwritable("/proc/sys/kernel/hostname");
    check_unwritable("/proc/sys/user/max_user_namespaces");
    check_unwritable("/proc/sys/vm/overcommit_memory");
}

static void core_pattern(int argc, char **argv)
{
    check_unwritable("/proc/sys/kernel/core_pattern");
    check_unwritable("/proc/sys/kernel/modprobe");
    check_unwritable("/proc/sys/fs/binfmt_misc/register");
}

static void sysrq(int argc, char **argv)
{
    check_unwritable("/proc/sysrq-trigger");
    check_unwritable("/proc/sys/kernel/sysrq");
}

static bool is_of_type(const char *path, uint32_t magic)
{
    struct statfs info;
    return statfs(path, &info) == 0 && (uint32_t)info.f_type == magic;
}

/* What is below /sys is not the kernel's: names that would start a helper outside are not there. */
static void sys_write(int argc, char **argv)
{
    static const char *const places[] = {"/sys", "/sys/kernel", "/sys/fs", "/sys/class",
                                         "/sys/bus"};
    for (size_t i = 0; i < COUNT(places); i++) {
        if (is_of_type(places[i], 0x62656572))
            complain("%s is the kernel's sysfs", places[i]);
    }
    REFUSED(open("/sys/kernel/uevent_helper", O_WRONLY | O_CLOEXEC), ENOENT);
    REFUSED(open("/sys/kernel/debug", O_RDONLY | O_CLOEXEC), ENOENT);
    REFUSED(open("/sys/kernel/security", O_RDONLY | O_CLOEXEC), ENOENT);
    REFUSED(open("/sys/power/state", O_WRONLY | O_CLOEXEC), ENOENT);
}

/* CVE-2022-0492: a control group of version 1 that one may write has a program for the kernel to start. */
static void cgroup_escape(int argc, char **argv)
{
    if (is_of_type("/sys/fs/cgroup", 0x27e0eb) || is_of_type("/sys/fs/cgroup", 0x63677270))
        complain("/sys/fs/cgroup is the kernel's");
    if (strstr(read_text("/proc/self/mountinfo"), " - cgroup"))
        complain("a control group file system is mounted");
    if (strstr(read_text("/proc/self/cgroup"), ".."))
        complain("/proc/self/cgroup shows groups above its own");
    REFUSED(open("/sys/fs/cgroup/release_agent", O_WRONLY | O_CLOEXEC), ENOENT);
    REFUSED(open("/sys/fs/cgroup/memory/release_agent", O_WRONLY | O_CLOEXEC), ENOENT);
    REFUSED(open("/sys/fs/cgroup/rdma/release_agent", O_WRONLY | O_CLOEXEC), ENOENT);
}

/* Nothing of a kernel file system but proc and devpts is mounted, and what is mounted is private. */
static void mount_table(int argc, char **argv)
{
    static char text[1 << 16];
    (void)snprintf(text, sizeof text, "%s", read_text("/proc/self/mountinfo"));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        char *type = strstr(line, " - ");
        static const char *const known[] = {"overlay ", "proc ", "devpts ", "tmpfs ",
                                            "btrfs ",   "xfs ",  "ext4 "};
        bool is_known = false;
        for (size_t i = 0; type && i < COUNT(known); i++)
            is_known |= strncmp(type + 3, known[i], strlen(known[i])) == 0;
        // A bind of a runtime shows the machine's own file system, read-only.
        if (!is_known && !strstr(line, " ro,"))
            complain("mounted: %s", line);
        if (strstr(line, " shared:") || strstr(line, " master:"))
            complain("not private: %s", line);
    }
}

/* From a directory held open, up and up, with the own root out of the way. */
static void climb(int argc, char **argv)
{
    struct stat top, here;
    int held = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    WORKS(fstat(held, &top));
    (void)mkdir("/tmp/cell", 0700);
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

/* argv: a text and the path of a file of the host that holds it. By every way up, none leads there. */
static void path_escape(int argc, char **argv)
{
    static const char *const ways[] = {"",
                                       "/../../../../../../../../../..",
                                       "/proc/self/root",
                                       "/proc/self/root/..",
                                       "/proc/self/cwd/../../../../../..",
                                       "/proc/thread-self/root",
                                       "/proc/1/root",
                                       "/proc/1/cwd",
                                       "/proc/1/task/1/root",
                                       "/dev/fd/0/../../../../..",
                                       "/dev/../../..",
                                       "/tmp/up/up/up/up"};
    if (argc < 2)
        return;
    (void)symlink("..", "/tmp/up");
    for (size_t i = 0; i < COUNT(ways); i++) {
        char path[4096];
        (void)snprintf(path, sizeof path, "%s%s", ways[i], argv[1]);
        if (strstr(read_text(path), argv[0]))
            complain("a file of the host is read at %s", path);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0)
            complain("%s opens for writing", path);
        if (fd >= 0)
            (void)close(fd);
    }
}

/* argv: texts that only the host knows. No file that tells of mounts, groups and names has them. */
static void host_paths(int argc, char **argv)
{
    static const char *const files[] = {
        "/proc/self/mountinfo", "/proc/self/mounts", "/proc/self/mountstats",
        "/proc/1/mountinfo",    "/proc/self/cgroup", "/proc/1/cgroup",
        "/proc/1/cmdline",      "/proc/swaps",       "/proc/cmdline",
        "/proc/net/unix",       "/proc/locks",       "/proc/self/environ",
        "/etc/hostname",        "/etc/hosts",        "/proc/sys/kernel/hostname"};
    for (size_t i = 0; i < COUNT(files); i++) {
        const char *text = read_text(files[i]);
        for (int j = 0; j < argc; j++) {
            if (*argv[j] && strstr(text, argv[j]))
                complain("'%s' is in %s", argv[j], files[i]);
        }
    }
}

static void host_information(int argc, char **argv)
{
    static const char *const shut[] = {"/proc/kcore",
                                       "/proc/kmsg",
                                       "/proc/timer_list",
                                       "/proc/sched_debug",
                                       "/proc/slabinfo",
                                       "/proc/vmallocinfo",
                                       "/proc/pagetypeinfo",
                                       "/proc/kpagecount",
                                       "/proc/kpageflags",
                                       "/proc/kallsyms",
                                       "/proc/modules",
                                       "/proc/keys",
                                       "/proc/key-users",
                                       "/proc/cmdline",
                                       "/proc/interrupts",
                                       "/proc/diskstats",
                                       "/proc/partitions",
                                       "/proc/swaps",
                                       "/proc/locks",
                                       "/proc/mtd",
                                       "/proc/mdstat",
                                       "/sys/kernel/notes",
                                       "/sys/firmware/acpi/tables/DSDT",
                                       "/sys/kernel/debug/sched/debug"};
    for (size_t i = 0; i < COUNT(shut); i++) {
        if (*read_text(shut[i]))
            complain("%s tells something", shut[i]);
    }
}

static const char *const first_shut[] = {
    "environ", "auxv",  "maps",       "smaps",     "mem",         "pagemap", "numa_maps", "io",
    "syscall", "stack", "clear_refs", "map_files", "personality", "timers",  "fdinfo"};
static const char *const first_links[] = {"exe",    "cwd",     "root",  "fd/3",
                                          "ns/mnt", "ns/user", "ns/net"};

/* /proc/1 tells nothing that its owner alone may know. */
static void first_read(int argc, char **argv)
{
    char path[64], target[256];
    for (size_t i = 0; i < COUNT(first_shut); i++) {
        (void)snprintf(path, sizeof path, "/proc/1/%s", first_shut[i]);
        if (is_readable(path))
            complain("%s is readable", path);
    }
    for (size_t i = 0; i < COUNT(first_links); i++) {
        (void)snprintf(path, sizeof path, "/proc/1/%s", first_links[i]);
        REFUSED(readlink(path, target, sizeof target), EACCES);
        REFUSED(open(path, O_RDONLY | O_CLOEXEC), EACCES);
        REFUSED(open(path, O_PATH | O_CLOEXEC), EACCES);
    }
    REFUSED(open("/proc/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/task/1/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/map_files", O_RDONLY | O_DIRECTORY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/root/etc/passwd", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(chdir("/proc/1/cwd"), EACCES);
}

/* CVE-2019-5736: the program of PID 1, overwritten or run by a guest. */
static void first_program(int argc, char **argv)
{
    REFUSED(open("/proc/1/mem", O_RDWR | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/exe", O_WRONLY | O_CLOEXEC), EACCES);
    REFUSED(open("/proc/1/exe", O_RDONLY | O_CLOEXEC), EACCES);
    REFUSED(execl("/proc/1/exe", "/proc/1/exe", NULL), EACCES);
}

static bool is_known_device(const struct stat *info)
{
    static const unsigned known[][2] = {{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}};
    for (size_t i = 0; i < COUNT(known); i++) {
        if (info->st_rdev == makedev(known[i][0], known[i][1]))
            return true;
    }
    return major(info->st_rdev) >= 136 && major(info->st_rdev) <= 143; // terminals of its own
}

static void list_devices(const char *dir_path, int depth)
{
    DIR *dir = opendir(dir_path);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char path[4096];
        struct stat info;
        (void)snprintf(path, sizeof path, "%s/%s", dir_path, entry->d_name);
        if (entry->d_name[0] == '.' || lstat(path, &info) < 0)
            continue;
        if (S_ISDIR(info.st_mode) && depth < 4)
            list_devices(path, depth + 1);
        else if (S_ISBLK(info.st_mode) || (S_ISCHR(info.st_mode) && !is_known_device(&info)))
            complain("%s is device %u:%u", path, major(info.st_rdev), minor(info.st_rdev));
    }
    if (dir)
        (void)closedir(dir);
}

static void devices(int argc, char **argv)
{
    static const char *const absent[] = {"/dev/sda",   "/dev/vda",     "/dev/nvme0n1",
                                         "/dev/kvm",   "/dev/fuse",    "/dev/loop-control",
                                         "/dev/loop0", "/dev/net/tun", "/dev/vhost-net",
                                         "/dev/snd",   "/dev/input",   "/dev/mapper/control"};
    list_devices("/dev", 0);
    for (size_t i = 0; i < COUNT(absent); i++)
        REFUSED(open(absent[i], O_RDONLY | O_CLOEXEC), ENOENT);
}

const struct inside_attack inside_look[] = {
    {"hello", hello},
    {"who-am-i", who_am_i},
    {"environment", environment},
    {"inherited", inherited},
    {"rights", rights},
    {"proc-write", proc_write},
    {"core-pattern", core_pattern},
    {"sysrq", sysrq},
    {"sys-write", sys_write},
    {"cgroup-escape", cgroup_escape},
    {"mount-table", mount_table},
    {"climb", climb},
    {"path-escape", path_escape},
    {"host-paths", host_paths},
    {"host-information", host_information},
    {"pid1-read", first_read},
    {"pid1-program", first_program},
    {"devices", devices},
    {0},
};
