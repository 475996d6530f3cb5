/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copying and moving inside the box. A copy is made beside its place under a name of its own and renamed when it is whole: one that is
 * given up or fails leaves nothing. Blocks are shared where the file system can (copy_file_range), holes stay holes. Files, directories and
 * links are copied, with mode and times, and with their owner where the user may give files away; others are counted and left out.
 * What the kernel cannot rename (a directory of a lower layer, another file system) is copied and removed.
 */
#include "base/auto.h"
#include "base/fd.h"
#include "init/below.h"
#include "init/files_talk.h"
#include "init/inside.h"
#include "init/walk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#endif
#define PIECE ((size_t)16 << 20) // copied between two signs of life
#define ALIVE_EVERY 16           // entries
#define MAX_ENTRIES 1000000u

struct copy {
    struct talk *talk;
    int to; // directory of the copy
    char to_name[256];
    char beside[FILES_BESIDE]; // its name until it is whole
    // of a directory:
    struct walk walk;
    int root; // the copy
    struct stat root_info;
    int parent;           // directory of the last entry in it, or -1
    size_t parent_length; // its path is the beginning of talk->item_path
};

/* What is copied: an open file or directory, or a link (fd -1). */
struct source {
    int fd;
    struct stat info;
    char target[FILES_MAX_PATH];
};

static int failed(const struct copy *copy, const char *doing, struct error *err)
{
    return error_path(err, "%s '%.200s' to '%.200s'", doing, copy->talk->path, copy->talk->second);
}

// ---- one file ----

static bool is_not_offered(int code)
{
    return code == EXDEV || code == EINVAL || code == ENOSYS || code == EOPNOTSUPP ||
           code == EPERM || code == EBADF;
}

/* Through memory. The bytes that were copied, 0 at the end, -1 with errno. */
static ssize_t copy_piece_plain(struct talk *talk, int from, int to, off_t at, size_t length)
{
    size_t want = length < FILES_MAX_DATA ? length : FILES_MAX_DATA;
    ssize_t got = pread(from, talk->out, want, at);
    if (got <= 0)
        return got;
    for (ssize_t done = 0; done < got;) {
        ssize_t put = pwrite(to, talk->out + done, (size_t)(got - done), at + done);
        if (put < 0)
            return -1;
        done += put;
    }
    return got;
}

static ssize_t copy_piece(struct talk *talk, int from, int to, off_t at, size_t length)
{
    off_t from_at = at, to_at = at;
    ssize_t got = copy_file_range(from, &from_at, to, &to_at, length, 0);
    if (got < 0 && is_not_offered(errno))
        return copy_piece_plain(talk, from, to, at, length);
    return got;
}

/* From `at` up to `end`, or to the end of the file. */
static int copy_stretch(struct copy *copy, int from, int to, off_t at, off_t end, struct error *err)
{
    while (at < end) {
        size_t left = (size_t)(end - at);
        ssize_t got = copy_piece(copy->talk, from, to, at, left < PIECE ? left : PIECE);
        if (got < 0)
            return failed(copy, "copy", err);
        if (got == 0)
            return 0; // cut off meanwhile
        at += got;
        copy->talk->total.bytes += (uint64_t)got;
        if (talk_alive(copy->talk) < 0)
            return TALK_OVER;
    }
    return 0;
}

static int copy_bytes(struct copy *copy, int from, int to, off_t size, struct error *err)
{
    for (off_t at = 0; at < size;) {
        off_t data = lseek(from, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO)
            break; // holes up to the end
        if (data < 0)
            data = at; // no file system to ask about holes
        off_t hole = lseek(from, data, SEEK_HOLE);
        if (hole <= data || hole > size)
            hole = size;
        int result = copy_stretch(copy, from, to, data, hole, err);
        if (result < 0)
            return result;
        at = hole;
    }
    return ftruncate(to, size) < 0 ? failed(copy, "copy", err) : 0;
}

