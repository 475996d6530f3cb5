/* SPDX-License-Identifier: Apache-2.0 */
/* Becoming the user, taking requests, and the verbs about one file; see files_answer.h. */
#include "init/files_answer.h"
#include "engine/link.h"
#include "base/auto.h"
#include "init/files_talk.h"
#include "init/inside.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

/* Everything by raw system calls: libc's would change all threads of PID 1. */
static int become(const struct files_user *who)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    // No rights, but the mark by which guests cannot trace it: it shares PID 1's memory.
    struct __user_cap_data_struct none[2] = {
        [CAP_TO_INDEX(LINK_INIT_MARK)] = {.permitted = CAP_TO_MASK(LINK_INIT_MARK)}};

    if (geteuid() != 0) { // without rights one can only be oneself
        errno = EPERM;
        return who->uid == geteuid() && who->gid == getegid() ? 0 : -1;
    }
    if (syscall(SYS_setgroups, who->n_groups, who->groups) < 0)
        return -1;
    (void)syscall(SYS_setfsgid, who->gid);
    (void)syscall(SYS_setfsuid, who->uid);
    // these two say what holds only when asked again
    errno = EPERM;
    if ((uint32_t)syscall(SYS_setfsgid, -1) != who->gid ||
        (uint32_t)syscall(SYS_setfsuid, -1) != who->uid)
        return -1;
    // other credentials reset this to the host's fs.suid_dumpable
    if (prctl(PR_SET_DUMPABLE, 0) < 0)
        return -1;
    return who->uid ? (int)syscall(SYS_capset, &header, none) : 0;
}

static int begin(struct talk *talk, const struct files_user *who, struct error *err)
{
    if (become(who) < 0)
        return error_sys(err, "become user %u of group %u", who->uid, who->gid);
    talk->drops_set_ids = who->drops_set_ids;
    talk->base = inside_dir(AT_FDCWD, who->base, false, err);
    if (talk->base >= 0)
        return 0;
    talk->base = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC); // for what names no base
    return -1;
}

/* Whether the request is about something below the base. */
static bool is_relative(const struct talk *talk)
{
    bool has_two = talk->type == FILES_COPY || talk->type == FILES_RENAME;

    return talk->path[0] != '/' || (has_two && talk->second[0] != '/');
}

static int send_file(struct talk *talk, int fd, struct error *err)
{
    uint64_t left = talk->request.maximum;
    off_t at = (off_t)talk->request.offset;
    for (;;) {
        // one more than wanted is asked for, to know whether there is more
        size_t want = left < FILES_PIECE ? (size_t)left + 1 : FILES_PIECE;
        ssize_t got = pread(fd, talk->out, want, at);
        if (got < 0)
            return error_path(err, "read " INSIDE_SHOWN, talk->path);
        if (got == 0)
            return 0;
        size_t take = (uint64_t)got > left ? (size_t)left : (size_t)got;
        talk->total.is_truncated = take < (size_t)got;
        if (take && talk_send(talk, FILES_DATA, talk->out, take) < 0)
            return TALK_OVER;
        talk->total.bytes += take;
        if (talk->total.is_truncated)
            return 0;
        left -= take;
        at += (off_t)take;
    }
}

static int do_read(struct talk *talk, struct error *err)
{
    struct stat info;
    struct files_item item;
    autofd fd = inside_open(talk->base, talk->path, O_RDONLY, S_IFREG, &info, err);
    if (fd < 0)
        return -1;
    if (talk->request.offset > INT64_MAX)
        return error_set(err, ERROR_INVALID, "no file has an offset of %llu",
                         (unsigned long long)talk->request.offset);
    talk_describe(talk, fd, "", "", &info, &item);
    if (talk_item(talk, &item) < 0 || talk_flush(talk) < 0)
        return TALK_OVER;
    return send_file(talk, fd, err);
}

static int do_stat(struct talk *talk, struct error *err)
{
    struct stat info;
    struct files_item item;
    int nofollow = talk->flags & FILES_FOLLOW ? 0 : O_NOFOLLOW;
    autofd fd = inside_openat(talk->base, talk->path, O_PATH | nofollow, 0, 0);
    if (fd < 0)
        return error_path(err, "look at " INSIDE_SHOWN, talk->path);
    if (inside_check(fd, 0, talk->path, &info, err) < 0)
        return -1;
    talk_describe(talk, fd, "", "", &info, &item);
    if (talk_item(talk, &item) < 0)
        return TALK_OVER;
    return talk_flush(talk);
}

/* PID 1's umask took bits away, and no thread has its own. */
static int restore_mode(struct talk *talk, int parent, const char *name, struct error *err)
{
    struct stat info;
    autofd fd = inside_openat(parent, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0, 0);
    if (fd < 0 || fstat(fd, &info) < 0)
        return error_path(err, "make directory " INSIDE_SHOWN, talk->path);
    mode_t missing = talk->request.mode & 07777 & ~info.st_mode;
    if (missing && inside_chmod(fd, (info.st_mode & 07777) | missing) < 0)
        return error_path(err, "set the mode of " INSIDE_SHOWN, talk->path);
    return 0;
}

