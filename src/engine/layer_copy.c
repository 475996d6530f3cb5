/* SPDX-License-Identifier: Apache-2.0 */
/* Copies what a box wrote, whatever it is; see layer_impl.h. */
#include "base/auto.h"
#include "base/mem.h"
#include "engine/layer_impl.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CHUNK (1 << 20)
#define MAX_ATTRIBUTES 65536 // what the kernel gives at most (xattr(7))

bool layer_is_whiteout(const struct stat *info)
{
    return S_ISCHR(info->st_mode) && info->st_rdev == makedev(0, 0);
}

int layer_check_cancelled(const atomic_bool *is_cancelled, struct error *err)
{
    if (!is_cancelled || !atomic_load(is_cancelled))
        return 0;
    return error_refuse(err, ERROR_CANCELLED, "layer", "cancelled");
}

/* Paths */

ssize_t layer_copy_enter(struct layer_copy *copy, const char *name, struct error *err)
{
    size_t length = copy->length;
    size_t more = strlen(name) + (length > 0);
    if (length + more >= sizeof copy->path)
        return error_set(err, ERROR_LIMIT, "a path is longer than %zu bytes", sizeof copy->path);
    (void)snprintf(copy->path + length, sizeof copy->path - length, "%s%s", length ? "/" : "",
                   name);
    copy->length += more;
    return (ssize_t)length;
}

void layer_copy_leave(struct layer_copy *copy, ssize_t length)
{
    copy->length = (size_t)length;
    copy->path[length] = '\0';
}

void layer_copy_clear(struct layer_copy *copy)
{
    layer_links_clear(&copy->links);
}

/* Attributes */

/* Of overlay's own, only these mean something in another place; the others name files of where they were. */
static bool is_worth_copying(const char *name, bool has_marks)
{
    if (strncmp(name, "trusted.overlay.", 16) != 0)
        return strcmp(name, "system.nfs4_acl") != 0 && strncmp(name, "btrfs.", 6) != 0;
    return has_marks && (strcmp(name, LAYER_OPAQUE) == 0 || strcmp(name, LAYER_REDIRECT) == 0);
}

static int copy_attribute(int from_fd, int to_fd, const char *name, char *value, struct error *err)
{
    ssize_t size = fgetxattr(from_fd, name, value, MAX_ATTRIBUTES);
    if (size < 0)
        return errno == ENODATA ? 0 : error_sys(err, "read attribute '%s'", name);
    if (fsetxattr(to_fd, name, value, (size_t)size, 0) < 0)
        return error_sys(err, "write attribute '%s'", name);
    return 0;
}

static int copy_all_attributes(int from_fd, int to_fd, bool has_marks, struct error *err)
{
    char few[512];
    ssize_t size = flistxattr(from_fd, few, sizeof few);
    if (size == 0 || (size < 0 && errno == ENOTSUP))
        return 0;
    autofree char *names = xcalloc(1, MAX_ATTRIBUTES);
    autofree char *value = xcalloc(1, MAX_ATTRIBUTES);
    size = flistxattr(from_fd, names, MAX_ATTRIBUTES);
    if (size < 0)
        return error_sys(err, "list attributes");
    for (const char *at = names; at < names + size; at += strlen(at) + 1) {
        if (is_worth_copying(at, has_marks) && copy_attribute(from_fd, to_fd, at, value, err) < 0)
            return -1;
    }
    return 0;
}

int layer_copy_attributes(int from_fd, int to_fd, const struct stat *info, bool has_marks,
                          struct error *err)
{
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    // the owner first: changing it takes set-id bits and capabilities away
    if (fchown(to_fd, info->st_uid, info->st_gid) < 0 || fchmod(to_fd, info->st_mode & 07777) < 0)
        return error_sys(err, "set owner and mode");
    if (copy_all_attributes(from_fd, to_fd, has_marks, err) < 0)
        return -1;
    return futimens(to_fd, times) < 0 ? error_sys(err, "set times") : 0;
}

/* Contents */

