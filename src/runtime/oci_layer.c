/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks one layer of an image; see oci_layer.h. */
#include "runtime/oci_layer.h"

#include "archive/unpacker.h"
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/layer_impl.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#define HIDES ".wh."             // before the name of what is not there any more
#define HIDES_ALL ".wh..wh..opq" // all that lies below the directory it is in
#define HIDES_NOTHING ".wh..wh." // other names of a file system of old, which mean nothing here
#define TIMEOUT_MS 60000         // without a word from burrow-archive
#define LOOK_EVERY 64            // entries between looks at the cancel fd
#define MAX_DEPTH 200            // of directories: less than what is read of a stack of layers

struct unpacking {
    const struct oci_layer_task *task;
    struct unpacker *unpacker;
    int root_fd;
    char parent[PATH_MAX]; // that parent_fd is of; "" for the root
    int parent_fd;         // -1: none is known
    uint8_t piece[FILES_MAX_FRAME];
};

static int refuse(const char *path, const char *why, struct error *err)
{
    return error_refuse(err, ERROR_REFUSED, "layer", "'%.300s' in a layer %s", path, why);
}

/* What the layer's own names led to is its fault; a full disk, or a broken one, is not. */
static int failed(const char *what, const char *path, struct error *err)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return error_set(err, ERROR_NO_SPACE, "the disk is full: %s '%.300s' of a layer", what,
                         path);
    if (errno == ENAMETOOLONG || errno == ELOOP || errno == ENOTDIR || errno == EMLINK ||
        errno == EXDEV)
        return error_refuse(err, ERROR_REFUSED, "layer", "%s '%.300s' of a layer: %s", what, path,
                            strerror(errno));
    return error_sys(err, "%s '%.300s' of a layer", what, path);
}

// ---- where things go ----

/* Links are followed as if the layer were the whole file system: nothing leads out of it. */
static int open_inside(const struct unpacking *u, const char *path)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_XDEV};

    return (int)syscall(SYS_openat2, u->root_fd, *path ? path : ".", &how, sizeof how);
}

static bool is_hidden(int dir_fd, const char *name)
{
    struct stat info;
    return fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && layer_is_whiteout(&info);
}

static int make_opaque(int dir_fd, const char *path, struct error *err)
{
    return fsetxattr(dir_fd, LAYER_OPAQUE, "y", 1, 0) < 0 ? failed("mark", path, err) : 0;
}

/* A directory that was not there; where the name was hidden, nothing below shows through. */
static int make_dir(int parent_fd, const char *name, const char *path, int *out, struct error *err)
{
    bool was_hidden = is_hidden(parent_fd, name);

    if (was_hidden && unlinkat(parent_fd, name, 0) < 0)
        return failed("replace", path, err);
    if (mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
        return failed("make", path, err);
    autofd fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return failed("open", path, err);
    if (was_hidden && make_opaque(fd, path, err) < 0)
        return -1;
    *out = take_fd(fd);
    return 0;
}

/* The directories above an entry that the layer did not name before. */
static int make_above(const struct unpacking *u, const char *path, int *out, struct error *err)
{
    char partial[PATH_MAX];
    autofd at = open_inside(u, "");

    for (size_t end = 0; at >= 0 && path[end];) {
        size_t start = end + (end > 0);
        end = start + strcspn(path + start, "/");
        (void)snprintf(partial, sizeof partial, "%.*s", (int)end, path);
        int next = open_inside(u, partial);
        if (next < 0 && (errno == ENOENT || errno == ENOTDIR)) {
            const char *name = partial + start;
            struct stat info;
            if (fstatat(at, name, &info, AT_SYMLINK_NOFOLLOW) == 0 && !layer_is_whiteout(&info))
                return refuse(path, "lies below what is no directory", err);
            if (make_dir(at, name, partial, &next, err) < 0)
                return -1;
        }
        closep(&at);
        at = next;
    }
    if (at < 0)
        return failed("open", path, err);
    *out = take_fd(at);
    return 0;
}

static void forget_parent(struct unpacking *u)
{
    closep(&u->parent_fd);
    u->parent_fd = -1;
}

/* Opens the directory that `path` lies in, and tells the last part of it. The fd is kept for the next: no entry removes what it lies in. */
static int open_parent(struct unpacking *u, const char *path, const char **name, struct error *err)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    unsigned depth = 0;

    for (const char *at = path; (at = strchr(at, '/')); at++)
        depth++;
    if (length >= sizeof u->parent || depth > MAX_DEPTH)
        return refuse(path, "has too long a name", err);
    *name = slash ? slash + 1 : path;
    if (u->parent_fd >= 0 && strlen(u->parent) == length && memcmp(u->parent, path, length) == 0)
        return 0;
    forget_parent(u);
    (void)snprintf(u->parent, sizeof u->parent, "%.*s", (int)length, path);
    u->parent_fd = open_inside(u, u->parent);
    if (u->parent_fd >= 0)
        return 0;
    if (errno != ENOENT)
        return failed("open", u->parent, err);
    return make_above(u, u->parent, &u->parent_fd, err);
}

