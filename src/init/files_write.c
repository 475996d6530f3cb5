/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writing one file, in place: hard links, owner, mode and watchers of an existing file stay, and it
 * needs no right to write to the directory. A write that is cut off leaves what had arrived in an
 * existing file and removes a new one. Who wants all or nothing writes a new file beside it and
 * renames.
 */
#include "base/auto.h"
#include "base/fd.h"
#include "init/files_talk.h"
#include "init/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#define OPEN_TRIES 8 // the file comes and goes while we look

struct target {
    int fd;
    int parent; // of a new file; else -1
    char name[256];
};

/* Makes a new file; -1 with EEXIST when one is there. */
static int create(struct talk *talk, struct target *target, struct error *err)
{
    bool is_made = talk->flags & FILES_PARENTS;
    autofd parent = inside_parent(talk->base, talk->path, is_made, target->name, err);
    if (parent < 0)
        return -1;
    target->fd = inside_openat(parent, target->name, O_WRONLY | O_CREAT | O_EXCL,
                               talk->request.mode & 07777, 0);
    if (target->fd < 0)
        return error_path(err, "create " INSIDE_SHOWN, talk->path);
    target->parent = take_fd(parent);
    (void)fchmod(target->fd,
                 talk->request.mode & 07777); // past PID 1's umask, which is no thread's own
    return 0;
}

/* A link that leads to nothing: the file it names is made, as any program would. */
static int create_through_link(struct talk *talk, struct target *target, struct error *err)
{
    struct stat info;
    autofd fd =
        inside_openat(talk->base, talk->path, O_WRONLY | O_CREAT, talk->request.mode & 07777, 0);
    if (fd < 0)
        return error_path(err, "create " INSIDE_SHOWN, talk->path);
    if (inside_check(fd, S_IFREG, talk->path, &info, err) < 0)
        return -1;
    target->fd = take_fd(fd);
    return 0;
}

static int open_existing(struct talk *talk, struct target *target, struct error *err)
{
    struct stat info;
    autofd fd = inside_open(talk->base, talk->path, O_WRONLY, S_IFREG, &info, err);
    if (fd < 0)
        return -1;
    if (ftruncate(fd, 0) < 0)
        return error_path(err, "empty " INSIDE_SHOWN, talk->path);
    target->fd = take_fd(fd);
    return 0;
}

static int open_target(struct talk *talk, struct target *target, struct error *err)
{
    size_t length = strlen(talk->path);
    bool is_new = talk->flags & FILES_EXCLUSIVE;

    if (length && talk->path[length - 1] == '/')
        return error_path_code(err, EISDIR, "create " INSIDE_SHOWN, talk->path);
    for (int tries = 0; tries < OPEN_TRIES; tries++) {
        if (!is_new && open_existing(talk, target, err) == 0)
            return 0;
        if (!is_new && err->sys != ENOENT)
            return -1;
        if (create(talk, target, err) == 0)
            return 0;
        if (is_new || err->sys != EEXIST)
            return -1;
    }
    return create_through_link(talk, target, err);
}

int files_take_data(struct talk *talk, int fd, struct error *err)
{
    struct files_frame frame;
    for (;;) {
        if (talk_receive(talk, &frame) < 0)
            return TALK_OVER;
        if (frame.type == FILES_COMMIT || frame.type == FILES_ABORT)
            return frame.type == FILES_COMMIT;
        if (frame.type != FILES_DATA)
            return error_set(err, ERROR_INVALID, "unexpected frame in a write");
        if (fd_write_all(fd, frame.payload, frame.length) < 0)
            return error_path(err, "write " INSIDE_SHOWN, talk->path);
        talk->total.bytes += frame.length;
    }
}

void files_take_back(int parent, const char *name, int fd)
{
    struct stat ours, there;
    if (fstat(fd, &ours) < 0 || fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) < 0)
        return;
    if (ours.st_dev == there.st_dev && ours.st_ino == there.st_ino)
        (void)unlinkat(parent, name, 0); // best effort: it may be gone already
}

int files_do_write(struct talk *talk, struct error *err)
{
    struct target target = {.fd = -1, .parent = -1};
    if (open_target(talk, &target, err) < 0)
        return -1;
    int result = files_take_data(talk, target.fd, err);
    if (result <= 0 && target.parent >= 0)
        files_take_back(target.parent, target.name, target.fd);
    if (result == 0)
        result = error_set(err, ERROR_CONFLICT, "the write of " INSIDE_SHOWN " was given up",
                           talk->path);
    closep(&target.fd);
    closep(&target.parent);
    return result < 0 ? result : 0;
}
