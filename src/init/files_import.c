/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacking a stream of records below a directory. A record's path is plain (no "..", not absolute)
 * and is walked without following any link, so nothing lands outside, whatever links the stream or
 * a guest plants. Files, directories, links and hard links within are made; devices, FIFOs and
 * sockets are refused. Set-id bits are dropped, directories stay open to their owner so that what
 * follows can be put in, what stands in a file's place is replaced when all of the file has come.
 */
#include "base/auto.h"
#include "base/fd.h"
#include "init/below.h"
#include "init/files_talk.h"
#include "init/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

#define BELOW (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS)
#define REPLACE_TRIES 16 // somebody else makes the same name again

struct import {
    struct talk *talk;
    int root;
    int parent;                // directory of the last record, or -1
    size_t parent_length;      // its path is the beginning of talk->item_path
    int file;                  // being filled, or -1
    char beside[FILES_BESIDE]; // its name until it is whole, where something stood; ""
    uint64_t left;             // bytes still to come for it
    bool has_holes;
    struct files_item item;
};

static int failed(const struct import *import, const char *doing, struct error *err)
{
    if (errno == ELOOP)
        return error_set(err, ERROR_DENIED, "%s '%.300s': a link stands in the way below '%.300s'",
                         doing, import->item.path, import->talk->path);
    return error_path(err, "%s '%.300s' below '%.300s'", doing, import->item.path,
                      import->talk->path);
}

/* Opens the record's directory, unless the last record had the same. Copies its path. */
static int find_parent(struct import *import, const char *path, struct error *err)
{
    char *kept = import->talk->item_path;
    size_t length = below_parent_length(path);
    bool is_same =
        import->parent >= 0 && import->parent_length == length && memcmp(kept, path, length) == 0;

    memcpy(kept, path, strlen(path) + 1);
    import->item.path = kept;
    if (is_same)
        return 0;
    closep(&import->parent);
    import->parent = below_open(import->root, kept, length, true);
    import->parent_length = length;
    if (import->parent < 0)
        return failed(import, "make the directories of", err);
    if (inside_is_kernel(import->parent)) {
        closep(&import->parent);
        errno = EPERM;
        return failed(import, "make", err);
    }
    return 0;
}

static uint32_t safe_mode(const struct import *import)
{
    return import->item.mode & (S_ISDIR(import->item.mode) ? 01777 : 0777);
}

static int set_owner(const struct import *import, int fd, const char *name, int flags)
{
    if (!(import->talk->flags & FILES_OWNERS))
        return 0;
    return fchownat(fd, name, import->item.uid, import->item.gid, flags);
}

static int set_time(const struct import *import, int fd, const char *name, int flags)
{
    int64_t seconds = import->item.mtime_ns / 1000000000, rest = import->item.mtime_ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = seconds, .tv_nsec = rest}};
    return utimensat(fd, name, times, flags);
}

static int import_dir(struct import *import, struct error *err)
{
    const char *name = below_name(import->item.path);
    uint32_t mode = safe_mode(import) | 0700;
    if (mkdirat(import->parent, name, mode) < 0 && errno != EEXIST)
        return failed(import, "make directory", err);
    autofd fd = inside_openat(import->parent, name, O_PATH | O_DIRECTORY, 0, BELOW);
    if (fd < 0)
        return failed(import, "make directory", err);
    if (inside_is_kernel(fd)) // a mount of the box: it stays as it is
        return 0;
    if (set_owner(import, fd, "", AT_EMPTY_PATH) < 0 || inside_chmod(fd, mode) < 0)
        return failed(import, "set owner and mode of", err);
    if (import->talk->flags & FILES_OWNERS)
        (void)set_time(import, fd, "", AT_EMPTY_PATH); // lasts if nothing comes into it afterwards
    return 0;
}

/* Runs `make` until it finds its place free, clearing it each time. */
static int replace(struct import *import, int (*make)(struct import *, const char *name))
{
    const char *name = below_name(import->item.path);
    for (int tries = 0; tries < REPLACE_TRIES; tries++) {
        if (make(import, name) == 0)
            return 0;
        if (errno != EEXIST)
            return -1;
        if (unlinkat(import->parent, name, 0) < 0 && errno != ENOENT)
            return -1;
    }
    errno = EEXIST;
    return -1;
}