/* Makes room under a name. A directory may stay where `keeps_dir`. 1 when it does. */
static int make_room(struct unpacking *u, const char *name, const char *path, bool keeps_dir,
                     bool *was_hidden, struct error *err)
{
    struct stat info;

    *was_hidden = false;
    if (fstatat(u->parent_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : failed("look at", path, err);
    *was_hidden = layer_is_whiteout(&info);
    if (S_ISDIR(info.st_mode) && keeps_dir)
        return 1;
    if (!S_ISDIR(info.st_mode))
        return unlinkat(u->parent_fd, name, 0) < 0 ? failed("replace", path, err) : 0;
    *was_hidden = true; // what it hid stays hidden
    return fd_remove_tree(u->parent_fd, name, err);
}

// ---- what goes there ----

static int put_attributes(struct unpacking *u, int fd, const char *path, struct error *err)
{
    size_t count;
    const struct unpacker_attribute *attributes = unpacker_attributes(u->unpacker, &count);

    for (size_t i = 0; i < count; i++) {
        if (fsetxattr(fd, attributes[i].name, attributes[i].value, attributes[i].size, 0) == 0)
            continue;
        // what the kernel finds wrong with a value, or the file system has no room for, is left out
        if (errno != EINVAL && errno != E2BIG && errno != ERANGE && errno != ENOTSUP &&
            errno != ENOSPC && errno != EPERM)
            return failed("set an attribute of", path, err);
    }
    return 0;
}

/* Owner before mode, since a change of it drops set-id bits; attributes after both for the same reason. */
static int put_facts(struct unpacking *u, int fd, const struct files_item *item, struct error *err)
{
    const struct timespec times[2] = {
        {.tv_nsec = UTIME_OMIT},
        {.tv_sec = item->mtime_ns / 1000000000, .tv_nsec = item->mtime_ns % 1000000000},
    };

    if (fchown(fd, item->uid, item->gid) < 0 || fchmod(fd, item->mode & 07777) < 0)
        return failed("set the owner of", item->path, err);
    if (put_attributes(u, fd, item->path, err) < 0)
        return -1;
    if (item->mtime_ns >= 0)
        (void)futimens(fd, times); // a time that the file system cannot have is left out
    return 0;
}

static int put_dir(struct unpacking *u, const char *name, const struct files_item *item,
                   struct error *err)
{
    bool was_hidden;
    int is_there = make_room(u, name, item->path, true, &was_hidden, err);
    autofd fd = -1;

    if (is_there < 0 || make_dir(u->parent_fd, name, item->path, &fd, err) < 0)
        return -1;
    if (was_hidden && make_opaque(fd, item->path, err) < 0)
        return -1;
    return put_facts(u, fd, item, err);
}

static int put_content(struct unpacking *u, int fd, const struct files_item *item,
                       struct error *err)
{
    struct pollfd cancel = {.fd = u->task->cancel_fd, .events = POLLIN};

    for (uint64_t left = item->size; left;) {
        ssize_t got = unpacker_fill(u->unpacker, u->piece, sizeof u->piece, err);
        if (got < 0)
            return -1;
        if (fd_write_all(fd, u->piece, (size_t)got) < 0)
            return failed("write", item->path, err);
        left -= (uint64_t)got;
        if (item->size > (64 << 20) && poll(&cancel, 1, 0) > 0)
            return error_set(err, ERROR_GONE, "cancelled");
    }
    return 0;
}

static int put_file(struct unpacking *u, const char *name, const struct files_item *item,
                    struct error *err)
{
    bool was_hidden;

    if (make_room(u, name, item->path, false, &was_hidden, err) < 0)
        return -1;
    autofd fd =
        openat(u->parent_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return failed("make", item->path, err);
    return put_content(u, fd, item, err) < 0 ? -1 : put_facts(u, fd, item, err);
}

static int put_link(struct unpacking *u, const char *name, const struct files_item *item,
                    struct error *err)
{
    bool was_hidden;

    if (make_room(u, name, item->path, false, &was_hidden, err) < 0)
        return -1;
    if (symlinkat(item->target, u->parent_fd, name) < 0 ||
        fchownat(u->parent_fd, name, item->uid, item->gid, AT_SYMLINK_NOFOLLOW) < 0)
        return failed("make", item->path, err);
    return 0;
}

/* To another file of the same layer; no link on the way to it is the layer's last word, as for all other names. */
static int put_hard_link(struct unpacking *u, const char *name, const struct files_item *item,
                         struct error *err)
{
    const char *slash = strrchr(item->target, '/');
    autofree char *above = xstrndup(item->target, slash ? (size_t)(slash - item->target) : 0);
    const char *last = slash ? slash + 1 : item->target;
    struct stat info, old;
    bool was_hidden;

    autofd fd = strlen(above) < PATH_MAX ? open_inside(u, above) : -1;
    if (fd < 0 || fstatat(fd, last, &info, AT_SYMLINK_NOFOLLOW) < 0 || layer_is_whiteout(&info))
        return refuse(item->path, "is a hard link to what is not in the layer before it", err);
    if (S_ISDIR(info.st_mode))
        return refuse(item->path, "is a hard link to a directory", err);
    if (fstatat(u->parent_fd, name, &old, AT_SYMLINK_NOFOLLOW) == 0 && old.st_ino == info.st_ino)
        return 0; // itself, or there already
    if (make_room(u, name, item->path, false, &was_hidden, err) < 0)
        return -1;
    return linkat(fd, last, u->parent_fd, name, 0) < 0 ? failed("link", item->path, err) : 0;
}

// ---- what is hidden ----

/* What the layer itself has under the name stays; a directory of its own then begins anew. */
static int hide(struct unpacking *u, const char *name, const char *path, struct error *err)
{
    struct stat info;

    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return refuse(path, "hides what cannot be hidden", err);
    if (fstatat(u->parent_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
        if (errno != ENOENT)
            return failed("look at", path, err);
        return mknodat(u->parent_fd, name, S_IFCHR, makedev(0, 0)) < 0 ? failed("hide", path, err)
                                                                       : 0;
    }
    if (!S_ISDIR(info.st_mode))
        return 0;
    autofd fd = openat(u->parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return fd < 0 ? failed("open", path, err) : make_opaque(fd, path, err);
}

static int put_item(struct unpacking *u, const struct files_item *item, struct error *err)
{
    const char *name = "";

    if (open_parent(u, item->path, &name, err) < 0)
        return -1;
    if (strcmp(name, HIDES_ALL) == 0)
        return make_opaque(u->parent_fd, item->path, err);
    if (strncmp(name, HIDES_NOTHING, strlen(HIDES_NOTHING)) == 0)
        return 0;
    if (strncmp(name, HIDES, strlen(HIDES)) == 0)
        return hide(u, name + strlen(HIDES), item->path, err);
    if (item->is_hard_link)
        return put_hard_link(u, name, item, err);
    if (S_ISDIR(item->mode))
        return put_dir(u, name, item, err);
    return S_ISLNK(item->mode) ? put_link(u, name, item, err) : put_file(u, name, item, err);
}

/* Bytes of what is no file of its own: markers may have some. */
static int drop_content(struct unpacking *u, uint64_t left, struct error *err)
{
    while (left) {
        ssize_t got = unpacker_fill(u->unpacker, u->piece, sizeof u->piece, err);
        if (got < 0)
            return -1;
        left -= (uint64_t)got;
    }
    return 0;
}

static bool is_marker(const char *path)
{
    const char *slash = strrchr(path, '/');
    return strncmp(slash ? slash + 1 : path, HIDES, strlen(HIDES)) == 0;
}

static int put_all(struct unpacking *u, struct error *err)
{
    struct pollfd cancel = {.fd = u->task->cancel_fd, .events = POLLIN};
    struct files_item item;

    for (unsigned seen = 0;; seen++) {
        int more = unpacker_next(u->unpacker, &item, err);
        if (more <= 0)
            return more;
        if (seen % LOOK_EVERY == 0 && poll(&cancel, 1, 0) > 0)
            return error_set(err, ERROR_GONE, "cancelled");
        // the next frame is received where this one is
        autofree char *path = xstrdup(item.path);
        autofree char *target = xstrdup(item.target);
        item.path = path;
        item.target = target;
        if (put_item(u, &item, err) < 0)
            return -1;
        if (is_marker(path) && drop_content(u, item.is_hard_link ? 0 : item.size, err) < 0)
            return -1;
    }
}

int oci_layer_unpack(const struct oci_layer_task *task, int blob_fd, int dir_fd,
                     struct oci_layer_report *report, struct error *err)
{
    const struct archive_task archive = {
        .program = task->program,
        .format = ARCHIVE_LAYER,
        .max_bytes = task->max_bytes,
        .max_entries = task->max_entries,
        .timeout_ms = TIMEOUT_MS,
    };
    autoptr(unpacker) unpacker = NULL;
    autofree struct unpacking *u = xnew(struct unpacking);

    u->task = task;
    u->root_fd = dir_fd;
    u->parent_fd = -1;
    if (unpacker_open(&archive, blob_fd, &unpacker, err) < 0)
        return -1;
    u->unpacker = unpacker;
    int result = put_all(u, err);
    forget_parent(u);
    if (result < 0)
        return -1;
    report->left_out += unpacker_total(unpacker)->skipped;
    report->has_strangers |= unpacker_total(unpacker)->is_truncated != 0;
    return 0;
}