static int copy_span(int from, int to, off_t at, off_t end, char *chunk, struct error *err)
{
    while (at < end) {
        size_t wanted = end - at < CHUNK ? (size_t)(end - at) : CHUNK;
        ssize_t got = pread(from, chunk, wanted, at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_sys(err, "read a file");
        if (got == 0) // it has become shorter
            return 0;
        for (ssize_t done = 0; done < got;) {
            ssize_t wrote = pwrite(to, chunk + done, (size_t)(got - done), at + done);
            if (wrote < 0 && errno != EINTR)
                return error_sys(err, "write a file");
            done += wrote > 0 ? wrote : 0;
        }
        at += got;
    }
    return 0;
}

/* Holes stay holes. */
static int copy_bytes(struct layer_copy *copy, int from, int to, off_t size, struct error *err)
{
    autofree char *chunk = NULL;
    off_t at = 0;

    if (ftruncate(to, size) < 0)
        return error_sys(err, "write a file");
    while (at < size) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            return 0;
        off_t end = data < 0 ? size : lseek(from, data, SEEK_HOLE);
        if (data < 0) // the file system does not know holes
            data = at;
        if (end < 0 || end > size)
            end = size;
        if (data - at > CHUNK * 64 && layer_check_cancelled(copy->is_cancelled, err) < 0)
            return -1;
        if (!chunk)
            chunk = xcalloc(1, CHUNK);
        if (copy_span(from, to, data, end, chunk, err) < 0)
            return -1;
        at = end;
    }
    return 0;
}

/* 1; 0 when there is no regular file of the name any more; -1 with errno. A socket or a whiteout refuses to be opened, with what
 * might also be said of a file, so what it is decides. */
