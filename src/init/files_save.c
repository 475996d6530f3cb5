/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole file at once. What comes is written to a new file beside the old one, which takes its place by one rename when all is there:
 * whoever opens it sees the old content or the new, and a write that is cut off leaves nothing. A condition (etags of
 * files_item_etag) is looked at before anything is taken, and again right before the rename, under a lock that all such changes in
 * this box take: of two that name the same etag one succeeds. A guest that writes to the file itself in the moment between look and rename
 * is not seen.
 *
 * A link is followed: the file it leads to is replaced. Owner and mode stay unless told otherwise, but for set-id bits;
 * hard links and extended attributes do not, as the file is another. Appending changes the file in place.
 */
#include "base/auto.h"
#include "base/lock.h"
#include "init/files_talk.h"
#include "init/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#define MAX_LINKS 40
#define MAX_TRIES 16 // somebody makes or removes the same name meanwhile
#define MODE_NEW 0644u

static struct lock change_lock = {PTHREAD_MUTEX_INITIALIZER, LOCK_INIT_FILES};

struct save {
    struct talk *talk;
    int parent;                // directory of the file
    char name[256];            // its name there
    char beside[FILES_BESIDE]; // name of what is being written, "" when that is the file itself
    int fd;
    bool is_there, is_new; // when it was looked at last; made by us
    struct stat was;
};

static void save_clear(struct save *save)
{
    closep(&save->fd);
    closep(&save->parent);
}
#define autosave __attribute__((cleanup(save_clear))) struct save

/* Looks at the entry. 0, or -1 with the error. */
static int look(struct save *save, struct error *err)
{
    save->is_there =
        fstatat(save->parent, save->name, &save->was, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) == 0;
    if (!save->is_there && errno != ENOENT)
        return error_path(err, "look at " INSIDE_SHOWN, save->talk->path);
    return 0;
}

/* Where a link's target is looked up from now on; `from` is replaced by the link's directory. */
static int follow(struct save *save, int *from, char path[FILES_MAX_PATH], struct error *err)
{
    ssize_t got = readlinkat(save->parent, save->name, path, FILES_MAX_PATH - 1);
    if (got <= 0)
        return error_path(err, "follow " INSIDE_SHOWN, save->talk->path);
    path[got] = '\0';
    closep(from);
    *from = take_fd(save->parent);
    return 0;
}

/* The directory and the name of what the path leads to, links followed. */
static int find_place(struct save *save, struct error *err)
{
    struct talk *talk = save->talk;
    char path[FILES_MAX_PATH];
    size_t length = strlen(talk->path);

    if (length && talk->path[length - 1] == '/')
        return error_path_code(err, EISDIR, "create " INSIDE_SHOWN, talk->path);
    memcpy(path, talk->path, length + 1);
    autofd from = inside_openat(talk->base, ".", O_PATH | O_DIRECTORY, 0, 0);
    if (from < 0)
        return error_path(err, "open " INSIDE_SHOWN, talk->path);
    for (int links = 0; links < MAX_LINKS; links++) {
        closep(&save->parent);
        save->parent = inside_parent(from, path, talk->flags & FILES_PARENTS, save->name, err);
        if (save->parent < 0 || look(save, err) < 0)
            return -1;
        if (!save->is_there || !S_ISLNK(save->was.st_mode))
            return 0;
        if (follow(save, &from, path, err) < 0)
            return -1;
    }
    return error_path_code(err, ELOOP, "open " INSIDE_SHOWN, talk->path);
}

/* Only a file is replaced. */
static int check_type(struct save *save, struct error *err)
{
    if (!save->is_there)
        return 0;
    autofd fd = inside_openat(save->parent, save->name, O_PATH | O_NOFOLLOW, 0, 0);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0)
        return error_path(err, "open " INSIDE_SHOWN, save->talk->path);
    struct stat info;
    return inside_check(fd, S_IFREG, save->talk->path, &info, err);
}

static bool is_among(const char *etag, const char *etags)
{
    size_t length = strlen(etag);
    for (const char *at = etags; *at;) {
        size_t size = strcspn(at, ",");
        if ((size == length && memcmp(at, etag, size) == 0) || (size == 1 && *at == '*'))
            return true;
        at += size + (at[size] == ',');
    }
    return false;
}

int files_check_condition(struct talk *talk, const struct stat *info, struct error *err)
{
    char etag[FILES_ETAG_SIZE] = "";
    struct files_item item;
    bool is_unless = talk->flags & FILES_UNLESS;

    if (!talk->second[0])
        return 0;
    if (info) {
        talk_describe(talk, -1, "", "", info, &item);
        (void)files_item_etag(&item, etag);
    }
    bool is_it = info && is_among(etag, talk->second);
    if (is_it != is_unless)
        return 0;
    if (!info)
        (void)error_set(err, ERROR_CONFLICT, INSIDE_SHOWN " is not there", talk->path);
    else
        (void)error_set(err, ERROR_CONFLICT, INSIDE_SHOWN " is %s: its etag is '%s'", talk->path,
                        is_unless ? "there already" : "not what it was", etag);
    err->sys = ESTALE; // by which the asker knows this from other conflicts
    return -1;
}

struct lock *files_lock_changes(void)
{
    return lock_take(&change_lock);
}

static int failed(const struct save *save, const char *doing, struct error *err)
{
    return error_path(err, "%s " INSIDE_SHOWN, doing, save->talk->path);
}

// ---- beside, then in its place ----

int files_name_beside(char out[FILES_BESIDE])
{
    uint64_t number = 0;

    if (getrandom(&number, sizeof number, GRND_NONBLOCK) < 0)
        return -1;
    (void)snprintf(out, FILES_BESIDE, ".burrow-%016llx", (unsigned long long)number);
    return 0;
}

