/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of the host in boxes; see host_dir.h. */
#include "engine/host_dir.h"

#include "base/auto.h"
#include "base/path.h"
#include "engine/box.h"
#include "engine/idmap.h"
#include "engine/kernel.h"

#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>

#define OPEN_TRIES 100
#define PATH_DEPTH 2048       // more directories above each other than a path can name
#define FIRST_USER_GROUP 1000 // below are groups of the system: disk, docker, shadow, sudo …

static int tell_open(const char *path, struct error *err)
{
    int code = errno;

    if (code == ELOOP)
        return error_set(err, ERROR_INVALID,
                         "'%.300s' leads over a symbolic link: name the directory itself "
                         "('realpath' tells it)",
                         path);
    if (code == EXDEV)
        return error_set(err, ERROR_INVALID, "'%.300s' leads out of the directory it must be below",
                         path);
    if (code == ENOTDIR)
        return error_set(err, ERROR_INVALID, "'%.300s' is not a directory", path);
    return error_path_code(err, code, "open the directory '%.300s'", path);
}

int host_dir_open(int root_fd, const char *path, const char *shown, int *out, struct error *err)
{
    uint64_t resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    int fd = -1;

    if (root_fd >= 0)
        resolve |= RESOLVE_BENEATH;
    for (unsigned i = 0; i < OPEN_TRIES; i++) { // EAGAIN: something was renamed meanwhile
        fd = sys_openat2(root_fd >= 0 ? root_fd : AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC,
                         0, resolve);
        if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
            break;
    }
    if (fd < 0)
        return tell_open(shown, err);
    *out = fd;
    return 0;
}

/* The next name of a path, behind its slashes: its length; 0 at the end. */
static size_t next_name(const char **path)
{
    *path += strspn(*path, "/");
    return strcspn(*path, "/");
}

static bool is_name(const char *name, size_t length, const char *text)
{
    return strlen(text) == length && strncmp(name, text, length) == 0;
}

int host_dir_check_target(const char *path, struct error *err)
{
    static const char *const kernels[] = {"proc", "sys", "dev"};
    const char *rest = path;

    if (path_check_absolute(path, strlen(path), "the path in the sandbox", err) < 0)
        return -1;
    size_t length = next_name(&rest);
    if (length == 0)
        return error_set(err, ERROR_INVALID,
                         "a host directory cannot be the sandbox's root: choose a path below it");
    for (size_t i = 0; i < ARRAY_SIZE(kernels); i++) {
        if (is_name(rest, length, kernels[i]))
            return error_set(err, ERROR_INVALID,
                             "a host directory cannot be at '%.200s': /%s is the sandbox's own",
                             path, kernels[i]);
    }
    for (; length > 0; rest += length, length = next_name(&rest)) {
        if (is_name(rest, length, ".") || is_name(rest, length, ".."))
            return error_set(err, ERROR_INVALID,
                             "'%.200s' must be a plain path: without '.' and '..'", path);
        if (length > PATH_NAME)
            return error_set(err, ERROR_INVALID, "'%.200s' has a name of more than %d bytes", path,
                             PATH_NAME);
    }
    return 0;
}

bool host_dir_targets_meet(const char *one, const char *other)
{
    for (;;) {
        size_t length = next_name(&one), others = next_name(&other);
        if (length == 0 || others == 0)
            return true;
        if (length != others || strncmp(one, other, length) != 0)
            return false;
        one += length;
        other += length;
    }
}

static bool is_same(int fd, const struct stat *wanted)
{
    struct stat info;
    return fstat(fd, &info) == 0 && info.st_dev == wanted->st_dev && info.st_ino == wanted->st_ino;
}

