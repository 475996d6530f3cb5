/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verb that watches a directory. The kernel's own queue is the only one: when the asker is behind, this thread waits, the queue
 * fills, and what did not fit is told as an overflow.
 */
#include "base/auto.h"
#include "init/files_talk.h"
#include "init/inside.h"
#include "init/watched.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>

#define MAX_WATCHERS 8 // of a box
#define MAX_DIRECTORIES 8192
#define MAX_TOLD (16u << 10) // in a frame, where one event is not larger
#define SETTLE_MS 10         // between two looks: what is repeated meanwhile becomes one event
#define PAIR_MS 20           // the second half of a move comes with the first, but for bad luck
#define EVENTS                                                                                     \
    (IN_CREATE | IN_MODIFY | IN_ATTRIB | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO |                 \
     IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR | IN_EXCL_UNLINK)

static atomic_int n_watchers;

struct watcher {
    struct talk *talk;
    dev_t device; // which directory it is. None is held open: the kernel would not tell of its end
    ino_t inode;
    struct watched dirs;
    unsigned maximum;
    bool is_recursive;
    bool is_lost; // something could not be told
    bool is_over; // the directory is gone
    // A move of which the second half has not come.
    bool is_moving, is_moving_dir;
    uint32_t cookie;
    struct watched_dir *moving; // where it is watched itself
    size_t last;                // where in talk->out the last event begins
    char from[FILES_MAX_RECORD_PATH];
};

/* ---- telling ---- */

static int flush(struct watcher *watcher)
{
    struct talk *talk = watcher->talk;
    size_t length = talk->out_used;

    talk->out_used = 0;
    return length ? talk_send(talk, FILES_EVENT, talk->out, length) : 0;
}

/* What is being written is told once for each look, not for each write. */
static bool is_repeated(const struct watcher *watcher, const struct files_event *event, size_t size)
{
    const struct talk *talk = watcher->talk;
    const uint8_t *last = talk->out + watcher->last;
    struct files_event_wire fixed;

    if (event->kind != FILES_CHANGED || talk->out_used != watcher->last + size)
        return false;
    memcpy(&fixed, last, sizeof fixed);
    return fixed.kind == event->kind && strcmp((const char *)last + sizeof fixed, event->path) == 0;
}

static int tell(struct watcher *watcher, const struct files_event *event)
{
    struct talk *talk = watcher->talk;
    size_t size = files_event_size(event);

    if (talk->out_used && is_repeated(watcher, event, size))
        return 0;
    if (talk->out_used && talk->out_used + size > MAX_TOLD && flush(watcher) < 0)
        return TALK_OVER;
    watcher->last = talk->out_used;
    talk->out_used += files_event_write(event, talk->out + talk->out_used);
    talk->total.items++;
    return 0;
}

static int tell_plain(struct watcher *watcher, enum files_event_kind kind)
{
    return tell(watcher, &(struct files_event){.kind = kind, .path = "", .second = ""});
}

static int tell_entry(struct watcher *watcher, enum files_event_kind kind, bool is_directory,
                      const struct watched_dir *dir, const char *name)
{
    char *path = watcher->talk->item_path;

    if (!watched_path(dir, name, path, FILES_MAX_RECORD_PATH)) {
        watcher->is_lost = true;
        return 0;
    }
    return tell(watcher, &(struct files_event){kind, is_directory, path, ""});
}

/* ---- which directories are looked at ---- */

/* NULL: it cannot be, and that is in is_lost where it matters. */
static struct watched_dir *look_at(struct watcher *watcher, struct watched_dir *parent, int fd,
                                   const char *name)
{
    struct stat info;
    struct error ignored;
    struct watched_dir *dir = NULL;

    if (inside_check(fd, S_IFDIR, name, &info, &ignored) < 0)
        return NULL; // the kernel's own
    if (watcher->dirs.count < watcher->maximum) {
        int number = inside_watch(watcher->dirs.inotify, fd, EVENTS);
        if (number < 0 && errno == EACCES)
            return NULL;
        dir = number < 0 ? NULL : watched_add(&watcher->dirs, number, parent, name);
    }
    watcher->is_lost |= dir == NULL;
    return dir;
}

