/* SPDX-License-Identifier: Apache-2.0 */
/* File idioms; see fd.h. */
#include "base/fd.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int fd_write_all(int fd, const void *data, size_t length)
{
    const char *at = data;
    while (length > 0) {
        ssize_t wrote = write(fd, at, length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0)
            return -1;
        at += wrote;
        length -= (size_t)wrote;
    }
    return 0;
}

ssize_t fd_read_full(int fd, void *data, size_t length)
{
    size_t have = 0;
    while (have < length) {
        ssize_t got = read(fd, (char *)data + have, length - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

int fd_write_knob(int dir_fd, const char *path, const char *text, struct error *err)
{
    autofd fd = openat(dir_fd, path, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", path);
    size_t length = strlen(text);
    ssize_t wrote = write(fd, text, length);
    if (wrote < 0 || (size_t)wrote != length)
        return error_sys(err, "write '%s' to %s", text, path);
    return 0;
}

int fd_write_knob_number(int dir_fd, const char *path, uint64_t number, struct error *err)
{
    char text[24];
    (void)snprintf(text, sizeof text, "%" PRIu64, number);
    return fd_write_knob(dir_fd, path, text, err);
}

int fd_read_knob(int dir_fd, const char *path, char *text, size_t size, struct error *err)
{
    autofd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open %s", path);
    ssize_t got = fd_read_full(fd, text, size - 1);
    if (got < 0)
        return error_sys(err, "read %s", path);
    if (got > 0 && text[got - 1] == '\n')
        got--;
    text[got] = '\0';
    return 0;
}

int fd_read_knob_number(int dir_fd, const char *path, uint64_t *out, struct error *err)
{
    char text[64];
    char *end = NULL;

    if (fd_read_knob(dir_fd, path, text, sizeof text, err) < 0)
        return -1;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (errno || end == text || *end)
        return error_set(err, ERROR_SYSTEM, "%s holds '%s', not a number", path, text);
    *out = number;
    return 0;
}

int fd_read_buffer(int fd, struct buffer *buffer, struct error *err)
{
    char chunk[16384];
    for (;;) {
        ssize_t got = read(fd, chunk, sizeof chunk);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return error_sys(err, "read");
        if (got == 0)
            return 0;
        if (buffer_add(buffer, chunk, (size_t)got, err) < 0)
            return -1;
    }
}

int fd_make_dirs(const char *path, mode_t mode, struct error *err)
{
    char partial[4096];
    size_t length = strlen(path);

    if (length == 0 || length >= sizeof partial)
        return error_set(err, ERROR_INVALID, "path '%.64s' is empty or too long", path);
    memcpy(partial, path, length + 1);
    for (char *slash = partial + 1;; slash++) {
        if (*slash != '/' && *slash != '\0')
            continue;
        bool is_last = *slash == '\0';
        *slash = '\0';
        if (mkdir(partial, mode) < 0 && errno != EEXIST)
            return error_sys(err, "make directory '%s'", partial);
        if (is_last)
            return 0;
        *slash = '/';
    }
}

static int remove_entries(int fd, dev_t device, struct error *err);

static int remove_below(int dir_fd, const char *name, dev_t device, struct error *err)
{
    if (unlinkat(dir_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return error_sys(err, "remove '%s'", name);
    autofd fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open '%s'", name);
    struct stat info;
    if (fstat(fd, &info) < 0)
        return error_sys(err, "look at '%s'", name);
    if (device && info.st_dev != device)
        return error_set(err, ERROR_CONFLICT, "remove '%s': something is mounted there", name);
    if (remove_entries(fd, info.st_dev, err) < 0)
        return -1;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return error_sys(err, "remove directory '%s'", name);
    return 0;
}

static int remove_entries(int fd, dev_t device, struct error *err)
{
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return error_sys(err, "copy a file descriptor");
    autodir dir = fdopendir(copy);
    if (!dir) {
        (void)close(copy);
        return error_sys(err, "list a directory");
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry)
            return errno ? error_sys(err, "list a directory") : 0;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (remove_below(fd, entry->d_name, device, err) < 0)
            return -1;
    }
}

int fd_remove_tree(int dir_fd, const char *name, struct error *err)
{
    return remove_below(dir_fd, name, 0, err);
}

int fd_replace_file(int dir_fd, const char *name, const void *data, size_t length, mode_t mode,
                    struct error *err)
{
    char temporary[300];
    (void)snprintf(temporary, sizeof temporary, ".%s.%d.new", name, (int)getpid());
    autofd fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return error_sys(err, "create '%s'", name);
    if (fd_write_all(fd, data, length) < 0 || fsync(fd) < 0 ||
        renameat(dir_fd, temporary, dir_fd, name) < 0) {
        error_sys(err, "write '%s'", name);
        (void)unlinkat(dir_fd, temporary, 0);
        return -1;
    }
    return 0;
}