/* Whether `wanted` is the directory or above it. */
static bool has_above(int fd, const struct stat *wanted)
{
    autofd at = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    struct stat info, last = {0};

    for (unsigned i = 0; i < PATH_DEPTH && at >= 0; i++) {
        if (is_same(at, wanted))
            return true;
        if (fstat(at, &info) < 0 || (info.st_dev == last.st_dev && info.st_ino == last.st_ino))
            return false; // ".." of the root is itself
        last = info;
        int up = openat(at, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        closep(&at);
        at = up;
    }
    return false;
}

int host_dir_refuse(int fd, const char *own, struct error *err)
{
    autofd place = open(own, O_PATH | O_DIRECTORY | O_CLOEXEC);
    struct stat there, here;

    if (place < 0)
        return 0;
    if (fstat(place, &there) < 0 || fstat(fd, &here) < 0)
        return error_sys(err, "look at '%s'", own);
    if (has_above(place, &here) || has_above(fd, &there))
        return error_set(err, ERROR_INVALID,
                         "no sandbox gets a directory that is, holds or lies in '%s', where burrow "
                         "keeps things",
                         own);
    return 0;
}

/* Whether it belongs to a group of the system that is not its owner's own: members may do what the owner may not. */
static bool is_foreign_system_group(const struct stat *info)
{
    struct passwd entry, *found = NULL;
    char text[4096];

    return info->st_gid < FIRST_USER_GROUP &&
           (getpwuid_r(info->st_uid, &entry, text, sizeof text, &found) != 0 || !found ||
            found->pw_gid != info->st_gid);
}

/*
 * Root's own may only be read: a box that writes as root could leave programs there that make anybody root. Groups of the system are
 * rights, too, and a set-group-id program that a box leaves would hand them to everybody.
 */
static int check_owner(const struct box_mount *mount, const struct stat *info, struct error *err)
{
    if (!S_ISDIR(info->st_mode))
        return error_set(err, ERROR_INVALID, "what is to be at '%.200s' is not a directory",
                         mount->box);
    if ((info->st_uid == 0 || info->st_gid == 0) && !mount->is_read_only)
        return error_set(err, ERROR_INVALID,
                         "the directory for '%.200s' belongs to %s, and no sandbox writes as that: "
                         "mount it read-only, or give it to a user and group with chown",
                         mount->box, info->st_uid == 0 ? "root" : "the group of root");
    if (!mount->is_read_only && is_foreign_system_group(info))
        return error_set(
            err, ERROR_INVALID,
            "the directory for '%.200s' belongs to group %u, which is the system's, and no "
            "sandbox writes as that: mount it read-only, or give it to a group of its "
            "owner's with chgrp",
            mount->box, info->st_gid);
    return 0;
}

static int map_owner(int fd, const struct stat *info, uint32_t first_id, struct mount_attr *attr,
                     const char *where, struct error *err)
{
    autofd ids = -1;

    if (idmap_create_one(info->st_uid, info->st_gid, first_id, &ids, err) < 0)
        return -1;
    attr->attr_set |= MOUNT_ATTR_IDMAP;
    attr->userns_fd = (uint64_t)ids;
    if (sys_mount_setattr(fd, "", AT_EMPTY_PATH, attr) == 0)
        return 0;
    if (errno == EINVAL)
        return error_set(err, ERROR_UNAVAILABLE,
                         "the file system of the directory for '%.200s' cannot map ids, which a "
                         "mount needs: ext4, XFS and btrfs can",
                         where);
    return error_sys(err, "map the ids of the directory for '%.200s'", where);
}

int host_dir_clone(const struct box_mount *mount, uint32_t first_id, int *out, struct error *err)
{
    struct mount_attr attr = {
        .attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
        .propagation = MS_PRIVATE, // what the host mounts below it later stays outside
    };
    struct stat info;

    if (fstat(mount->fd, &info) < 0)
        return error_sys(err, "look at the directory for '%.200s'", mount->box);
    if (check_owner(mount, &info, err) < 0)
        return -1;
    autofd fd = sys_open_tree(mount->fd, "", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_EMPTY_PATH);
    if (fd < 0)
        return error_sys(err, "copy the mount of the directory for '%.200s'", mount->box);
    if (mount->is_read_only)
        attr.attr_set |= MOUNT_ATTR_RDONLY;
    if (map_owner(fd, &info, first_id, &attr, mount->box, err) < 0)
        return -1;
    *out = take_fd(fd);
    return 0;
}