/* -1: the directory that was named is another one now. */
static int open_top(const struct watcher *watcher)
{
    struct talk *talk = watcher->talk;
    struct stat info;
    struct error ignored;
    autofd fd =
        inside_open(talk->base, talk->path, O_RDONLY | O_DIRECTORY, S_IFDIR, &info, &ignored);

    if (fd < 0 || info.st_dev != watcher->device || info.st_ino != watcher->inode)
        return -1;
    return take_fd(fd);
}

/* -1: gone meanwhile, or no directory. */
static int open_dir(const struct watcher *watcher, const struct watched_dir *dir)
{
    char *path = watcher->talk->item_path;
    autofd top = open_top(watcher);

    if (top < 0 || !watched_path(dir, NULL, path, FILES_MAX_RECORD_PATH))
        return -1;
    return inside_openat(top, *path ? path : ".", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                         RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
}

static bool is_directory_at(int fd, const struct dirent *entry)
{
    struct stat info;

    if (entry->d_type != DT_UNKNOWN)
        return entry->d_type == DT_DIR;
    return fstatat(fd, entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(info.st_mode);
}

/* How directories are gone through. */
struct scan {
    struct watcher *watcher;
    struct watched_dir *last; // of those that are still to be looked at
    bool is_silent;           // what is there was there before anybody asked
};

/* A directory below another, to be gone through behind the others. One that is known is, too, where it is below this one and no other: its
 * own may have been missed. */
static void scan_below(struct scan *scan, struct watched_dir *parent, int fd, const char *name)
{
    struct watcher *watcher = scan->watcher;
    unsigned known = watcher->dirs.count;
    autofd below = inside_openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                                 RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
    struct watched_dir *dir = below < 0 ? NULL : watched_child(parent, name);

    if (below >= 0 && !dir)
        dir = look_at(watcher, parent, below, name);
    if (!dir || dir->parent != parent || dir->to_scan || dir == scan->last)
        return;
    dir->is_new |= watcher->dirs.count > known;
    scan->last->to_scan = dir;
    scan->last = dir;
}

/* The entries of one directory. It stays new where it cannot be opened: it has moved, and the kernel will say so. */
static int scan_one(struct scan *scan, struct watched_dir *dir)
{
    int fd = open_dir(scan->watcher, dir);
    DIR *entries = fd < 0 ? NULL : fdopendir(fd);
    bool is_told = dir->is_new && !scan->is_silent;
    int result = 0;

    if (!entries) {
        closep(&fd);
        return 0;
    }
    dir->is_new = false;
    for (struct dirent *entry; result == 0 && (entry = readdir(entries));) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        bool is_directory = is_directory_at(fd, entry);
        if (is_told)
            result = tell_entry(scan->watcher, FILES_CREATED, is_directory, dir, entry->d_name);
        if (is_directory)
            scan_below(scan, dir, fd, entry->d_name);
    }
    (void)closedir(entries);
    return result;
}

/* Looks at all directories below, and tells what is in those that are new: it came before they were looked at. */
static int scan(struct watcher *watcher, struct watched_dir *start, bool is_silent)
{
    struct scan scan = {watcher, start, is_silent};
    int result = 0;

    for (struct watched_dir *at = start, *next; at; at = next) {
        if (result == 0)
            result = scan_one(&scan, at);
        next = at->to_scan;
        at->to_scan = NULL;
    }
    return result;
}

/* A directory has appeared. */
static int follow_new(struct watcher *watcher, struct watched_dir *parent, const char *name)
{
    unsigned known = watcher->dirs.count;
    autofd above = open_dir(watcher, parent);
    autofd fd = above < 0 ? -1
                          : inside_openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                                          RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH);
    struct watched_dir *dir = fd < 0 ? NULL : look_at(watcher, parent, fd, name);

    if (!dir || watcher->dirs.count == known) // one can be seen at several places
        return 0;
    dir->is_new = true;
    return scan(watcher, dir, false);
}

/* ---- what the kernel says ---- */

/* The second half of a move did not come: it went away. */
static int end_move(struct watcher *watcher)
{
    if (!watcher->is_moving)
        return 0;
    watcher->is_moving = false;
    if (watcher->moving)
        watched_remove(&watcher->dirs, watcher->moving);
    watcher->moving = NULL;
    return tell(watcher,
                &(struct files_event){FILES_REMOVED, watcher->is_moving_dir, watcher->from, ""});
}

