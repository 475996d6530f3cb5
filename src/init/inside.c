/* SPDX-License-Identifier: Apache-2.0 */
/* Careful opening inside the box; see inside.h. */
#include "init/inside.h"
#include "base/auto.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

#ifndef SYS_openat2
#define SYS_openat2 437
#endif
#ifndef SYS_fchmodat2
#define SYS_fchmodat2 452
#endif
#ifndef MQUEUE_MAGIC
#define MQUEUE_MAGIC 0x19800202
#endif
#ifndef FUSE_CTL_SUPER_MAGIC
#define FUSE_CTL_SUPER_MAGIC 0x65735543
#endif
#ifndef CONFIGFS_MAGIC
#define CONFIGFS_MAGIC 0x62656570
#endif
#ifndef RDTGROUP_SUPER_MAGIC
#define RDTGROUP_SUPER_MAGIC 0x7655821
#endif
#ifndef PID_FS_MAGIC
#define PID_FS_MAGIC 0x50494446
#endif

#define DIR_FLAGS (O_PATH | O_DIRECTORY)

static const uint32_t kernel_file_systems[] = {
    PROC_SUPER_MAGIC,    SYSFS_MAGIC,          CGROUP_SUPER_MAGIC,   CGROUP2_SUPER_MAGIC,
    DEVPTS_SUPER_MAGIC,  DEBUGFS_MAGIC,        TRACEFS_MAGIC,        SECURITYFS_MAGIC,
    BPF_FS_MAGIC,        PSTOREFS_MAGIC,       EFIVARFS_MAGIC,       SELINUX_MAGIC,
    SMACK_MAGIC,         NSFS_MAGIC,           SOCKFS_MAGIC,         PIPEFS_MAGIC,
    ANON_INODE_FS_MAGIC, BINFMTFS_MAGIC,       MQUEUE_MAGIC,         FUSE_CTL_SUPER_MAGIC,
    CONFIGFS_MAGIC,      RDTGROUP_SUPER_MAGIC, BINDERFS_SUPER_MAGIC, PID_FS_MAGIC,
};

int inside_openat(int dir, const char *path, int flags, mode_t mode, uint64_t resolve)
{
    // O_PATH allows few other flags
    int always = flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
    struct open_how how = {
        .flags = (uint64_t)(flags | always),
        .mode = flags & O_CREAT ? mode : 0,
        .resolve = resolve | RESOLVE_NO_MAGICLINKS,
    };
    for (int tries = 0;; tries++) {
        int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof how);
        // EAGAIN: something on the way was renamed meanwhile (openat2(2)); a lease gives it too
        if (fd >= 0 || (errno != EINTR && errno != EAGAIN) || tries == 128)
            return fd;
    }
}

bool inside_is_kernel(int fd)
{
    struct statfs info;
    if (fstatfs(fd, &info) < 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(kernel_file_systems); i++)
        if ((uint32_t)info.f_type == kernel_file_systems[i])
            return true;
    return false;
}

static const char *type_name(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFDIR:
        return "a directory";
    case S_IFREG:
        return "a file";
    case S_IFLNK:
        return "a link";
    case S_IFIFO:
        return "a FIFO";
    case S_IFSOCK:
        return "a socket";
    default:
        return "a device";
    }
}

int inside_check(int fd, mode_t type, const char *path, struct stat *info, struct error *err)
{
    if (fstat(fd, info) < 0)
        return error_path(err, "look at " INSIDE_SHOWN, path);
    if (inside_is_kernel(fd))
        return error_set(err, ERROR_DENIED,
                         INSIDE_SHOWN " is a kernel file; use a command in the sandbox for it",
                         path);
    mode_t is = info->st_mode & S_IFMT;
    if (!type || is == type)
        return 0;
    if (type == S_IFDIR)
        return error_path_code(err, ENOTDIR, "open " INSIDE_SHOWN, path);
    if (is == S_IFDIR)
        return error_path_code(err, EISDIR, "open " INSIDE_SHOWN, path);
    return error_set(err, ERROR_INVALID, INSIDE_SHOWN " is %s, not a file", path, type_name(is));
}

int inside_open(int dir, const char *path, int flags, mode_t type, struct stat *info,
                struct error *err)
{
    int nofollow = flags & O_NOFOLLOW;
    autofd probe = inside_openat(dir, path, O_PATH | nofollow, 0, 0);
    if (probe < 0)
        return error_path(err, "open " INSIDE_SHOWN, path);
    if (inside_check(probe, type, path, info, err) < 0)
        return -1;
    autofd fd = inside_openat(dir, path, flags, 0, 0);
    if (fd < 0)
        return error_path(err, "open " INSIDE_SHOWN, path);
    if (inside_check(fd, type, path, info, err) < 0)
        return -1;
    return take_fd(fd);
}

