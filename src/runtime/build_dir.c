/* SPDX-License-Identifier: Apache-2.0 */
/* The builds of one runtime's name on disk; see build_dir.h. */
#include "runtime/build_dir.h"

#include "base/fd.h"
#include "base/mem.h"
#include "runtime/holders.h"

#include <fcntl.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

struct build_dir *build_dir_new(const char *data_dir, const char *name)
{
    struct build_dir *builds = xnew(struct build_dir);

    builds->path = xasprintf("%s/runtimes", data_dir);
    builds->name = xstrdup(name);
    builds->lock_path = xasprintf("%s/.lock-%s", builds->path, name);
    return builds;
}

void build_dir_free(struct build_dir *builds)
{
    if (!builds)
        return;
    free(builds->path);
    free(builds->name);
    free(builds->lock_path);
    free(builds);
}

int build_dir_open(const struct build_dir *builds, const char *tag, int lock, int *out_fd,
                   struct manifest **out, struct error *err)
{
    char path[PATH_MAX];

    (void)snprintf(path, sizeof path, "%s/%s/%s/manifest", builds->path, builds->name, tag);
    return manifest_open(path, lock, out_fd, out, err);
}

static int open_dir(const struct build_dir *builds)
{
    autofree char *path = xasprintf("%s/%s", builds->path, builds->name);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

// ---- putting ----

static int point_tag(int dir_fd, const char *tag, const char *target, struct error *err)
{
    autofree char *fresh = xasprintf(".new-%s", tag);

    (void)unlinkat(dir_fd, fresh, 0);
    if (symlinkat(target, dir_fd, fresh) < 0 || renameat(dir_fd, fresh, dir_fd, tag) < 0)
        return error_sys(err, "point the tag '%s' at '%s'", tag, target);
    return 0;
}

int build_dir_put(const struct build_dir *builds, const char *work, const char *dir,
                  const char **tags, struct error *err)
{
    autofree char *path = xasprintf("%s/%s", builds->path, builds->name);

    if (fd_make_dirs(path, 0755, err) < 0)
        return -1;
    autofd dir_fd = open_dir(builds);
    if (dir_fd < 0)
        return error_sys(err, "open '%s'", path);
    if (renameat(AT_FDCWD, work, dir_fd, dir) < 0)
        return error_sys(err, "move '%s' to '%s/%s'", work, path, dir);
    for (; *tags; tags++)
        if (point_tag(dir_fd, *tags, dir, err) < 0)
            return -1;
    (void)fsync(dir_fd); // without it a power cut may bring back the old one, which is as good
    return 0;
}

// ---- who stands on what ----

static bool names_build(const char *path, const char *build, char *user, size_t size)
{
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;
    struct error ignored;

    if (manifest_open(path, 0, &fd, &manifest, &ignored) < 0)
        return false;
    for (size_t i = 0; i < manifest->n_layers; i++)
        if (strcmp(manifest->layers[i], build) == 0) {
            (void)snprintf(user, size, "%s:%s", manifest->name, manifest->tag);
            return true;
        }
    return false;
}

void build_sweep_clear(struct build_sweep *sweep)
{
    strings_clear(&sweep->gone);
}

static bool is_gone(const struct build_sweep *sweep, const char *build)
{
    for (size_t i = 0; i < sweep->gone.count; i++)
        if (strcmp(sweep->gone.items[i], build) == 0)
            return true;
    return false;
}

bool build_dir_is_named(const char *path, const char *build, const struct build_sweep *sweep,
                        char *user, size_t size)
{
    autodir names = opendir(path);
    bool is_named = false;

    for (struct dirent *name; names && !is_named && (name = readdir(names));) {
        autofree char *below = xasprintf("%s/%s", path, name->d_name);
        bool is_place = name->d_name[0] != '.' || strcmp(name->d_name, ".layers") == 0;
        autodir builds = is_place ? opendir(below) : NULL;
        for (struct dirent *entry; builds && !is_named && (entry = readdir(builds));) {
            autofree char *other = xasprintf("%s/%s", name->d_name, entry->d_name);
            autofree char *manifest = xasprintf("%s/%s/manifest", path, other);
            is_named = strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
                       !(sweep && is_gone(sweep, other)) &&
                       names_build(manifest, build, user, size);
        }
    }
    return is_named;
}

// ---- removing ----

static bool points_at(int dir_fd, const char *tag, const char *dir)
{
    char target[PATH_MAX];
    ssize_t length = readlinkat(dir_fd, tag, target, sizeof target - 1);

    if (length < 0)
        return false;
    target[length] = '\0';
    return strcmp(target, dir) == 0;
}

// Calls for every tag that points at `dir`, until one call is not 0.
static int for_tags(int dir_fd, const char *dir, int (*call)(int dir_fd, const char *tag))
{
    int copy = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), result = 0;
    autodir list = copy < 0 ? NULL : fdopendir(copy);

    for (struct dirent *entry; list && result == 0 && (entry = readdir(list));)
        if (entry->d_name[0] != '.' && points_at(dir_fd, entry->d_name, dir))
            result = call(dir_fd, entry->d_name);
    return result;
}

static int unlink_tag(int dir_fd, const char *tag)
{
    return unlinkat(dir_fd, tag, 0);
}

static int say_yes(int dir_fd, const char *tag)
{
    return 1;
}

