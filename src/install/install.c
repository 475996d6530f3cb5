/* SPDX-License-Identifier: Apache-2.0 */
/* Packages over a runtime, kept as layers; see install.h. */
#include "install/install.h"

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/layer_impl.h"
#include "install/install_box.h"
#include "runtime/digest.h"
#include "runtime/manifest.h"
#include "runtime/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>

#define LOCK ".lock-dep-" // before the id of a layer that is being made
#define ID_SIZE 40
#define PREFIX ".layers/dep-"

// ---- lists ----

static int by_text(const void *one, const void *other)
{
    return strcmp(*(char *const *)one, *(char *const *)other);
}

static void add_all(struct strings *list, const char *tool, const char *const *names)
{
    for (; names && *names; names++) {
        autofree char *item = xasprintf("%s %s", tool, *names);
        strings_add(list, item);
    }
}

char *install_list(const char *const *dependencies, const char *const *packages)
{
    autostrings list = {0}, once = {0};

    add_all(&list, "apt", dependencies);
    add_all(&list, "npm", packages);
    if (!list.count)
        return NULL;
    qsort(list.items, list.count, sizeof *list.items, by_text);
    for (size_t i = 0; i < list.count; i++)
        if (i == 0 || strcmp(list.items[i], list.items[i - 1]) != 0)
            strings_add(&once, list.items[i]);
    return strings_pack((const char *const *)once.items);
}

#define LOWER "abcdefghijklmnopqrstuvwxyz0123456789"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"

// Nothing that apt or npm could take for an option, a path or an address.
static bool is_package(const char *name, const char *letters, const char *first)
{
    size_t length = strlen(name);

    return length > 0 && length < 200 && strchr(first, *name) && !strstr(name, "..") &&
           strspn(name, letters) == length;
}

static int check_names(const char *noun, const char *const *names, const char *letters,
                       const char *first, struct error *err)
{
    size_t count = 0;

    for (; names && *names; names++) {
        if (!is_package(*names, letters, first))
            return error_refuse(err, ERROR_INVALID, noun,
                                "%s: '%.100s' is not the name of a package", noun, *names);
        if (++count > INSTALL_MOST)
            return error_refuse(err, ERROR_INVALID, noun, "%s: at most %d packages", noun,
                                INSTALL_MOST);
    }
    return 0;
}

int install_check(const char *const *dependencies, const char *const *packages, struct error *err)
{
    if (check_names("dependencies", dependencies, LOWER UPPER "+.-:=~", LOWER, err) < 0)
        return -1;
    return check_names("packages", packages, LOWER UPPER "@/._-~^", LOWER "@", err);
}

// ---- the layer's place ----

static void make_id(const struct runtime_image *image, const char *list, char id[ID_SIZE])
{
    struct digest first = {0}, second = {.state = 0x5bd1e9955bd1e995ULL};

    digest_add_text(&first, image->build);
    digest_add_text(&first, list);
    digest_add_text(&second, list);
    digest_add_text(&second, image->build);
    (void)snprintf(id, ID_SIZE, "%016llx%016llx", (unsigned long long)digest_end(&first),
                   (unsigned long long)digest_end(&second));
}

static int open_layer(const char *data_dir, const char *id, struct runtime_image **out,
                      struct error *err)
{
    autofree char *build = xasprintf(PREFIX "%s", id);

    if (runtime_image_open_at(data_dir, build, out, err) < 0)
        return -1;
    (void)futimens((*out)->lock_fd, NULL); // used now
    return 0;
}

bool install_is_there(const char *data_dir, const struct runtime_image *image, const char *list)
{
    char id[ID_SIZE];

    make_id(image, list, id);
    autofree char *path = xasprintf("%s/runtimes/" PREFIX "%s/manifest", data_dir, id);
    return access(path, F_OK) == 0;
}

/* Whether the file of this lock is still the one by that name: who has had it removes it. */
static bool is_still(int fd, int dir_fd, const char *path)
{
    struct stat mine, there;

    return fstat(fd, &mine) == 0 && fstatat(dir_fd, path, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           mine.st_dev == there.st_dev && mine.st_ino == there.st_ino;
}

// Waits for whoever installs the same.
static int lock_place(const struct install_options *options, const char *path, int *out_fd,
                      struct error *err)
{
    struct pollfd cancel = {.fd = options->cancel_fd, .events = POLLIN};

    for (;;) {
        autofd fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
            return error_sys(err, "open '%s'", path);
        while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
            if (errno != EWOULDBLOCK)
                return error_sys(err, "lock '%s'", path);
            if (poll(&cancel, 1, 200) > 0)
                return error_set(err, ERROR_GONE, "cancelled");
        }
        if (is_still(fd, AT_FDCWD, path)) {
            *out_fd = take_fd(fd);
            return 0;
        }
    }
}

