/* SPDX-License-Identifier: Apache-2.0 */
/* The verbs about whole directories: listing and removing. */
#include "base/auto.h"
#include "base/lock.h"
#include "init/files_talk.h"
#include "init/inside.h"
#include "init/walk.h"

#include <fcntl.h>
#include <string.h>

#define REMOVE_TRIES 10000 // directories found not empty after they were emptied
#define CHECK_EVERY 256    // removals between two looks whether anybody still waits

int files_open_tree(struct talk *talk, struct walk *walk, struct error *err)
{
    struct stat info;
    int fd = inside_open(talk->base, talk->path, O_RDONLY | O_DIRECTORY, S_IFDIR, &info, err);
    if (fd < 0)
        return -1;
    if (walk_init(walk, fd, false) < 0)
        return error_path(err, "open " INSIDE_SHOWN, talk->path);
    return 0;
}

static int walk_broke(const struct talk *talk, const char *doing, struct error *err)
{
    return error_path(err, "%s " INSIDE_SHOWN, doing, talk ? talk->path : "what is left");
}

void files_enter_or_skip(struct talk *talk, struct walk *walk)
{
    if (strlen(walk->path) + 257 >= FILES_MAX_RECORD_PATH || walk_enter(walk) < 0)
        talk->total.skipped++;
}

static int list_entry(struct talk *talk, struct walk *walk)
{
    struct stat info;
    struct files_item item;
    if (fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW) < 0)
        return 0; // gone meanwhile
    talk_describe(talk, walk_dir(walk), walk_name(walk), walk->path, &info, &item);
    if (talk_item(talk, &item) < 0)
        return TALK_OVER;
    if (S_ISDIR(info.st_mode) && talk->flags & FILES_RECURSIVE)
        files_enter_or_skip(talk, walk);
    return 0;
}

static int list_walk(struct talk *talk, struct walk *walk, struct error *err)
{
    for (;;) {
        enum walk_step step = walk_next(walk);
        if (step == WALK_FAILED)
            return walk_broke(talk, "list", err);
        if (step == WALK_END)
            return 0;
        if (step == WALK_LEAVE)
            continue;
        if (talk->total.items == talk->request.maximum) {
            talk->total.is_truncated = 1;
            return 0;
        }
        if (list_entry(talk, walk) < 0)
            return TALK_OVER;
    }
}

int files_do_list(struct talk *talk, struct error *err)
{
    struct walk walk;
    if (files_open_tree(talk, &walk, err) < 0)
        return -1;
    int result = list_walk(talk, &walk, err);
    walk_clear(&walk);
    return result;
}

static int remove_failed(const struct walk *walk, struct error *err)
{
    // of a deep path the end is what tells
    size_t length = strlen(walk->path), skip = length > 400 ? length - 400 : 0;
    return error_path(err, "remove '%s%s'", skip ? "..." : "", walk->path + skip);
}

/* Removes what is no directory, enters what is. */
static int remove_entry(struct walk *walk, dev_t device, struct error *err)
{
    struct stat info;
    if (unlinkat(walk_dir(walk), walk_name(walk), 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return remove_failed(walk, err);
    int saved = errno;
    if (fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : remove_failed(walk, err);
    errno = saved;
    if (!S_ISDIR(info.st_mode))
        return remove_failed(walk, err);
    if (info.st_dev != device) {
        errno = EBUSY; // something is mounted there
        return remove_failed(walk, err);
    }
    if (unlinkat(walk_dir(walk), walk_name(walk), AT_REMOVEDIR) == 0)
        return 0;
    if (walk_enter(walk) < 0 && errno != ENOENT)
        return remove_failed(walk, err);
    return 0;
}

/* A directory that filled up again while it was emptied is gone through once more. */
static int remove_left(struct walk *walk, unsigned *tries, struct error *err)
{
    if (unlinkat(walk_dir(walk), walk_name(walk), AT_REMOVEDIR) == 0 || errno == ENOENT)
        return 0;
    if (errno != ENOTEMPTY || ++*tries > REMOVE_TRIES || walk_enter(walk) < 0)
        return remove_failed(walk, err);
    return 0;
}

static int remove_walk(struct talk *talk, struct walk *walk, dev_t device, struct error *err)
{
    unsigned tries = 0, count = 0;
    for (;;) {
        enum walk_step step = walk_next(walk);
        if (step == WALK_FAILED)
            return walk_broke(talk, "remove", err);
        if (step == WALK_END)
            return 0;
        int result =
            step == WALK_LEAVE ? remove_left(walk, &tries, err) : remove_entry(walk, device, err);
        if (result < 0)
            return result;
        if (++count % CHECK_EVERY == 0 && talk && talk_alive(talk) < 0)
            return TALK_OVER;
    }
}

/* Empties the directory `name` of `parent`. */
static int remove_below(struct talk *talk, int parent, const char *name, struct error *err)
{
    struct walk walk;
    struct stat info;
    int fd = inside_open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, S_IFDIR, &info, err);
    if (fd < 0)
        return -1;
    if (walk_init(&walk, fd, true) < 0)
        return walk_broke(talk, "open", err);
    int result = remove_walk(talk, &walk, info.st_dev, err);
    walk_clear(&walk);
    return result;
}

static int remove_one(int parent, const char *name)
{
    if (unlinkat(parent, name, 0) == 0)
        return 0;
    if (errno == EISDIR || errno == EPERM) {
        int saved = errno;
        if (unlinkat(parent, name, AT_REMOVEDIR) == 0)
            return 0;
        if (errno == ENOTDIR)
            errno = saved;
    }
    return -1;
}

int files_remove_tree(struct talk *talk, int parent, const char *name, struct error *err)
{
    for (unsigned tries = 0;; tries++) {
        if (remove_one(parent, name) == 0)
            return 0;
        if (errno != ENOTEMPTY || tries == REMOVE_TRIES)
            return error_path(err, "remove " INSIDE_SHOWN, talk ? talk->path : name);
        int result = remove_below(talk, parent, name, err);
        if (result < 0)
            return result;
    }
}

static int check_removed(struct talk *talk, int parent, const char *name, struct error *err)
{
    struct stat info;

    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? files_check_condition(talk, NULL, err)
                               : error_path(err, "look at " INSIDE_SHOWN, talk->path);
    return files_check_condition(talk, &info, err);
}

/* Only what is as the asker knows it, with nobody between look and removal. A tree takes too long for that. */
static int remove_known(struct talk *talk, int parent, const char *name, struct error *err)
{
    __attribute__((cleanup(lock_releasep), unused)) struct lock *held =
        talk->second[0] ? files_lock_changes() : NULL;

    if (talk->second[0] && check_removed(talk, parent, name, err) < 0)
        return -1;
    if (talk->flags & FILES_RECURSIVE)
        return 0;
    if (remove_one(parent, name) < 0)
        return error_path(err, "remove " INSIDE_SHOWN, talk->path);
    return 0;
}

int files_do_remove(struct talk *talk, struct error *err)
{
    char name[256];
    bool may_be_missing = talk->flags & FILES_MISSING_OK;
    autofd parent = inside_parent(talk->base, talk->path, false, name, err);
    if (parent < 0)
        return err->sys == ENOENT && may_be_missing ? 0 : -1;
    int result = talk->second[0] || !(talk->flags & FILES_RECURSIVE)
                     ? remove_known(talk, parent, name, err)
                     : 0;
    if (result == 0 && talk->flags & FILES_RECURSIVE)
        result = files_remove_tree(talk, parent, name, err);
    return result == -1 && err->sys == ENOENT && may_be_missing ? 0 : result;
}
