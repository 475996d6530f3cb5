/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of files; see tree.h. */
#include "runtime/tree.h"

#include "base/fd.h"
#include "base/mem.h"
#include "runtime/digest.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define COPY_MAX (8 << 20)

static bool is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static DIR *open_list(int dir_fd, const char *name)
{
    int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return NULL;
    DIR *dir = fdopendir(fd);
    if (!dir)
        (void)close(fd);
    return dir;
}

// ---- measuring ----

struct measuring {
    struct tree_totals totals;
    char path[PATH_MAX]; // of the entry at hand, below the root
};

static int add_content(int dir_fd, const char *name, struct measuring *m, struct digest *digest,
                       struct error *err)
{
    char chunk[65536];
    autofd fd = openat(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '%s'", m->path);
    for (;;) {
        ssize_t got = fd_read_full(fd, chunk, sizeof chunk);
        if (got < 0)
            return error_sys(err, "read '%s'", m->path);
        if (got == 0)
            return 0;
        digest_add(digest, chunk, (size_t)got);
        m->totals.bytes += (uint64_t)got;
    }
}

static int add_target(int dir_fd, const char *name, struct measuring *m, struct digest *digest,
                      struct error *err)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir_fd, name, target, sizeof target);

    if (length < 0)
        return error_sys(err, "read link '%s'", m->path);
    digest_add(digest, target, (size_t)length);
    return 0;
}

static int measure_dir(int dir_fd, const char *name, struct measuring *m, struct error *err);

static int measure_entry(int dir_fd, const char *name, struct measuring *m, struct error *err)
{
    struct digest digest = {0};
    struct stat info;

    if (fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "look at '%s'", m->path);
    uint32_t facts[3] = {info.st_mode, info.st_uid, info.st_gid};
    digest_add_text(&digest, m->path);
    digest_add(&digest, facts, sizeof facts);
    if (S_ISREG(info.st_mode)) {
        if (add_content(dir_fd, name, m, &digest, err) < 0)
            return -1;
    } else if (S_ISLNK(info.st_mode)) {
        if (add_target(dir_fd, name, m, &digest, err) < 0)
            return -1;
    } else if (!S_ISDIR(info.st_mode) && !(S_ISCHR(info.st_mode) && info.st_rdev == 0)) {
        return error_set(err, ERROR_INVALID,
                         "'%s' is a device, socket or pipe, which no runtime may hold", m->path);
    }
    m->totals.digest += digest_end(&digest);
    m->totals.files++;
    return S_ISDIR(info.st_mode) ? measure_dir(dir_fd, name, m, err) : 0;
}

static int measure_dir(int dir_fd, const char *name, struct measuring *m, struct error *err)
{
    size_t length = strlen(m->path);
    autodir dir = open_list(dir_fd, name);

    if (!dir)
        return error_sys(err, "list '%s'", m->path);
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry && errno)
            return error_sys(err, "list '%s'", m->path);
        if (!entry)
            return 0;
        if (is_dots(entry->d_name))
            continue;
        if (length + strlen(entry->d_name) + 2 > sizeof m->path)
            return error_set(err, ERROR_INVALID, "the path of '%s' is too long", entry->d_name);
        (void)snprintf(m->path + length, sizeof m->path - length, "/%s", entry->d_name);
        if (measure_entry(dirfd(dir), entry->d_name, m, err) < 0)
            return -1;
        m->path[length] = '\0';
    }
}

int tree_measure(int dir_fd, struct tree_totals *out, struct error *err)
{
    autofree struct measuring *m = xnew(struct measuring);

    if (measure_dir(dir_fd, ".", m, err) < 0)
        return -1;
    *out = m->totals;
    return 0;
}

// ---- writing ----

// Makes the missing directories above `path`.
static int make_above(int dir_fd, const char *path, struct error *err)
{
    char partial[PATH_MAX];

    for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
        (void)snprintf(partial, sizeof partial, "%.*s", (int)(slash - path), path);
        if (mkdirat(dir_fd, partial, 0755) < 0 && errno != EEXIST)
            return error_sys(err, "make directory '%s'", partial);
    }
    return 0;
}