/* Of a file, directory or link; what the user may not do is left as it is. */
static void set_owner_and_times(int dir, const char *name, const struct stat *info, int flags)
{
    struct timespec times[2] = {info->st_atim, info->st_mtim};

    (void)fchownat(dir, name, info->st_uid, info->st_gid, flags); // only root can give files away
    (void)utimensat(dir, name, times, flags);
}

static mode_t safe_mode(const struct stat *info)
{
    return info->st_mode & (S_ISDIR(info->st_mode) ? 01777 : 0777); // set-id bits are not copied
}

static int copy_file(struct copy *copy, int from, const struct stat *info, int dir,
                     const char *name, struct error *err)
{
    autofd to = inside_openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, 0);
    if (to < 0)
        return failed(copy, "copy", err);
    int result = copy_bytes(copy, from, to, info->st_size, err);
    if (result < 0)
        return result;
    set_owner_and_times(to, "", info, AT_EMPTY_PATH);
    return fchmod(to, safe_mode(info)) < 0 ? failed(copy, "set the mode of the copy of", err) : 0;
}

static int copy_link(struct copy *copy, const char *target, const struct stat *info, int dir,
                     const char *name, struct error *err)
{
    if (symlinkat(target, dir, name) < 0)
        return failed(copy, "copy", err);
    set_owner_and_times(dir, name, info, AT_SYMLINK_NOFOLLOW);
    return 0;
}

// ---- a directory ----

/* The directory in the copy that the entry of the walk goes to. */
static int find_parent(struct copy *copy, struct error *err)
{
    const char *path = copy->walk.path;
    char *kept = copy->talk->item_path;
    size_t length = below_parent_length(path);

    if (copy->parent >= 0 && copy->parent_length == length && memcmp(kept, path, length) == 0)
        return 0;
    closep(&copy->parent);
    memcpy(kept, path, length);
    copy->parent_length = length;
    copy->parent = below_open(copy->root, path, length, false);
    return copy->parent < 0 ? failed(copy, "copy", err) : 0;
}

/* When all is in it. */
static void finish_directory(int fd, const struct stat *info)
{
    set_owner_and_times(fd, "", info, AT_EMPTY_PATH);
    (void)inside_chmod(fd, safe_mode(info));
    struct timespec times[2] = {info->st_atim, info->st_mtim};
    (void)utimensat(fd, "", times, AT_EMPTY_PATH);
}

static int leave_directory(struct copy *copy, struct error *err)
{
    struct walk *walk = &copy->walk;
    struct stat info;

    if (find_parent(copy, err) < 0)
        return -1;
    autofd fd = inside_openat(copy->parent, walk_name(walk), O_PATH | O_DIRECTORY | O_NOFOLLOW, 0,
                              RESOLVE_NO_SYMLINKS);
    if (fd >= 0 && fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW) == 0)
        finish_directory(fd, &info);
    return 0;
}

static int copy_directory(struct copy *copy, const struct stat *info, struct error *err)
{
    struct walk *walk = &copy->walk;

    if (info->st_dev == copy->root_info.st_dev && info->st_ino == copy->root_info.st_ino)
        return error_set(err, ERROR_INVALID, "'%.200s' cannot be copied into itself",
                         copy->talk->path);
    if (mkdirat(copy->parent, walk_name(walk), 0700) < 0)
        return failed(copy, "copy", err);
    if (strlen(walk->path) + 257 < FILES_MAX_RECORD_PATH && walk_enter(walk) == 0)
        return 0;
    copy->talk->total.skipped++;
    return leave_directory(copy, err);
}

static int copy_opened(struct copy *copy, struct error *err)
{
    struct walk *walk = &copy->walk;
    struct error ignored;
    struct stat info;
    autofd fd = inside_openat(walk_dir(walk), walk_name(walk), O_RDONLY | O_NOFOLLOW, 0,
                              RESOLVE_NO_SYMLINKS);
    if (fd < 0 || inside_check(fd, S_IFREG, walk->path, &info, &ignored) < 0) {
        copy->talk->total.skipped++;
        return 0;
    }
    return copy_file(copy, fd, &info, copy->parent, walk_name(walk), err);
}