// The manifest goes first: whoever waits for its lock sees that the build is gone.
static int remove_build(int dir_fd, const char *dir, struct error *err)
{
    autofree char *manifest = xasprintf("%s/manifest", dir);

    if (unlinkat(dir_fd, manifest, 0) < 0 && errno != ENOENT)
        return error_sys(err, "remove '%s'", manifest);
    return fd_remove_tree(dir_fd, dir, err);
}

static uint64_t bytes_of(const char *path, const char *build)
{
    autofree char *place = xasprintf("%s/%s/manifest", path, build);
    autoptr(manifest) manifest = NULL;
    autofd fd = -1;
    struct error ignored;

    return manifest_open(place, 0, &fd, &manifest, &ignored) == 0 ? manifest->bytes : 0;
}

void build_sweep_take(struct build_sweep *sweep, const char *path, const char *place, int dir_fd,
                      const char *name)
{
    autofree char *build = xasprintf("%s/%s", place, name);
    autofree char *manifest = xasprintf("%s/manifest", name);
    autofd fd = openat(dir_fd, manifest, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    struct error ignored;
    char user[160];

    if ((fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) || is_gone(sweep, build) ||
        build_dir_is_named(path, build, sweep, user, sizeof user))
        return;
    uint64_t bytes = bytes_of(path, build);
    if (!sweep->is_trial && remove_build(dir_fd, name, &ignored) < 0)
        return;
    strings_add(&sweep->gone, build);
    sweep->bytes += bytes;
}

static void sweep_build(const struct build_dir *builds, int dir_fd, const char *dir,
                        struct build_sweep *sweep)
{
    char target[PATH_MAX];

    if (readlinkat(dir_fd, dir, target, sizeof target) >= 0) {
        if (!sweep->is_trial)
            (void)unlinkat(dir_fd, dir, 0); // that was to become a tag
        return;
    }
    if (!for_tags(dir_fd, dir, say_yes))
        build_sweep_take(sweep, builds->path, builds->name, dir_fd, dir);
}

void build_dir_sweep(const struct build_dir *builds, struct build_sweep *sweep)
{
    autofd dir_fd = open_dir(builds);
    int copy = dir_fd < 0 ? -1 : openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir list = copy < 0 ? NULL : fdopendir(copy);

    for (struct dirent *entry; list && (entry = readdir(list));)
        if (entry->d_name[0] == '.' && strcmp(entry->d_name, ".") != 0 &&
            strcmp(entry->d_name, "..") != 0)
            sweep_build(builds, dir_fd, entry->d_name, sweep);
}

static int refuse_used(const struct build_dir *builds, const char *tag, int fd, struct error *err)
{
    char users[160];
    unsigned count = holders_describe(fd, users, sizeof users);

    return error_refuse(err, ERROR_BUSY, "runtime",
                        "runtime '%s:%s' is in use by %s%s; end %s first", builds->name, tag,
                        count ? "a sandbox of " : "a sandbox", users, count > 1 ? "them" : "that");
}

// What the tag points at, locked against users.
static int lock_build(const struct build_dir *builds, int dir_fd, const char *tag, char *dir,
                      size_t size, int *out_fd, struct error *err)
{
    ssize_t length = dir_fd < 0 ? -1 : readlinkat(dir_fd, tag, dir, size - 1);

    if (length < 0)
        return error_set(err, ERROR_NOT_FOUND, "runtime '%s:%s' is not built", builds->name, tag);
    dir[length] = '\0';
    if (strchr(dir, '/'))
        return error_set(err, ERROR_INVALID, "the tag '%s' of runtime '%s' points elsewhere", tag,
                         builds->name);
    autofree char *path = xasprintf("%s/manifest", dir);
    autofd fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0)
        return refuse_used(builds, tag, fd, err);
    autofree char *build = xasprintf("%s/%s", builds->name, dir);
    char user[160];
    if (build_dir_is_named(builds->path, build, NULL, user, sizeof user))
        return error_refuse(err, ERROR_BUSY, "runtime",
                            "runtime '%s:%s' is what '%s' stands on; remove that first",
                            builds->name, tag, user);
    *out_fd = take_fd(fd);
    return 0;
}

int build_dir_remove(const struct build_dir *builds, const char *tag, struct error *err)
{
    char dir[NAME_MAX + 1];
    autofd dir_fd = open_dir(builds);
    autofd lock_fd = open(builds->lock_path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    autofd manifest_fd = -1;

    if (lock_fd >= 0 && flock(lock_fd, LOCK_EX | LOCK_NB) < 0)
        return error_set(err, ERROR_CONFLICT,
                         "runtime '%s:%s' is being built or removed; wait for that", builds->name,
                         tag);
    if (lock_build(builds, dir_fd, tag, dir, sizeof dir, &manifest_fd, err) < 0)
        return -1;
    if (for_tags(dir_fd, dir, unlink_tag) < 0)
        return error_sys(err, "remove the tags of runtime '%s:%s'", builds->name, tag);
    if (remove_build(dir_fd, dir, err) < 0)
        return error_wrap(err, "remove runtime '%s:%s'", builds->name, tag);
    autofree char *path = xasprintf("%s/%s", builds->path, builds->name);
    (void)rmdir(path); // stays when another tag is there
    return 0;
}