static int check_place(int fd, const char *path, struct error *err)
{
    struct stat info;
    return inside_check(fd, S_IFDIR, path, &info, err);
}

/* Opens the directory `part` below `at`, making it when it is missing. */
static int step_into(int at, const char *part, const char *path, struct error *err)
{
    int fd = inside_openat(at, part, DIR_FLAGS, 0, 0);
    if (fd < 0 && errno == ENOENT) {
        if (check_place(at, path, err) < 0)
            return -1;
        if (mkdirat(at, part, 0755) < 0 && errno != EEXIST)
            return error_path(err, "make the directories of " INSIDE_SHOWN, path);
        fd = inside_openat(at, part, DIR_FLAGS, 0, 0);
    }
    if (fd < 0)
        return error_path(err, "make the directories of " INSIDE_SHOWN, path);
    return fd;
}

static int make_dirs(int dir, const char *path, struct error *err)
{
    char part[256];
    autofd at = inside_openat(dir, path[0] == '/' ? "/" : ".", DIR_FLAGS, 0, 0);
    if (at < 0)
        return error_path(err, "open the base of " INSIDE_SHOWN, path);
    for (const char *rest = path + strspn(path, "/"); *rest; rest += strspn(rest, "/")) {
        size_t length = strcspn(rest, "/");
        if (length >= sizeof part)
            return error_path_code(err, ENAMETOOLONG, "make the directories of " INSIDE_SHOWN,
                                   path);
        memcpy(part, rest, length);
        part[length] = '\0';
        int next = step_into(at, part, path, err);
        if (next < 0)
            return -1;
        closep(&at);
        at = next;
        rest += length;
    }
    return take_fd(at);
}

/* `shown` is what the caller asked for, for error sentences. */
static int open_dir(int dir, const char *path, bool is_made, const char *shown, struct error *err)
{
    autofd fd = inside_openat(dir, path, DIR_FLAGS, 0, 0);
    if (fd < 0 && is_made && errno == ENOENT) {
        fd = make_dirs(dir, path, err);
        if (fd < 0)
            return -1;
    }
    if (fd < 0)
        return error_path(err, "open " INSIDE_SHOWN, shown);
    if (check_place(fd, shown, err) < 0)
        return -1;
    return take_fd(fd);
}

int inside_dir(int dir, const char *path, bool is_made, struct error *err)
{
    return open_dir(dir, path, is_made, path, err);
}

int inside_parent(int dir, const char *path, bool is_made, char *name, struct error *err)
{
    size_t end = strlen(path), start = 0;
    char above[4096];

    while (end > 0 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/';)
        start--;
    size_t length = end - start;
    if (length > 255 || start >= sizeof above)
        return error_path_code(err, ENAMETOOLONG, "open " INSIDE_SHOWN, path);
    memcpy(name, path + start, length);
    name[length] = '\0';
    if (!length || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return error_set(err, ERROR_INVALID,
                         INSIDE_SHOWN " does not end in the name of a file or directory", path);
    if (start == 0)
        return open_dir(dir, ".", false, path, err);
    memcpy(above, path, start);
    above[start] = '\0';
    return open_dir(dir, above, is_made, path, err);
}

/* Where an fd is reached by its own name, in a proc that really is one. -1 with errno. */
static int open_own_fds(void)
{
    char name[32];
    struct statfs info;
    (void)snprintf(name, sizeof name, "/proc/%d/fd", (int)getpid());
    autofd proc = inside_openat(AT_FDCWD, name, DIR_FLAGS, 0, RESOLVE_NO_SYMLINKS);
    if (proc < 0 || fstatfs(proc, &info) < 0)
        return -1;
    if (info.f_type != PROC_SUPER_MAGIC) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return take_fd(proc);
}

int inside_watch(int inotify, int fd, uint32_t mask)
{
    char name[48];
    autofd proc = open_own_fds();
    if (proc < 0)
        return -1;
    // Guests mount nothing: what stood there a moment ago still does.
    (void)snprintf(name, sizeof name, "/proc/%d/fd/%d", (int)getpid(), fd);
    return inotify_add_watch(inotify, name, mask);
}

/* Kernels before 6.6. */
static int chmod_by_proc(int fd, mode_t mode)
{
    char name[16];
    autofd proc = open_own_fds();
    if (proc < 0)
        return -1;
    (void)snprintf(name, sizeof name, "%d", fd);
    return fchmodat(proc, name, mode, 0);
}

int inside_chmod(int fd, mode_t mode)
{
    if (syscall(SYS_fchmodat2, fd, "", mode, AT_EMPTY_PATH) == 0)
        return 0;
    return errno == ENOSYS ? chmod_by_proc(fd, mode) : -1;
}