static int begin_move(struct watcher *watcher, struct watched_dir *dir,
                      const struct inotify_event *event)
{
    bool is_directory = event->mask & IN_ISDIR;

    if (!watched_path(dir, event->name, watcher->from, sizeof watcher->from)) {
        watcher->is_lost = true;
        return 0;
    }
    watcher->is_moving = true;
    watcher->is_moving_dir = is_directory;
    watcher->cookie = event->cookie;
    watcher->moving = is_directory ? watched_child(dir, event->name) : NULL;
    return 0;
}

static int finish_move(struct watcher *watcher, struct watched_dir *dir,
                       const struct inotify_event *event)
{
    bool is_directory = event->mask & IN_ISDIR;
    char *path = watcher->talk->item_path;

    if (!watcher->is_moving || watcher->cookie != event->cookie) {
        int result = tell_entry(watcher, FILES_CREATED, is_directory, dir, event->name);
        return result == 0 && is_directory && watcher->is_recursive
                   ? follow_new(watcher, dir, event->name)
                   : result;
    }
    watcher->is_moving = false;
    struct watched_dir *moved = take(watcher->moving);
    if (moved && !watched_move(moved, dir, event->name))
        watcher->is_lost = true;
    if (!watched_path(dir, event->name, path, FILES_MAX_RECORD_PATH)) {
        watcher->is_lost = true;
        return 0;
    }
    int result =
        tell(watcher, &(struct files_event){FILES_MOVED, is_directory, watcher->from, path});
    if (result < 0 || !is_directory || !watcher->is_recursive)
        return result;
    // What could not be opened by its way before is found by the new one.
    return moved ? scan(watcher, moved, false) : follow_new(watcher, dir, event->name);
}

static int on_entry(struct watcher *watcher, struct watched_dir *dir,
                    const struct inotify_event *event)
{
    bool is_directory = event->mask & IN_ISDIR;
    int result = 0;

    if (event->mask & IN_MOVED_FROM)
        return begin_move(watcher, dir, event);
    if (event->mask & IN_MOVED_TO)
        return finish_move(watcher, dir, event);
    if (event->mask & IN_CREATE) {
        result = tell_entry(watcher, FILES_CREATED, is_directory, dir, event->name);
        if (result == 0 && is_directory && watcher->is_recursive)
            result = follow_new(watcher, dir, event->name);
    } else if (event->mask & IN_DELETE) {
        result = tell_entry(watcher, FILES_REMOVED, is_directory, dir, event->name);
    } else if (event->mask & IN_MODIFY) {
        result = tell_entry(watcher, FILES_CHANGED, is_directory, dir, event->name);
    } else if (event->mask & IN_ATTRIB) {
        result = tell_entry(watcher, FILES_ATTRIBUTES, is_directory, dir, event->name);
    }
    return result;
}

/* Directories may have come and gone unseen. */
static int start_over(struct watcher *watcher)
{
    struct watched_dir *top = watcher->dirs.top;

    watcher->is_moving = false;
    watcher->moving = NULL;
    if (!top)
        return 0;
    while (top->children)
        watched_remove(&watcher->dirs, top->children);
    return watcher->is_recursive ? scan(watcher, top, true) : 0;
}

static int on_event(struct watcher *watcher, const struct inotify_event *event)
{
    bool is_second_half = event->mask & IN_MOVED_TO && watcher->is_moving;

    if (event->mask & IN_Q_OVERFLOW) {
        watcher->is_lost = true;
        return start_over(watcher);
    }
    if (!is_second_half && end_move(watcher) < 0)
        return TALK_OVER;
    struct watched_dir *dir = watched_find(&watcher->dirs, event->wd);
    if (!dir)
        return 0; // of one that went away meanwhile
    if (event->mask & (IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF)) {
        watcher->is_over |= dir == watcher->dirs.top;
        watched_remove(&watcher->dirs, dir);
        return 0;
    }
    // Paths are relative to where it was; those below are told by their parents.
    if (event->mask & IN_MOVE_SELF && dir == watcher->dirs.top)
        watcher->is_over = true;
    return event->len ? on_entry(watcher, dir, event) : 0;
}

/* Takes what is there. */
static int take_events(struct watcher *watcher)
{
    struct talk *talk = watcher->talk;
    ssize_t got = read(watcher->dirs.inotify, talk->in, sizeof talk->in);

    for (ssize_t at = 0; at + (ssize_t)sizeof(struct inotify_event) <= got && !watcher->is_over;) {
        const struct inotify_event *event = (const struct inotify_event *)(talk->in + at);
        if (on_event(watcher, event) < 0)
            return TALK_OVER;
        at += (ssize_t)(sizeof *event + event->len); // the kernel keeps them aligned
    }
    return 0;
}