static int open_regular(int from_fd, const char *name, struct stat *info, int *out)
{
    char path[32];
    autofd place = -1;
    autofd fd = openat(from_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0 && (errno == ENXIO || errno == EACCES || errno == ENODEV)) {
        place = openat(from_fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
        if (place >= 0 && fstat(place, info) == 0 && !S_ISREG(info->st_mode))
            return 0;
        (void)snprintf(path, sizeof path, "/proc/self/fd/%d", place);
        fd = place < 0 ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    }
    if (fd < 0)
        return errno == ENOENT || errno == ELOOP ? 0 : -1;
    if (fstat(fd, info) < 0)
        return -1;
    if (!S_ISREG(info->st_mode))
        return 0;
    *out = take_fd(fd);
    return 1;
}

static int copy_file(struct layer_copy *copy, int from_fd, const char *name, int to_fd,
                     struct error *err)
{
    struct stat info;
    autofd from = -1;
    int found = open_regular(from_fd, name, &info, &from);
    if (found <= 0)
        return found < 0 ? error_sys(err, "open a file") : 0;
    autofd to = openat(to_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (to < 0)
        return error_sys(err, "make a file");
    bool is_shared = info.st_size > 0 && !copy->cannot_share && ioctl(to, FICLONE, from) == 0;
    if (!is_shared && info.st_size > 0 && (errno == EOPNOTSUPP || errno == EXDEV))
        copy->cannot_share = true;
    if (!is_shared && copy_bytes(copy, from, to, info.st_size, err) < 0)
        return -1;
    copy->bytes += (uint64_t)info.st_blocks * 512;
    return layer_copy_attributes(from, to, &info, false, err);
}

static int copy_link(int from_fd, const char *name, const struct stat *info, int to_fd,
                     struct error *err)
{
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    char target[4096];
    ssize_t length = readlinkat(from_fd, name, target, sizeof target - 1);

    if (length < 0)
        return errno == ENOENT || errno == EINVAL ? 0 : error_sys(err, "read a link");
    target[length] = '\0';
    if (symlinkat(target, to_fd, name) < 0 ||
        fchownat(to_fd, name, info->st_uid, info->st_gid, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "make a link");
    (void)utimensat(to_fd, name, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

/* Pipes, sockets and whiteouts. Guests cannot make other devices, so there are none. */
static int copy_node(int from_fd, const char *name, const struct stat *info, int to_fd,
                     struct error *err)
{
    const struct timespec times[] = {info->st_atim, info->st_mtim};
    if (!S_ISFIFO(info->st_mode) && !S_ISSOCK(info->st_mode) && !layer_is_whiteout(info))
        return 0;
    if (mknodat(to_fd, name, info->st_mode & (S_IFMT | 0777), info->st_rdev) < 0 ||
        fchownat(to_fd, name, info->st_uid, info->st_gid, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!layer_is_whiteout(info) && fchmodat(to_fd, name, info->st_mode & 07777, 0) < 0))
        return error_sys(err, "make a node");
    (void)utimensat(to_fd, name, times, AT_SYMLINK_NOFOLLOW);
    return 0;
}

int layer_copy_entry(struct layer_copy *copy, int from_fd, const char *name,
                     const struct stat *info, int to_fd, struct error *err)
{
    if (S_ISLNK(info->st_mode))
        return copy_link(from_fd, name, info, to_fd, err);
    if (!S_ISREG(info->st_mode))
        return copy_node(from_fd, name, info, to_fd, err);
    if (info->st_nlink > 1) {
        const char *first = layer_links_meet(&copy->links, info, copy->path);
        if (copy->links.is_full)
            return error_set(err, ERROR_LIMIT, "too many files have several names");
        // the first may have vanished before it was copied: then this one is it
        if (first && linkat(copy->top_fd, first, to_fd, name, 0) == 0)
            return 0;
    }
    return copy_file(copy, from_fd, name, to_fd, err);
}

/* Trees */

static int copy_dir(struct layer_copy *copy, int from_fd, const char *name, int to_fd,
                    unsigned depth, struct error *err);

static int copy_name(struct layer_copy *copy, int from_fd, const char *name, int to_fd,
                     unsigned depth, struct error *err)
{
    struct stat info;
    if (layer_check_cancelled(copy->is_cancelled, err) < 0)
        return -1;
    if (fstatat(from_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "look at a file");
    ssize_t length = layer_copy_enter(copy, name, err);
    if (length < 0)
        return -1;
    int result = S_ISDIR(info.st_mode) ? copy_dir(copy, from_fd, name, to_fd, depth + 1, err)
                                       : layer_copy_entry(copy, from_fd, name, &info, to_fd, err);
    layer_copy_leave(copy, length);
    return result;
}

static int copy_names(struct layer_copy *copy, int from_fd, int to_fd, unsigned depth,
                      struct error *err)
{
    struct layer_names names = {0};
    int result = layer_names_read(&names, from_fd, err);
    for (size_t i = 0; result == 0 && i < names.count; i++)
        result = copy_name(copy, from_fd, names.names[i], to_fd, depth, err);
    layer_names_clear(&names);
    return result;
}

static int copy_dir(struct layer_copy *copy, int from_fd, const char *name, int to_fd,
                    unsigned depth, struct error *err)
{
    struct stat info;

    if (depth > LAYER_MAX_DEPTH)
        return error_set(err, ERROR_LIMIT, "directories are nested deeper than %d",
                         LAYER_MAX_DEPTH);
    autofd from = openat(from_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0;
    if (from < 0 || fstat(from, &info) < 0)
        return error_sys(err, "open a directory");
    if (mkdirat(to_fd, name, 0700) < 0)
        return error_sys(err, "make a directory");
    autofd to = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0)
        return error_sys(err, "open a directory");
    if (copy_names(copy, from, to, depth, err) < 0)
        return -1;
    return layer_copy_attributes(from, to, &info, true, err); // last: filling it changes its times
}

int layer_copy_tree(struct layer_copy *copy, int from_fd, int to_fd, struct error *err)
{
    struct stat info;
    if (fstat(from_fd, &info) < 0)
        return error_sys(err, "look at a directory");
    if (copy_names(copy, from_fd, to_fd, 0, err) < 0)
        return -1;
    return layer_copy_attributes(from_fd, to_fd, &info, true, err);
}
