/* SPDX-License-Identifier: Apache-2.0 */
/* File idioms; see fd.h. */
#include "base/fd.h"

#include "base/mem.h"

#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
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

#define BLOCK ((size_t)4096)

static bool is_zero(const char *bytes, size_t length)
{
    return bytes[0] == 0 && memcmp(bytes, bytes + 1, length - 1) == 0;
}

/* From here to the next border of a block. */
static size_t piece_at(uint64_t at, size_t length)
{
    size_t piece = BLOCK - (size_t)(at % BLOCK);
    return piece < length ? piece : length;
}

/* How many bytes from here on are alike: blocks of zeros, or others. */
static size_t measure_run(uint64_t at, const char *bytes, size_t length, bool *has_data)
{
    size_t run = piece_at(at, length);

    *has_data = !is_zero(bytes, run);
    while (run < length) {
        size_t piece = piece_at(at + run, length - run);
        if (is_zero(bytes + run, piece) == *has_data)
            break;
        run += piece;
    }
    return run;
}

ssize_t fd_write_sparse(int fd, uint64_t at, const void *data, size_t length)
{
    const char *bytes = data;
    ssize_t written = 0;

    while (length > 0) {
        bool has_data;
        size_t run = measure_run(at, bytes, length, &has_data);
        if (has_data && (lseek(fd, (off_t)at, SEEK_SET) < 0 || fd_write_all(fd, bytes, run) < 0))
            return -1;
        written += has_data ? (ssize_t)run : 0;
        at += run;
        bytes += run;
        length -= run;
    }
    return written;
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

ssize_t fd_read_full_at(int fd, void *data, size_t length, off_t at)
{
    size_t have = 0;
    while (have < length) {
        ssize_t got = pread(fd, (char *)data + have, length - have, at + (off_t)have);
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

/*
 * Removing a tree that a stranger made: however deep it is, memory stays small, and so does the
 * number of open files. Only the deepest levels are open; one further up is found again by ".." and
 * known by its inode.
 */
enum { OPEN_LEVELS = 32, MAX_RELISTS = 1000 };

struct open_level {
    DIR *dir; // NULL: closed, or never opened
    char name[NAME_MAX +
              1]; // in its parent; empty: forgotten, the parent is listed again and finds it
};

struct removal {
    int dir_fd;
    const char *top; // the only name that is ours, so the only one for messages
    dev_t device;
    ino_t *inodes;                       // of every level
    size_t depth;                        // levels entered
    size_t capacity;                     // of inodes
    unsigned relists;                    // directories that were not empty after all
    struct open_level open[OPEN_LEVELS]; // level i at i % OPEN_LEVELS
};

static struct open_level *level_at(struct removal *removal, size_t level)
{
    return &removal->open[level % OPEN_LEVELS];
}

static void close_level(struct open_level *level)
{
    if (level->dir)
        (void)closedir(level->dir);
    level->dir = NULL;
}

/* Takes fd. */
static int open_listing(struct removal *removal, struct open_level *level, int fd,
                        struct error *err)
{
    level->dir = fdopendir(fd);
    if (level->dir)
        return 0;
    error_sys(err, "list a directory in '%s'", removal->top);
    (void)close(fd);
    return -1;
}

static int enter_directory(struct removal *removal, int parent_fd, const char *name,
                           struct error *err)
{
    struct stat info;
    autofd fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_sys(err, "open a directory in '%s'", removal->top);
    if (fstat(fd, &info) < 0)
        return error_sys(err, "look at a directory in '%s'", removal->top);
    if (removal->depth == 0)
        removal->device = info.st_dev;
    if (info.st_dev != removal->device)
        return error_set(err, ERROR_CONFLICT, "something is mounted in '%s'", removal->top);

    if (removal->depth == removal->capacity) {
        removal->capacity = removal->capacity ? 2 * removal->capacity : 64;
        removal->inodes = xrealloc(removal->inodes, removal->capacity, sizeof *removal->inodes);
    }
    struct open_level *level = level_at(removal, removal->depth);
    close_level(level);
    if (open_listing(removal, level, take_fd(fd), err) < 0)
        return -1;
    if (name != level->name)
        (void)snprintf(level->name, sizeof level->name, "%s", name);
    removal->inodes[removal->depth++] = info.st_ino;
    return 0;
}

static int remove_entry(struct removal *removal, int parent_fd, const char *name, bool is_directory,
                        struct error *err)
{
    if (!is_directory) {
        if (unlinkat(parent_fd, name, 0) == 0 || errno == ENOENT)
            return 0;
        if (errno != EISDIR)
            return error_sys(err, "remove a file in '%s'", removal->top);
    }
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return error_sys(err, "remove a directory in '%s'", removal->top);
    return enter_directory(removal, parent_fd, name, err);
}

static int reopen_parent(struct removal *removal, size_t parent, struct error *err)
{
    struct stat info;
    struct open_level *child = level_at(removal, parent + 1);
    autofd fd = openat(dirfd(child->dir), "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_sys(err, "open a parent directory in '%s'", removal->top);
    if (info.st_dev != removal->device || info.st_ino != removal->inodes[parent])
        return error_set(err, ERROR_CONFLICT, "'%s' is being changed by somebody else",
                         removal->top);
    struct open_level *level = level_at(removal, parent);
    level->name[0] = '\0';
    return open_listing(removal, level, take_fd(fd), err);
}

/* The current directory has been listed to its end: it goes, and the one above is current again. */
static int leave_directory(struct removal *removal, struct error *err)
{
    size_t current = removal->depth - 1;
    struct open_level *level = level_at(removal, current);
    struct open_level *above = current > 0 ? level_at(removal, current - 1) : NULL;

    if (above && !above->dir && reopen_parent(removal, current - 1, err) < 0)
        return -1;
    close_level(level);
    removal->depth--;
    if (above && !level->name[0])
        return 0;
    int parent_fd = above ? dirfd(above->dir) : removal->dir_fd;
    const char *name = above ? level->name : removal->top;
    if (unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if ((errno != ENOTEMPTY && errno != EEXIST) || ++removal->relists > MAX_RELISTS)
        return error_sys(err, "remove a directory in '%s'", removal->top);
    return enter_directory(removal, parent_fd, name, err);
}

static int remove_levels(struct removal *removal, struct error *err)
{
    while (removal->depth > 0) {
        DIR *dir = level_at(removal, removal->depth - 1)->dir;
        errno = 0;
        struct dirent *entry = readdir(dir);
        if (!entry && errno)
            return error_sys(err, "list a directory in '%s'", removal->top);
        if (!entry) {
            if (leave_directory(removal, err) < 0)
                return -1;
            continue;
        }
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (remove_entry(removal, dirfd(dir), entry->d_name, entry->d_type == DT_DIR, err) < 0)
            return -1;
    }
    return 0;
}

int fd_remove_tree(int dir_fd, const char *name, struct error *err)
{
    struct removal removal = {.dir_fd = dir_fd, .top = name};

    int result = remove_entry(&removal, dir_fd, name, false, err);
    if (result == 0)
        result = remove_levels(&removal, err);
    for (size_t i = 0; i < OPEN_LEVELS; i++)
        close_level(&removal.open[i]);
    free(removal.inodes);
    return result;
}

int fd_replace_file(int dir_fd, const char *name, const void *data, size_t length, mode_t mode,
                    struct error *err)
{
    char temporary[300];
    (void)snprintf(temporary, sizeof temporary, ".%s.%d.new", name, (int)getpid());
    autofd fd =
        openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
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