// ---- making it ----

struct keeping {
    const struct runtime_image *image;
    const char *id;
    const char *work; // where it grows
};

static int copy_files(struct volume *volume, const char *scratch, int root_fd, struct error *err)
{
    autofree struct layer_copy *copy = xnew(struct layer_copy);
    autofd upper = -1;

    if (layer_open_scratch(volume, scratch, &upper, err) < 0)
        return -1;
    copy->top_fd = root_fd;
    int result = layer_copy_tree(copy, upper, root_fd, err);
    layer_copy_clear(copy);
    return result;
}

// The runtime's own build, and what that stands on, are below it.
static int write_manifest(const struct keeping *keeping, const struct tree_totals *totals,
                          int work_fd, struct error *err)
{
    const struct runtime_image *image = keeping->image;
    const struct manifest *below = image->memory;
    autofree char *dir = xasprintf("dep-%s", keeping->id);
    autofree char **layers = xcalloc(below->n_layers + 2, sizeof *layers);
    char made[32];
    time_t now = time(NULL);
    struct tm utc;
    autobuffer text = {0};

    (void)strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &utc));
    struct manifest manifest = *below;
    layers[0] = (char *)image->build;
    for (size_t i = 0; i < below->n_layers; i++)
        layers[i + 1] = below->layers[i];
    manifest.kind = RUNTIME_PACKAGES;
    manifest.dir = dir;
    manifest.made = made;
    manifest.layers = layers;
    manifest.n_layers = below->n_layers + 1;
    manifest.files = totals->files;
    manifest.bytes = totals->bytes;
    manifest.digest = totals->digest;
    if (manifest_format(&manifest, &text, err) < 0)
        return -1;
    return fd_replace_file(work_fd, "manifest", text.data, text.length, 0600, err);
}

static int keep(struct volume *volume, const char *scratch, const struct keeping *keeping,
                const char *place, struct error *err)
{
    struct tree_totals totals;

    autofree char *root = xasprintf("%s/rootfs", keeping->work);
    if (fd_make_dirs(root, 0755, err) < 0)
        return -1;
    autofd work_fd = open(keeping->work, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autofd root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (work_fd < 0 || root_fd < 0)
        return error_sys(err, "open '%s'", root);
    if (copy_files(volume, scratch, root_fd, err) < 0 || tree_measure(root_fd, &totals, err) < 0 ||
        write_manifest(keeping, &totals, work_fd, err) < 0)
        return -1;
    if (syncfs(work_fd) < 0 || rename(keeping->work, place) < 0)
        return error_sys(err, "put '%s' in its place", place);
    return 0;
}

static int make(struct engine *engine, const struct runtime_image *image, const char *list,
                const struct install_options *options, const char *top, const char *id,
                struct error *err)
{
    struct volume *volume = engine_volume(engine);
    autofree char *work = xasprintf("%s/.new-dep-%s", top, id);
    autofree char *place = xasprintf("%s/dep-%s", top, id);
    autofree char *scratch = xasprintf("install-%s", id);
    const struct keeping keeping = {image, id, work};

    // of one that was killed; and half of a layer that was being removed
    if (fd_remove_tree(AT_FDCWD, work, err) < 0 ||
        volume_scratch_remove(volume, scratch, err) < 0 || fd_remove_tree(AT_FDCWD, place, err) < 0)
        return -1;
    int result = install_box_run(engine, image, list, options, scratch, err);
    if (result == 0 && (result = keep(volume, scratch, &keeping, place, err)) < 0) {
        if (err->sys == ENOSPC || err->sys == EDQUOT)
            (void)error_restate(err, ERROR_NO_SPACE, "packages");
        (void)error_wrap(err, "keep packages in '%.200s'", top);
    }
    return result;
}

/* Removes what is left of an install, whose lock the caller holds, and the lock's file with the last of it: who comes now makes another. */
static void clean_held(struct volume *volume, int top_fd, const char *id)
{
    autofree char *lock = xasprintf(LOCK "%s", id);
    autofree char *work = xasprintf(".new-dep-%s", id);
    autofree char *scratch = xasprintf("install-%s", id);
    struct error ignored = {0};

    int is_left = fd_remove_tree(top_fd, work, &ignored);
    is_left |= volume_scratch_remove(volume, scratch, &ignored);
    if (!is_left)
        (void)unlinkat(top_fd, lock, 0);
}

/* Whoever installs holds the lock. */
static void clean_one(struct volume *volume, int top_fd, const char *lock)
{
    autofd fd = openat(top_fd, lock, O_RDWR | O_NOFOLLOW | O_CLOEXEC);

    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && is_still(fd, top_fd, lock))
        clean_held(volume, top_fd, lock + strlen(LOCK));
}