static int do_mkdir(struct talk *talk, struct error *err)
{
    char name[256];
    struct stat info;
    bool is_made = talk->flags & FILES_PARENTS;
    autofd parent = inside_parent(talk->base, talk->path, is_made, name, err);
    if (parent < 0)
        return -1;
    if (mkdirat(parent, name, talk->request.mode & 07777) == 0)
        return restore_mode(talk, parent, name, err);
    if (errno == EEXIST && !(talk->flags & FILES_EXCLUSIVE)) {
        autofd there = inside_openat(parent, name, O_PATH | O_DIRECTORY, 0, 0);
        if (there >= 0)
            return inside_check(there, S_IFDIR, talk->path, &info, err);
        errno = EEXIST;
    }
    return error_path(err, "make directory " INSIDE_SHOWN, talk->path);
}

static int do_chmod(struct talk *talk, struct error *err)
{
    struct stat info;
    autofd fd = inside_openat(talk->base, talk->path, O_PATH, 0, 0);
    if (fd < 0)
        return error_path(err, "look at " INSIDE_SHOWN, talk->path);
    if (inside_check(fd, 0, talk->path, &info, err) < 0)
        return -1;
    if (inside_chmod(fd, talk->request.mode & 07777) < 0)
        return error_path(err, "change the mode of " INSIDE_SHOWN, talk->path);
    return 0;
}

static bool is_id(uint32_t id)
{
    return id <= FILES_MAX_ID || id == FILES_KEEP_ID;
}

static int do_chown(struct talk *talk, struct error *err)
{
    struct stat info;
    int nofollow = talk->flags & FILES_FOLLOW ? 0 : O_NOFOLLOW;
    if (!is_id(talk->request.uid) || !is_id(talk->request.gid))
        return error_set(err, ERROR_INVALID, "a sandbox has users and groups 0 to %u",
                         FILES_MAX_ID);
    autofd fd = inside_openat(talk->base, talk->path, O_PATH | nofollow, 0, 0);
    if (fd < 0)
        return error_path(err, "look at " INSIDE_SHOWN, talk->path);
    if (inside_check(fd, 0, talk->path, &info, err) < 0)
        return -1;
    if (fchownat(fd, "", talk->request.uid, talk->request.gid, AT_EMPTY_PATH) < 0)
        return error_path(err, "change the owner of " INSIDE_SHOWN, talk->path);
    return 0;
}

static const talk_verb verbs[FILES_TYPES] = {
    [FILES_READ] = do_read,
    [FILES_WRITE] = files_do_write,
    [FILES_LIST] = files_do_list,
    [FILES_STAT] = do_stat,
    [FILES_MKDIR] = do_mkdir,
    [FILES_REMOVE] = files_do_remove,
    [FILES_RENAME] = files_do_rename,
    [FILES_CHMOD] = do_chmod,
    [FILES_CHOWN] = do_chown,
    [FILES_EXPORT] = files_do_export,
    [FILES_IMPORT] = files_do_import,
    [FILES_SAVE] = files_do_save,
    [FILES_FIND] = files_do_find,
    [FILES_SEARCH] = files_do_search,
    [FILES_COPY] = files_do_copy,
    [FILES_WATCH] = files_do_watch,
    [FILES_SET_NOTES] = files_do_set_notes,
    [FILES_NOTES] = files_do_notes,
};

/* Sends the one answer that ends a request, then drops what the asker still sends for it. */
static int answer(struct talk *talk, int result, const struct error *error)
{
    struct files_frame dropped;
    if (result == 0 && talk_flush(talk) < 0)
        return TALK_OVER;
    int sent = result < 0 ? talk_send_error(talk, error)
                          : talk_send(talk, FILES_END, &talk->total, sizeof talk->total);
    while (sent == 0 && talk->is_taking)
        sent = talk_receive(talk, &dropped);
    return sent;
}

/* A `reason` why nothing can be done is the answer to everything, but where the base alone is missing. */
static void serve(struct talk *talk, const struct error *reason)
{
    while (talk_next(talk) == 0) {
        struct error err = *reason;
        bool is_refused = err.reason && (talk->base < 0 || is_relative(talk));
        int result = is_refused ? -1 : verbs[talk->type](talk, &err);
        if (result == TALK_OVER || answer(talk, result, &err) < 0)
            return;
    }
}

static struct talk *talk_new(int sock)
{
    struct talk *talk = malloc(sizeof *talk); // not cleared: most of it is buffers
    if (talk) {
        talk->sock = sock;
        talk->base = -1;
        talk->drops_set_ids = false;
    }
    return talk;
}

static void talk_free(struct talk *talk)
{
    if (talk)
        closep(&talk->base);
    free(talk);
}
DEFINE_AUTOPTR(talk)

void files_serve(int sock, const struct files_user *who)
{
    autofd own = sock;
    autoptr(talk) talk = talk_new(sock);
    struct error reason = {0};
    if (!talk)
        return;
    (void)begin(talk, who, &reason); // what fails is in `reason`
    serve(talk, &reason);
}

void files_refuse(int sock, const char *sentence)
{
    autofd own = sock;
    autoptr(talk) talk = talk_new(sock);
    struct error reason;
    (void)error_set(&reason, ERROR_INVALID, "%s", sentence);
    if (talk)
        serve(talk, &reason);
}