static int make_link(struct import *import, const char *name)
{
    return symlinkat(import->item.target, import->parent, name);
}

static int import_link(struct import *import, struct error *err)
{
    const char *name = below_name(import->item.path);
    if (replace(import, make_link) < 0)
        return failed(import, "make link", err);
    if (set_owner(import, import->parent, name, AT_SYMLINK_NOFOLLOW) < 0)
        return failed(import, "set the owner of", err);
    (void)set_time(import, import->parent, name, AT_SYMLINK_NOFOLLOW); // not worth failing for
    return 0;
}

static int make_hard_link(struct import *import, const char *name)
{
    const char *target = import->item.target;
    struct stat info;
    autofd dir = below_open(import->root, target, below_parent_length(target), false);
    if (dir < 0)
        return -1;
    if (inside_is_kernel(dir) || fstatat(dir, below_name(target), &info, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (!S_ISREG(info.st_mode)) {
        errno = EPERM;
        return -1;
    }
    return linkat(dir, below_name(target), import->parent, name, 0);
}

static int import_hard_link(struct import *import, struct error *err)
{
    if (!files_path_is_plain(import->item.target))
        return error_set(err, ERROR_INVALID,
                         "'%.300s' is a hard link to '%.300s', which is not in the archive",
                         import->item.path, import->item.target);
    if (strcmp(import->item.path, import->item.target) == 0)
        return 0;
    return replace(import, make_hard_link) < 0 ? failed(import, "make hard link", err) : 0;
}

static int open_new(const struct import *import, const char *name)
{
    return inside_openat(import->parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW,
                         safe_mode(import), BELOW);
}

static int make_file(struct import *import)
{
    import->beside[0] = '\0';
    import->file = open_new(import, below_name(import->item.path));
    if (import->file < 0 && errno == EEXIST && files_name_beside(import->beside) == 0)
        import->file = open_new(import, import->beside);
    return import->file < 0 ? -1 : 0;
}

/* Most files have their mode from the start: looking costs less than setting it. */
static int set_mode(const struct import *import, int fd)
{
    struct stat info;

    if (fstat(fd, &info) == 0 && (info.st_mode & 07777) == safe_mode(import))
        return 0;
    return fchmod(fd, safe_mode(import));
}

/* Owner before mode: a change of owner clears mode bits. The time comes last of all. */
static int finish_file(struct import *import, struct error *err)
{
    int fd = import->file;
    if (import->has_holes && ftruncate(fd, (off_t)import->item.size) < 0)
        return failed(import, "write", err);
    if (set_owner(import, fd, "", AT_EMPTY_PATH) < 0 || set_mode(import, fd) < 0)
        return failed(import, "set owner and mode of", err);
    (void)set_time(import, fd, "", AT_EMPTY_PATH); // not worth failing for
    if (import->beside[0] &&
        renameat(import->parent, import->beside, import->parent, below_name(import->item.path)) < 0)
        return failed(import, "replace", err);
    closep(&import->file);
    return 0;
}

/* Nobody should take a part of a file for all of it. */
static void drop_file(const struct import *import)
{
    if (import->file >= 0)
        files_take_back(import->parent,
                        import->beside[0] ? import->beside : below_name(import->item.path),
                        import->file);
}

static int import_file(struct import *import, struct error *err)
{
    if (make_file(import) < 0)
        return failed(import, "create", err);
    import->has_holes = false;
    import->left = import->item.size;
    return import->left ? 0 : finish_file(import, err);
}

/* What is nothing but zeros becomes a hole: it was one, or may well be. */
static int write_or_skip(struct import *import, const uint8_t *bytes, size_t length)
{
    if (length == 0 || bytes[0] || memcmp(bytes, bytes + 1, length - 1) != 0)
        return fd_write_all(import->file, bytes, length);
    import->has_holes = true;
    return lseek(import->file, (off_t)length, SEEK_CUR) < 0 ? -1 : 0;
}

static int import_data(struct import *import, const uint8_t *bytes, size_t length,
                       struct error *err)
{
    if (import->file < 0 || length > import->left)
        return error_set(err, ERROR_INVALID, "more data than the record '%.300s' announced",
                         import->item.path);
    if (write_or_skip(import, bytes, length) < 0)
        return failed(import, "write", err);
    import->left -= length;
    import->talk->total.bytes += length;
    return import->left ? 0 : finish_file(import, err);
}

static int check_record(const struct import *import, const struct files_item *item,
                        struct error *err)
{
    if (import->file >= 0)
        return error_set(err, ERROR_INVALID, "the data of '%.300s' is incomplete",
                         import->item.path);
    if (!files_path_is_plain(item->path))
        return error_set(err, ERROR_INVALID, "'%.300s' would lead out of the directory",
                         item->path);
    if (import->talk->flags & FILES_OWNERS &&
        (item->uid > FILES_MAX_ID || item->gid > FILES_MAX_ID))
        return error_set(err, ERROR_INVALID, "'%.300s' belongs to %u:%u; a sandbox has 0 to %u",
                         item->path, item->uid, item->gid, FILES_MAX_ID);
    return 0;
}

static int import_item(struct import *import, const struct files_item *item, struct error *err)
{
    if (check_record(import, item, err) < 0)
        return -1;
    import->item = *item;
    if (find_parent(import, item->path, err) < 0)
        return -1;
    import->talk->total.items++;
    if (item->is_hard_link)
        return import_hard_link(import, err);
    switch (item->mode & S_IFMT) {
    case S_IFREG:
        return import_file(import, err);
    case S_IFDIR:
        return import_dir(import, err);
    case S_IFLNK:
        return import_link(import, err);
    default:
        return error_set(err, ERROR_DENIED, "'%.300s' is neither file, directory nor link",
                         item->path);
    }
}

static int import_record(struct import *import, const struct files_frame *frame, struct error *err)
{
    struct files_item item;
    size_t at = 0;
    if (!files_item_next(frame, &at, &item) || at != frame->length)
        return error_set(err, ERROR_INVALID, "malformed record");
    return import_item(import, &item, err);
}

static int import_records(struct import *import, const struct files_frame *frame, struct error *err)
{
    for (size_t at = 0; at < frame->length;) {
        struct files_item item;
        const uint8_t *content;
        if (!files_record_next(frame, &at, &item, &content))
            return error_set(err, ERROR_INVALID, "malformed record");
        if (import_item(import, &item, err) < 0 ||
            (item.size && import_data(import, content, item.size, err) < 0))
            return -1;
    }
    return 0;
}

static int take_records(struct import *import, struct error *err)
{
    struct files_frame frame;
    for (;;) {
        if (talk_receive(import->talk, &frame) < 0)
            return TALK_OVER;
        if (frame.type == FILES_ABORT)
            return error_set(err, ERROR_CONFLICT, "the import into " INSIDE_SHOWN " was given up",
                             import->talk->path);
        if (frame.type == FILES_COMMIT && import->file >= 0)
            return error_set(err, ERROR_INVALID, "the data of '%.300s' is incomplete",
                             import->item.path);
        if (frame.type == FILES_COMMIT)
            return 0;
        int result = frame.type == FILES_RECORDS ? import_records(import, &frame, err)
                     : frame.type == FILES_ITEM
                         ? import_record(import, &frame, err)
                         : import_data(import, frame.payload, frame.length, err);
        if (result < 0)
            return result;
    }
}

int files_do_import(struct talk *talk, struct error *err)
{
    struct import import = {.talk = talk, .root = -1, .parent = -1, .file = -1};
    bool is_made = talk->flags & FILES_PARENTS;
    import.item.path = "";
    import.root = inside_dir(talk->base, talk->path, is_made, err);
    if (import.root < 0)
        return -1;
    int result = take_records(&import, err);
    drop_file(&import);
    closep(&import.file);
    closep(&import.parent);
    closep(&import.root);
    return result;
}