static int open_beside(struct save *save, struct error *err)
{
    for (int tries = 0; tries < MAX_TRIES; tries++) {
        if (files_name_beside(save->beside) < 0)
            return failed(save, "find a name beside", err);
        save->fd = inside_openat(save->parent, save->beside,
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600, 0);
        if (save->fd >= 0 || errno != EEXIST)
            break;
    }
    if (save->fd >= 0)
        return 0;
    save->beside[0] = '\0';
    return failed(save, "create a file beside", err);
}

/* What was not said is as it was. Another's file that a user may replace becomes the user's. */
static int set_owner(const struct save *save, struct error *err)
{
    const struct files_request_wire *request = &save->talk->request;
    uint32_t uid = request->uid, gid = request->gid;
    struct stat info;

    if (fstat(save->fd, &info) < 0)
        return failed(save, "look at", err);
    if (uid != FILES_KEEP_ID || gid != FILES_KEEP_ID) {
        if (fchown(save->fd, uid, gid) < 0)
            return failed(save, "set the owner of", err);
    }
    if (!save->is_there)
        return 0;
    uid =
        uid == FILES_KEEP_ID && info.st_uid != save->was.st_uid ? save->was.st_uid : FILES_KEEP_ID;
    gid =
        gid == FILES_KEEP_ID && info.st_gid != save->was.st_gid ? save->was.st_gid : FILES_KEEP_ID;
    if (uid != FILES_KEEP_ID || gid != FILES_KEEP_ID)
        (void)fchown(save->fd, uid, gid); // only root can give files away
    return 0;
}

/* After the owner: a change of that clears bits. */
static int set_mode(const struct save *save, struct error *err)
{
    uint32_t mode = save->talk->request.mode & 07777;

    if (save->talk->request.mode == FILES_KEEP_MODE)
        mode = save->is_there ? save->was.st_mode & 01777 : MODE_NEW;
    return fchmod(save->fd, mode) < 0 ? failed(save, "set the mode of", err) : 0;
}

/* Under the lock, so that nobody else who names an etag comes between look and rename. */
static int put_in_place(struct save *save, struct error *err)
{
    __attribute__((cleanup(lock_releasep), unused)) struct lock *held = files_lock_changes();

    if (look(save, err) < 0 || check_type(save, err) < 0 ||
        files_check_condition(save->talk, save->is_there ? &save->was : NULL, err) < 0 ||
        set_owner(save, err) < 0 || set_mode(save, err) < 0)
        return -1;
    if (renameat(save->parent, save->beside, save->parent, save->name) < 0)
        return failed(save, "replace", err);
    save->beside[0] = '\0';
    return 0;
}

// ---- behind what is there ----

static int open_behind(struct save *save, struct error *err)
{
    uint32_t mode = save->talk->request.mode;
    struct stat info;

    mode = mode == FILES_KEEP_MODE ? MODE_NEW : mode & 07777;
    if (save->is_there) {
        save->fd = inside_open(save->parent, save->name, O_WRONLY | O_APPEND | O_NOFOLLOW, S_IFREG,
                               &info, err);
        return save->fd < 0 ? -1 : 0;
    }
    save->fd = inside_openat(save->parent, save->name,
                             O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW, mode, 0);
    if (save->fd < 0)
        return failed(save, "create", err);
    save->is_new = true;
    (void)fchmod(save->fd, mode); // past PID 1's umask, which is no thread's own
    return set_owner(save, err);
}

/* The file may come and go meanwhile. */
static int open_to_append(struct save *save, struct error *err)
{
    for (int tries = 0;; tries++) {
        if (look(save, err) < 0)
            return -1;
        if (open_behind(save, err) == 0)
            return 0;
        if (tries == MAX_TRIES || (err->sys != ENOENT && err->sys != EEXIST))
            return -1;
    }
}

// ---- both ----

static int begin(struct save *save, struct error *err)
{
    struct talk *talk = save->talk;

    if ((talk->request.uid != FILES_KEEP_ID && talk->request.uid > FILES_MAX_ID) ||
        (talk->request.gid != FILES_KEEP_ID && talk->request.gid > FILES_MAX_ID))
        return error_set(err, ERROR_INVALID, "a sandbox has users and groups 0 to %u",
                         FILES_MAX_ID);
    if (find_place(save, err) < 0 || check_type(save, err) < 0 ||
        files_check_condition(talk, save->is_there ? &save->was : NULL, err) < 0)
        return -1;
    return talk->flags & FILES_APPEND ? open_to_append(save, err) : open_beside(save, err);
}

/* What was made goes again. */
static void take_back(const struct save *save)
{
    if (save->beside[0] || save->is_new)
        files_take_back(save->parent, save->beside[0] ? save->beside : save->name, save->fd);
}

static int take_all(struct save *save, struct error *err)
{
    int result = files_take_data(save->talk, save->fd, err);

    if (result == 0)
        return error_set(err, ERROR_CONFLICT, "the write of " INSIDE_SHOWN " was given up",
                         save->talk->path);
    if (result < 0)
        return result;
    return save->beside[0] ? put_in_place(save, err) : 0;
}

int files_do_save(struct talk *talk, struct error *err)
{
    autosave save = {.talk = talk, .parent = -1, .fd = -1};
    struct files_item item;
    struct stat info;

    if (begin(&save, err) < 0)
        return -1;
    int result = take_all(&save, err);
    if (result < 0) {
        take_back(&save);
        return result;
    }
    if (fstat(save.fd, &info) < 0)
        return failed(&save, "look at", err);
    talk_describe(talk, save.fd, "", "", &info, &item);
    return talk_item(talk, &item);
}