static int write_file(int dir_fd, const char *path, mode_t mode, const char *text, size_t length,
                      struct error *err)
{
    (void)unlinkat(dir_fd, path, 0);
    autofd fd = openat(dir_fd, path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return error_sys(err, "create '%s'", path);
    if (fd_write_all(fd, text, length) < 0 || fchmod(fd, mode & 07777) < 0)
        return error_sys(err, "write '%s'", path);
    return 0;
}

static int write_link(int dir_fd, const char *path, const char *target, struct error *err)
{
    (void)unlinkat(dir_fd, path, 0);
    if (symlinkat(target, dir_fd, path) < 0)
        return error_sys(err, "make link '%s'", path);
    return 0;
}

static int write_dir(int dir_fd, const char *path, mode_t mode, struct error *err)
{
    if (mkdirat(dir_fd, path, 0700) < 0 && errno != EEXIST)
        return error_sys(err, "make directory '%s'", path);
    autofd fd = openat(dir_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fchmod(fd, mode & 07777) < 0)
        return error_sys(err, "set the mode of '%s'", path);
    return 0;
}

static int write_entry(int dir_fd, const struct tree_entry *entry, struct error *err)
{
    int result;

    if (make_above(dir_fd, entry->path, err) < 0)
        return -1;
    if (S_ISDIR(entry->mode))
        result = write_dir(dir_fd, entry->path, entry->mode, err);
    else if (S_ISLNK(entry->mode))
        result = write_link(dir_fd, entry->path, entry->text, err);
    else
        result =
            write_file(dir_fd, entry->path, entry->mode, entry->text, strlen(entry->text), err);
    if (result < 0)
        return -1;
    if (fchownat(dir_fd, entry->path, entry->owner, entry->owner, AT_SYMLINK_NOFOLLOW) < 0)
        return error_sys(err, "set the owner of '%s'", entry->path);
    return 0;
}

int tree_write(int dir_fd, const struct tree_entry *entries, struct error *err)
{
    for (; entries->path; entries++)
        if (write_entry(dir_fd, entries, err) < 0)
            return -1;
    return 0;
}

int tree_empty(int dir_fd, const char *path, struct error *err)
{
    autodir dir = open_list(dir_fd, path);

    if (!dir && errno == ENOENT)
        return make_above(dir_fd, path, err) < 0 ? -1 : write_dir(dir_fd, path, 0755, err);
    if (!dir)
        return error_sys(err, "list '%s'", path);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (!is_dots(entry->d_name) && fd_remove_tree(dirfd(dir), entry->d_name, err) < 0)
            return error_wrap(err, "empty '%s'", path);
    return 0;
}

// ---- copying ----

static int copy_file(int from_fd, int to_fd, const char *path, mode_t mode, struct error *err)
{
    autobuffer text = {.maximum = COPY_MAX};
    autofd fd = openat(from_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

    if (fd < 0)
        return error_sys(err, "open '/%s'", path);
    if (fd_read_buffer(fd, &text, err) < 0)
        return error_wrap(err, "copy '/%s'", path);
    const char *data = text.data ? text.data : "";
    if (memmem(data, text.length, "PRIVATE KEY", strlen("PRIVATE KEY")))
        return 0;
    return write_file(to_fd, path, mode & 0755, data, text.length, err);
}

static int copy_link(int from_fd, int to_fd, const char *path, struct error *err)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(from_fd, path, target, sizeof target - 1);

    if (length < 0)
        return error_sys(err, "read link '/%s'", path);
    target[length] = '\0';
    return write_link(to_fd, path, target, err);
}

static int copy_dir(int from_fd, int to_fd, const char *path, struct error *err)
{
    autodir dir = open_list(from_fd, path);

    if (!dir)
        return error_sys(err, "list '/%s'", path);
    if (write_dir(to_fd, path, 0755, err) < 0)
        return -1;
    for (struct dirent *entry; (entry = readdir(dir));) {
        if (is_dots(entry->d_name))
            continue;
        autofree char *below = xasprintf("%s/%s", path, entry->d_name);
        if (tree_copy_public(from_fd, to_fd, below, err) < 0)
            return -1;
    }
    return 0;
}

int tree_copy_public(int from_fd, int to_fd, const char *path, struct error *err)
{
    struct stat info;

    if (fstatat(from_fd, path, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : error_sys(err, "look at '/%s'", path);
    if (make_above(to_fd, path, err) < 0)
        return -1;
    if (S_ISLNK(info.st_mode))
        return copy_link(from_fd, to_fd, path, err);
    if (S_ISDIR(info.st_mode) && (info.st_mode & 0005) == 0005)
        return copy_dir(from_fd, to_fd, path, err);
    if (S_ISREG(info.st_mode) && (info.st_mode & 0004) && info.st_size <= COPY_MAX)
        return copy_file(from_fd, to_fd, path, info.st_mode, err);
    return 0;
}