void install_clean(struct engine *engine, const char *data_dir)
{
    autofree char *top = xasprintf("%s/runtimes/.layers", data_dir);
    autodir dir = opendir(top);

    for (struct dirent *entry; dir && (entry = readdir(dir));)
        if (strncmp(entry->d_name, LOCK, strlen(LOCK)) == 0)
            clean_one(engine_volume(engine), dirfd(dir), entry->d_name);
}

/* With the lock, until the layer is there. */
static int make_locked(struct engine *engine, const struct runtime_image *image, const char *list,
                       const struct install_options *options, const char *top, const char *id,
                       struct error *err)
{
    autofree char *lock = xasprintf("%s/" LOCK "%s", top, id);
    autofd lock_fd = -1;

    if (fd_make_dirs(top, 0700, err) < 0 || lock_place(options, lock, &lock_fd, err) < 0)
        return -1;
    autofd top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (top_fd < 0)
        return error_sys(err, "open '%s'", top);
    install_clean(engine, options->data_dir);
    int result = install_is_there(options->data_dir, image, list)
                     ? 0
                     : make(engine, image, list, options, top, id, err);
    clean_held(engine_volume(engine), top_fd, id);
    return result;
}

int install_open(struct engine *engine, const struct runtime_image *image, const char *list,
                 const struct install_options *options, struct runtime_image **out,
                 struct error *err)
{
    autofree char *top = xasprintf("%s/runtimes/.layers", options->data_dir);
    char id[ID_SIZE];

    make_id(image, list, id);
    if (open_layer(options->data_dir, id, out, err) == 0)
        return 0;
    if (image->n_binds)
        return error_refuse(err, ERROR_INVALID, "runtime",
                            "nothing can be installed over the runtime '%s:%s'; use base:latest",
                            image->name, image->tag);
    if (make_locked(engine, image, list, options, top, id, err) < 0)
        return -1;
    return open_layer(options->data_dir, id, out, err);
}

// ---- removing ----

static void look_at(int top_fd, const char *name, int64_t unused_since_ms, bool is_trial,
                    struct install_found *out)
{
    autofree char *path = xasprintf("%s/manifest", name);
    autofd fd = openat(top_fd, path, O_RDONLY | O_CLOEXEC);
    autoptr(manifest) manifest = NULL;
    struct error ignored = {0};
    struct stat info;

    if (fd < 0 || fstat(fd, &info) < 0)
        return;
    char *text = xcalloc(1, MANIFEST_MAX + 1);
    if (read(fd, text, MANIFEST_MAX) < 0 || manifest_parse(text, &manifest, &ignored) < 0)
        return;
    out->count++;
    out->bytes += manifest->bytes;
    int64_t used_ms = (int64_t)info.st_mtim.tv_sec * 1000;
    if (used_ms > unused_since_ms || flock(fd, LOCK_EX | LOCK_NB) < 0)
        return;
    if (is_trial ||
        (unlinkat(top_fd, path, 0) == 0 && fd_remove_tree(top_fd, name, &ignored) == 0)) {
        out->removed++;
        out->removed_bytes += manifest->bytes;
    }
}

int install_sweep(const char *data_dir, int64_t unused_since_ms, bool is_trial,
                  struct install_found *out, struct error *err)
{
    autofree char *top = xasprintf("%s/runtimes/.layers", data_dir);
    autodir dir = opendir(top);

    *out = (struct install_found){0};
    if (!dir)
        return errno == ENOENT ? 0 : error_sys(err, "list '%s'", top);
    for (struct dirent *entry; (entry = readdir(dir));)
        if (strncmp(entry->d_name, "dep-", 4) == 0)
            look_at(dirfd(dir), entry->d_name, unused_since_ms, is_trial, out);
    return 0;
}
