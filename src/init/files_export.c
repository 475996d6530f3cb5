/* SPDX-License-Identifier: Apache-2.0 */
/*
 * EXPORT: a directory with everything below it, or one file, as records. Small ones travel together, whole (struct files_batch): with frames
 * of their own, messages would be most of the work of many small files.
 */
#include "base/auto.h"
#include "base/fd.h"
#include "init/files_talk.h"
#include "init/inside.h"
#include "init/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>

struct export
{
    struct talk *talk;
    struct walk walk;
    struct files_batch batch; // in talk->out, which is free for DATA once it was sent
};

static int send_batch(struct export *export)
{
    size_t length = export->batch.length;

    export->batch.length = 0;
    return length ? talk_send(export->talk, FILES_RECORDS, export->batch.room, length) : 0;
}

/* Exactly `size` bytes: what was cut off meanwhile is filled with zeros, as tar does. */
static void read_piece(int fd, uint8_t *to, size_t size)
{
    ssize_t got = size ? fd_read_full(fd, to, size) : 0;
    size_t have = got > 0 ? (size_t)got : 0;

    memset(to + have, 0, size - have);
}

static int send_alone(struct export *export, int fd, const struct files_item *item)
{
    struct talk *talk = export->talk;

    if (send_batch(export) < 0 || talk_item(talk, item) < 0 || talk_flush(talk) < 0)
        return TALK_OVER;
    for (uint64_t left = item->size; left > 0;) {
        size_t piece = left < FILES_PIECE ? (size_t)left : FILES_PIECE;
        read_piece(fd, talk->out, piece);
        if (talk_send(talk, FILES_DATA, talk->out, piece) < 0)
            return TALK_OVER;
        left -= piece;
    }
    talk->total.bytes += item->size;
    return 0;
}

/* The fd is of a file that has bytes; else -1. */
static int send_record(struct export *export, int fd, const struct files_item *item)
{
    if (!(export->talk->flags & FILES_TOGETHER) || !files_batch_takes(item))
        return send_alone(export, fd, item);
    if (!files_batch_has_room(&export->batch, item) && send_batch(export) < 0)
        return TALK_OVER;
    read_piece(fd, files_batch_begin(&export->batch, item), (size_t)item->size);
    files_batch_keep(&export->batch, item);
    export->talk->total.items++;
    export->talk->total.bytes += item->size;
    return 0;
}

static int export_file(struct export *export, int fd, const char *path, const struct stat *info,
                       struct error *err)
{
    struct talk *talk = export->talk;
    struct files_item item;

    talk_describe(talk, fd, "", path, info, &item);
    if (item.size > talk->request.maximum - talk->total.bytes)
        return error_set(err, ERROR_LIMIT, "'%.200s' makes the export larger than %llu bytes", path,
                         (unsigned long long)talk->request.maximum);
    return send_record(export, fd, &item);
}

/*
 * What its directory says is a plain file is opened at once: where nothing is mounted on it, it is on its directory's file system, which was looked at
 * when that was entered (walk_enter), and the look at the file system costs as much as opening. -1: it is something else by now, or mounted.
 */
static int open_plain(const struct walk *walk, struct stat *info)
{
    autofd fd = inside_openat(walk_dir(walk), walk_name(walk), O_RDONLY | O_NOFOLLOW, 0,
                              RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV);

    return fd >= 0 && fstat(fd, info) == 0 && S_ISREG(info->st_mode) ? take_fd(fd) : -1;
}

/* One that cannot be opened, or is no plain file any more, is counted and left out. */
static int export_other_file(struct export *export, struct error *err)
{
    const struct walk *walk = &export->walk;
    struct error ignored;
    struct stat info;
    autofd fd = inside_open(walk_dir(walk), walk_name(walk), O_RDONLY | O_NOFOLLOW, S_IFREG, &info,
                            &ignored);

    if (fd < 0) {
        export->talk->total.skipped++;
        return 0;
    }
    return export_file(export, fd, walk->path, &info, err);
}

static int export_entry(struct export *export, struct error *err)
{
    struct talk *talk = export->talk;
    struct walk *walk = &export->walk;
    struct stat info;
    struct files_item item;
    autofd plain = walk->type == DT_REG ? open_plain(walk, &info) : -1;

    if (plain >= 0)
        return export_file(export, plain, walk->path, &info, err);
    if (fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; // gone meanwhile
    if (S_ISREG(info.st_mode))
        return export_other_file(export, err);
    talk_describe(talk, walk_dir(walk), walk_name(walk), walk->path, &info, &item);
    if (!S_ISDIR(info.st_mode) && !item.target[0]) { // neither directory nor link
        talk->total.skipped++;
        return 0;
    }
    item.size = 0;
    if (send_record(export, -1, &item) < 0)
        return TALK_OVER;
    if (S_ISDIR(info.st_mode))
        files_enter_or_skip(talk, walk);
    return 0;
}

/* A batch that fills slowly goes after a second, so that the asker knows of the work and PID 1 of an asker that has gone. */
static int keep_in_touch(struct export *export)
{
    struct talk *talk = export->talk;
    time_t now = time(NULL);

    if (now == talk->spoke_at)
        return 0;
    talk->spoke_at = now;
    return talk_is_over(talk) ? TALK_OVER : send_batch(export);
}

static int export_walk(struct export *export, struct error *err)
{
    for (;;) {
        enum walk_step step = walk_next(&export->walk);
        if (step == WALK_FAILED)
            return error_path(err, "export " INSIDE_SHOWN, export->talk->path);
        if (step == WALK_END)
            return 0;
        int result = step == WALK_ENTRY ? export_entry(export, err) : 0;
        if (result == 0)
            result = keep_in_touch(export);
        if (result < 0)
            return result;
    }
}

static const char *last_part(char *path)
{
    size_t length = strlen(path);
    while (length > 0 && path[length - 1] == '/')
        path[--length] = '\0';
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static int export_one_file(struct export *export, struct error *err)
{
    struct talk *talk = export->talk;
    struct stat info;
    autofd file = inside_open(talk->base, talk->path, O_RDONLY, S_IFREG, &info, err);

    return file < 0 ? -1 : export_file(export, file, last_part(talk->path), &info, err);
}

static int export_directory(struct export *export, struct error *err)
{
    if (files_open_tree(export->talk, &export->walk, err) < 0)
        return -1;
    int result = export_walk(export, err);
    walk_clear(&export->walk);
    return result;
}

int files_do_export(struct talk *talk, struct error *err)
{
    struct export export = {.talk = talk, .batch = {.room = talk->out}};
    struct stat info;
    autofd fd = inside_openat(talk->base, talk->path, O_PATH, 0, 0);
    if (fd < 0)
        return error_path(err, "open " INSIDE_SHOWN, talk->path);
    if (inside_check(fd, 0, talk->path, &info, err) < 0)
        return -1;
    int result =
        S_ISDIR(info.st_mode) ? export_directory(&export, err) : export_one_file(&export, err);
    // what came before a failure goes too
    return result == TALK_OVER || send_batch(&export) < 0 ? TALK_OVER : result;
}