/* Waits for something to happen; TALK_OVER when the asker is gone. */
static int wait_for_event(const struct watcher *watcher, int timeout_ms)
{
    struct pollfd fds[] = {{.fd = watcher->talk->sock, .events = POLLRDHUP},
                           {.fd = watcher->dirs.inotify, .events = POLLIN}};

    int ready = poll(fds, timeout_ms == SETTLE_MS ? 1 : 2, timeout_ms);
    if (fds[0].revents)
        return TALK_OVER;
    return ready > 0;
}

static int tell_lost(struct watcher *watcher)
{
    if (!watcher->is_lost)
        return 0;
    watcher->is_lost = false;
    return tell_plain(watcher, FILES_OVERFLOW);
}

static int watch(struct watcher *watcher)
{
    while (!watcher->is_over) {
        int ready = wait_for_event(watcher, watcher->is_moving ? PAIR_MS : -1);
        if (ready == TALK_OVER)
            return TALK_OVER;
        int result = ready ? take_events(watcher) : end_move(watcher);
        if (result < 0 || tell_lost(watcher) < 0 || flush(watcher) < 0)
            return TALK_OVER;
        if (!watcher->is_moving && wait_for_event(watcher, SETTLE_MS) == TALK_OVER)
            return TALK_OVER;
    }
    return 0;
}

/* ---- beginning and end ---- */

static int start(struct watcher *watcher, struct error *err)
{
    struct talk *talk = watcher->talk;
    struct stat info;

    autofd fd = inside_open(talk->base, talk->path, O_RDONLY | O_DIRECTORY, S_IFDIR, &info, err);
    if (fd < 0)
        return -1;
    watcher->device = info.st_dev;
    watcher->inode = info.st_ino;
    watcher->dirs.inotify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watcher->dirs.inotify < 0)
        return error_set(err, ERROR_LIMIT, "the sandbox watches as much as it may: %s",
                         strerror(errno));
    int number = inside_watch(watcher->dirs.inotify, fd, EVENTS);
    if (number < 0)
        return error_path(err, "watch " INSIDE_SHOWN, talk->path);
    struct watched_dir *top = watched_add(&watcher->dirs, number, NULL, "");
    if (!top)
        return error_sys(err, "watch " INSIDE_SHOWN, talk->path);
    if (watcher->is_recursive && scan(watcher, top, true) < 0)
        return TALK_OVER;
    if (watcher->is_lost)
        return error_set(err, ERROR_LIMIT,
                         "there are more than %u directories below " INSIDE_SHOWN
                         ": watch one further down",
                         watcher->maximum, talk->path);
    return tell_plain(watcher, FILES_STARTED) < 0 ? TALK_OVER : flush(watcher);
}

static void watcher_free(struct watcher *watcher)
{
    if (!watcher)
        return;
    if (watcher->dirs.top)
        watched_remove(&watcher->dirs, watcher->dirs.top);
    closep(&watcher->dirs.inotify);
    free(watcher);
}
DEFINE_AUTOPTR(watcher)

static int run(struct talk *talk, struct error *err)
{
    autoptr(watcher) watcher = calloc(1, sizeof *watcher);
    uint64_t wanted = talk->request.maximum;

    if (!watcher)
        return error_sys(err, "watch " INSIDE_SHOWN, talk->path);
    watcher->talk = talk;
    watcher->dirs.inotify = -1;
    watcher->maximum = wanted && wanted < MAX_DIRECTORIES ? (unsigned)wanted : MAX_DIRECTORIES;
    watcher->is_recursive = talk->flags & FILES_RECURSIVE;
    int result = start(watcher, err);
    return result == 0 ? watch(watcher) : result;
}

int files_do_watch(struct talk *talk, struct error *err)
{
    int result = -1;

    if (atomic_fetch_add(&n_watchers, 1) < MAX_WATCHERS)
        result = run(talk, err);
    else
        (void)error_set(err, ERROR_LIMIT, "at most %d directories of a sandbox are watched at once",
                        MAX_WATCHERS);
    atomic_fetch_sub(&n_watchers, 1);
    return result;
}