static int copy_entry(struct copy *copy, struct error *err)
{
    struct walk *walk = &copy->walk;
    struct talk *talk = copy->talk;
    struct files_item item;
    struct stat info;

    if (fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return 0; // gone meanwhile
    if (++talk->total.items > MAX_ENTRIES)
        return error_set(err, ERROR_LIMIT, "there are more than %u files in '%.300s'", MAX_ENTRIES,
                         talk->path);
    if (find_parent(copy, err) < 0)
        return -1;
    switch (info.st_mode & S_IFMT) {
    case S_IFREG:
        return copy_opened(copy, err);
    case S_IFDIR:
        return copy_directory(copy, &info, err);
    case S_IFLNK:
        talk_describe(talk, walk_dir(walk), walk_name(walk), walk->path, &info, &item);
        return copy_link(copy, item.target, &info, copy->parent, walk_name(walk), err);
    default:
        talk->total.skipped++;
        return 0;
    }
}

static int copy_walk(struct copy *copy, struct error *err)
{
    for (unsigned count = 1;; count++) {
        enum walk_step step = walk_next(&copy->walk);
        if (step == WALK_FAILED)
            return failed(copy, "copy", err);
        if (step == WALK_END)
            return 0;
        int result = step == WALK_ENTRY ? copy_entry(copy, err) : leave_directory(copy, err);
        if (result < 0)
            return result;
        if (count % ALIVE_EVERY == 0 && talk_alive(copy->talk) < 0)
            return TALK_OVER;
    }
}

static int copy_tree(struct copy *copy, struct source *source, struct error *err)
{
    if (mkdirat(copy->to, copy->beside, 0700) < 0)
        return failed(copy, "copy", err);
    copy->root = inside_openat(copy->to, copy->beside, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0,
                               RESOLVE_NO_SYMLINKS);
    if (copy->root < 0 || fstat(copy->root, &copy->root_info) < 0 ||
        walk_init(&copy->walk, take_fd(source->fd), false) < 0)
        return failed(copy, "copy", err);
    int result = copy_walk(copy, err);
    if (result == 0)
        finish_directory(copy->root, &source->info);
    return result;
}

// ---- both ----

static int make_copy(struct copy *copy, struct source *source, struct error *err)
{
    switch (source->info.st_mode & S_IFMT) {
    case S_IFREG:
        return copy_file(copy, source->fd, &source->info, copy->to, copy->beside, err);
    case S_IFDIR:
        return copy_tree(copy, source, err);
    default:
        return copy_link(copy, source->target, &source->info, copy->to, copy->beside, err);
    }
}

static int put_in_place(struct copy *copy, struct error *err)
{
    unsigned flags = copy->talk->flags & FILES_EXCLUSIVE ? RENAME_NOREPLACE : 0;
    if (syscall(SYS_renameat2, copy->to, copy->beside, copy->to, copy->to_name, flags) < 0)
        return failed(copy, "copy", err);
    return 0;
}

/* Before anything is copied for nothing. */
static int check_place(const struct copy *copy, const struct source *source, struct error *err)
{
    struct stat info;
    if (fstatat(copy->to, copy->to_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0;
    if (info.st_dev == source->info.st_dev && info.st_ino == source->info.st_ino)
        return error_set(err, ERROR_CONFLICT, "'%.200s' and '%.200s' are the same file",
                         copy->talk->path, copy->talk->second);
    errno = copy->talk->flags & FILES_EXCLUSIVE                       ? EEXIST
            : S_ISDIR(info.st_mode) && !S_ISDIR(source->info.st_mode) ? EISDIR
            : !S_ISDIR(info.st_mode) && S_ISDIR(source->info.st_mode) ? ENOTDIR
                                                                      : 0;
    return errno ? failed(copy, "copy", err) : 0;
}

static int copy_source(struct copy *copy, struct source *source, struct error *err)
{
    struct error ignored;

    if (check_place(copy, source, err) < 0)
        return -1;
    if (files_name_beside(copy->beside) < 0)
        return error_sys(err, "find a name for the copy");
    int result = make_copy(copy, source, err);
    if (result == 0)
        result = put_in_place(copy, err);
    if (result < 0)
        (void)files_remove_tree(NULL, copy->to, copy->beside, &ignored); // best effort
    closep(&copy->parent);
    closep(&copy->root);
    walk_clear(&copy->walk);
    return result;
}

static int open_source(int dir, const char *path, int nofollow, struct source *source,
                       struct error *err)
{
    autofd place = inside_openat(dir, path, O_PATH | nofollow, 0, 0);
    if (place < 0)
        return error_path(err, "open " INSIDE_SHOWN, path);
    if (inside_check(place, 0, path, &source->info, err) < 0)
        return -1;
    if (S_ISLNK(source->info.st_mode)) {
        ssize_t got = readlinkat(place, "", source->target, sizeof source->target - 1);
        if (got <= 0)
            return error_path(err, "open " INSIDE_SHOWN, path);
        source->target[got] = '\0';
        return 0;
    }
    bool is_directory = S_ISDIR(source->info.st_mode);
    source->fd = inside_open(dir, path, O_RDONLY | nofollow | (is_directory ? O_DIRECTORY : 0),
                             is_directory ? S_IFDIR : S_IFREG, &source->info, err);
    return source->fd < 0 ? -1 : 0;
}

int files_do_copy(struct talk *talk, struct error *err)
{
    struct copy copy = {.talk = talk, .root = -1, .parent = -1};
    struct source source = {.fd = -1};

    if (open_source(talk->base, talk->path, 0, &source, err) < 0)
        return -1;
    autofd to =
        inside_parent(talk->base, talk->second, talk->flags & FILES_PARENTS, copy.to_name, err);
    copy.to = to;
    int result = to < 0 ? -1 : copy_source(&copy, &source, err);
    closep(&source.fd);
    return result;
}

/* What cannot be renamed. The original goes when the copy stands. */
static int move_by_copy(struct talk *talk, int from, const char *from_name, int to,
                        const char *to_name, struct error *err)
{
    struct copy copy = {.talk = talk, .to = to, .root = -1, .parent = -1};
    struct source source = {.fd = -1};

    memcpy(copy.to_name, to_name, strlen(to_name) + 1);
    if (open_source(from, from_name, O_NOFOLLOW, &source, err) < 0)
        return -1;
    int result = copy_source(&copy, &source, err);
    closep(&source.fd);
    if (result == 0 && talk->total.skipped)
        return error_set(err, ERROR_CONFLICT,
                         "'%.200s' was copied to '%.200s' and stays, as %llu of its entries could "
                         "not be copied",
                         talk->path, talk->second, (unsigned long long)talk->total.skipped);
    return result == 0 ? files_remove_tree(talk, from, from_name, err) : result;
}

int files_do_rename(struct talk *talk, struct error *err)
{
    char from_name[256], to_name[256];
    bool is_made = talk->flags & FILES_PARENTS;
    unsigned flags = talk->flags & FILES_EXCLUSIVE ? RENAME_NOREPLACE : 0;
    autofd from = inside_parent(talk->base, talk->path, false, from_name, err);
    if (from < 0)
        return -1;
    autofd to = inside_parent(talk->base, talk->second, is_made, to_name, err);
    if (to < 0)
        return -1;
    if (syscall(SYS_renameat2, from, from_name, to, to_name, flags) == 0)
        return 0;
    if (errno == EXDEV)
        return move_by_copy(talk, from, from_name, to, to_name, err);
    return error_path(err, "rename '%.200s' to '%.200s'", talk->path, talk->second);
}
