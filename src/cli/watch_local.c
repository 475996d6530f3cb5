/* SPDX-License-Identifier: Apache-2.0 */
/* A local directory, watched; see watch_local.h. */
#include "cli/watch_local.h"

#include "base/auto.h"
#include "base/mem.h"
#include "cli/say.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define MASK                                                                                       \
    (IN_CREATE | IN_CLOSE_WRITE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB |            \
     IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK)

struct watched {
    int id; // of inotify
    char *path;
};

struct watch_local {
    int root, fd;
    bool (*leaves_out)(void *context, const char *path);
    void *context;
    struct watched *items; // sorted by id, which rise
    size_t count, room;
};

static struct watched *find(struct watch_local *watch, int id)
{
    for (size_t low = 0, high = watch->count; low < high;) {
        size_t middle = (low + high) / 2;
        if (watch->items[middle].id == id)
            return &watch->items[middle];
        if (watch->items[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

/* One that is watched already, and was moved, has the same id. */
static void note(struct watch_local *watch, int id, const char *path)
{
    struct watched *known = find(watch, id);

    if (known) {
        free(known->path);
        known->path = xstrdup(path);
        return;
    }
    if (watch->count == watch->room) {
        watch->room = watch->room ? watch->room * 2 : 64;
        watch->items = xrealloc(watch->items, watch->room, sizeof *watch->items);
    }
    watch->items[watch->count++] = (struct watched){id, xstrdup(path)};
}

static int add_tree(struct watch_local *watch, int parent, const char *name, const char *path,
                    struct burrow_error *err);

static int add_below(struct watch_local *watch, int fd, const char *path, struct burrow_error *err)
{
    DIR *directory = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    const struct dirent *item;
    int result = 0;

    if (!directory)
        return say_fail_sys(err, "read a directory");
    rewinddir(directory);
    while (result == 0 && (item = readdir(directory))) {
        if (strcmp(item->d_name, ".") == 0 || strcmp(item->d_name, "..") == 0 ||
            (item->d_type != DT_DIR && item->d_type != DT_UNKNOWN))
            continue;
        autofree char *whole =
            *path ? xasprintf("%s/%s", path, item->d_name) : xstrdup(item->d_name);
        if (!watch->leaves_out(watch->context, whole))
            result = add_tree(watch, fd, item->d_name, whole, err);
    }
    (void)closedir(directory);
    return result;
}

/* By its descriptor, so that no link is walked on the way. */
static int add_tree(struct watch_local *watch, int parent, const char *name, const char *path,
                    struct burrow_error *err)
{
    autofd fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    char place[32];

    if (fd < 0) // it went meanwhile, or is none
        return 0;
    if (watch->count >= WATCH_MOST_DIRECTORIES)
        return say_fail(err, BURROW_LIMIT, "more than %d directories: --ignore leaves some out",
                        WATCH_MOST_DIRECTORIES);
    (void)snprintf(place, sizeof place, "/proc/self/fd/%d/.", fd);
    int id = inotify_add_watch(watch->fd, place, MASK & ~(unsigned)IN_DONT_FOLLOW);
    if (id < 0)
        return say_fail_sys(err, "watch a directory (fs.inotify.max_user_watches says how many may "
                                 "be watched)");
    note(watch, id, path);
    return add_below(watch, fd, path, err);
}

int watch_local_new(int root, bool (*leaves_out)(void *context, const char *path), void *context,
                    struct watch_local **out, struct burrow_error *err)
{
    struct watch_local *watch = xnew(struct watch_local);

    *watch = (struct watch_local){.root = root, .leaves_out = leaves_out, .context = context};
    watch->fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (watch->fd < 0) {
        (void)say_fail_sys(err, "watch directories");
        free(watch);
        return -1;
    }
    if (add_tree(watch, root, ".", "", err) < 0) {
        watch_local_free(watch);
        return -1;
    }
    *out = watch;
    return 0;
}

void watch_local_free(struct watch_local *watch)
{
    if (!watch)
        return;
    for (size_t i = 0; i < watch->count; i++)
        free(watch->items[i].path);
    free(watch->items);
    closep(&watch->fd);
    free(watch);
}

int watch_local_fd(const struct watch_local *watch)
{
    return watch->fd;
}

static void forget(struct watch_local *watch, int id)
{
    struct watched *known = find(watch, id);

    if (!known)
        return;
    free(known->path);
    size_t at = (size_t)(known - watch->items);
    memmove(known, known + 1, (watch->count - at - 1) * sizeof *known);
    watch->count--;
}

static int take_event(struct watch_local *watch, const struct inotify_event *event,
                      void (*on_path)(void *context, const char *path), bool *is_whole,
                      struct burrow_error *err)
{
    if (event->mask & IN_Q_OVERFLOW) {
        *is_whole = true;
        return 0;
    }
    if (event->mask & IN_IGNORED) {
        forget(watch, event->wd);
        return 0;
    }
    const struct watched *in = find(watch, event->wd);
    if (!in || event->len == 0)
        return 0;
    autofree char *path =
        *in->path ? xasprintf("%s/%s", in->path, event->name) : xstrdup(event->name);
    if (watch->leaves_out(watch->context, path))
        return 0;
    on_path(watch->context, path);
    if (!(event->mask & IN_ISDIR) || !(event->mask & (IN_CREATE | IN_MOVED_TO | IN_MOVED_FROM)))
        return 0;
    *is_whole = true; // what was in it before it was watched, or went with it
    return event->mask & IN_MOVED_FROM ? 0 : add_tree(watch, watch->root, path, path, err);
}

int watch_local_read(struct watch_local *watch, void (*on_path)(void *context, const char *path),
                     bool *is_whole, struct burrow_error *err)
{
    char bytes[65536] __attribute__((aligned(8)));
    ssize_t got;

    while ((got = read(watch->fd, bytes, sizeof bytes)) > 0) {
        for (char *at = bytes; at < bytes + got;) {
            const struct inotify_event *event = (const void *)at;
            at += sizeof *event + event->len;
            if (take_event(watch, event, on_path, is_whole, err) < 0)
                return -1;
        }
    }
    return got < 0 && errno != EAGAIN && errno != EINTR ? say_fail_sys(err, "watch directories")
                                                        : 0;
}
