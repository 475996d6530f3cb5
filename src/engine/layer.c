/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Saves, restores, merges and removes layers; see layer.h. In their directory a layer stands under its name. What is being made is
 * '.new-<id>', what is removed '.gone-<id>.<name>': a read-only subvolume can be renamed in its directory only. A scratch
 * that is being made from a layer is 'layer-new-<id>'.
 */
#include "engine/layer.h"

#include "base/fd.h"
#include "base/id.h"
#include "base/mem.h"
#include "engine/layer_impl.h"
#include "engine/slot.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/fs.h>

#define NEW ".new-"
#define GONE ".gone-"
#define NEW_SCRATCH "layer-new-"

bool layer_is_cheap(const struct volume *volume)
{
    return volume->ops->layers != NULL;
}

static int check_name(const char *name, struct error *err)
{
    if (volume_is_name(name))
        return 0;
    return error_set(err, ERROR_INVALID,
                     "a layer is named by 1 to 64 letters, digits and '-', not '%.80s'", name);
}

static int no_layer(const char *name, struct error *err)
{
    return error_refuse(err, ERROR_NOT_FOUND, "layer", "there is no layer '%s'", name);
}

static int conflict(const char *name, struct error *err)
{
    return error_set(err, ERROR_CONFLICT, "there is a layer '%s' already", name);
}

int layer_open_all(struct volume *volume, bool is_made, struct error *err)
{
    int base = volume->dir_fd;
    autofd data = -1;

    if (base < 0) { // in memory; layers are not
        if (is_made && fd_make_dirs(volume->data_dir, 0700, err) < 0)
            return -1;
        data = open(volume->data_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (data < 0 && errno == ENOENT)
            return error_set(err, ERROR_NOT_FOUND, "there are no layers");
        if (data < 0)
            return error_sys(err, "open '%s'", volume->data_dir);
        base = data;
    }
    int fd = openat(base, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT && is_made) {
        if (mkdirat(base, "layers", 0700) < 0 && errno != EEXIST)
            return error_sys(err, "make the directory 'layers'");
        fd = openat(base, "layers", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    }
    if (fd < 0 && errno == ENOENT)
        return error_set(err, ERROR_NOT_FOUND, "there are no layers");
    return fd < 0 ? error_sys(err, "open the directory 'layers'") : fd;
}

int layer_prefix(int layers_fd, char prefix[LAYER_PREFIX_SIZE], struct error *err)
{
    struct stat info;
    if (fstat(layers_fd, &info) < 0)
        return error_sys(err, "look at the directory 'layers'");
    (void)snprintf(prefix, LAYER_PREFIX_SIZE, "%llx:%llx/", (unsigned long long)info.st_dev,
                   (unsigned long long)info.st_ino);
    return 0;
}

/* 1, 0 when there are no layers at all, -1. */
static int open_all_if_any(struct volume *volume, int *fd, struct error *err)
{
    *fd = layer_open_all(volume, false, err);
    if (*fd >= 0)
        return 1;
    return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
}

static int open_tree(int layers_fd, const char *name, int *dir_fd, struct error *err)
{
    char path[80];
    (void)snprintf(path, sizeof path, "%s/" LAYER_UPPER, name);
    int fd = openat(layers_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return no_layer(name, err);
    if (fd < 0)
        return error_sys(err, "open layer '%s'", name);
    *dir_fd = fd;
    return 0;
}

int layer_open(struct volume *volume, const char *name, int *dir_fd, struct error *err)
{
    autofd all = -1;
    if (check_name(name, err) < 0)
        return -1;
    int any = open_all_if_any(volume, &all, err);
    if (any <= 0)
        return any < 0 ? -1 : no_layer(name, err);
    return open_tree(all, name, dir_fd, err);
}

/* Making one by filling a directory, which gets its name when everything is on disk */

static int discard(struct volume *volume, int layers_fd, const char *name, struct error *err)
{
    if (volume->ops->layers)
        return volume->ops->layers->remove(volume, layers_fd, name, err);
    return fd_remove_tree(layers_fd, name, err);
}

static int begin(struct volume *volume, int layers_fd, char temporary[64], int *top_fd,
                 struct error *err)
{
    char id[ID_TEXT], path[80];
    (void)snprintf(temporary, 64, NEW "%s", id_make(id));
    (void)snprintf(path, sizeof path, "%s/" LAYER_UPPER, temporary);
    if (volume->ops->layers && volume->ops->layers->make(layers_fd, temporary, err) < 0)
        return -1;
    if (!volume->ops->layers && mkdirat(layers_fd, temporary, 0700) < 0)
        return error_sys(err, "make a directory");
    if (mkdirat(layers_fd, path, 0755) < 0)
        return error_sys(err, "make a directory");
    *top_fd = openat(layers_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return *top_fd < 0 ? error_sys(err, "open a directory") : 0;
}

static int finish(struct volume *volume, int layers_fd, const char *temporary, const char *name,
                  struct error *err)
{
    if (syncfs(layers_fd) < 0)
        return error_sys(err, "write to the disk");
    if (volume->ops->layers && volume->ops->layers->seal(layers_fd, temporary, err) < 0)
        return -1;
    if (syscall(SYS_renameat2, layers_fd, temporary, layers_fd, name, RENAME_NOREPLACE) < 0)
        return errno == EEXIST ? conflict(name, err) : error_sys(err, "name the layer");
    if (fsync(layers_fd) == 0)
        return 0;
    error_sys(err, "write to the disk");
    (void)renameat(layers_fd, name, layers_fd, temporary); // to be discarded
    return -1;
}

/* A layer from trees, top first. */
static int make_from(struct volume *volume, int layers_fd, const char *name, const int *trees,
                     size_t count, uint64_t *bytes, const atomic_bool *is_cancelled,
                     struct error *err)
{
    struct layer_copy *copy = xnew(struct layer_copy);
    struct error ignored;
    char temporary[64];
    autofd top = -1;

    int result = begin(volume, layers_fd, temporary, &top, err);
    copy->top_fd = top;
    copy->is_cancelled = is_cancelled;
    if (result == 0)
        result = count == 1 ? layer_copy_tree(copy, trees[0], top, err)
                            : layer_merge_into(copy, trees, count, top, err);
    closep(&top);
    if (result == 0)
        result = finish(volume, layers_fd, temporary, name, err);
    if (result < 0)
        (void)discard(volume, layers_fd, temporary, &ignored); // swept at the latest
    else if (bytes)
        *bytes = copy->bytes;
    layer_copy_clear(copy);
    free(copy);
    return result;
}

int layer_open_scratch(struct volume *volume, const char *scratch, int *dir_fd, struct error *err)
{
    autofd top = -1;
    if (volume_scratch_open(volume, scratch, &top, err) < 0)
        return -1;
    int fd = openat(top, LAYER_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open scratch '%s'", scratch);
    *dir_fd = fd;
    return 0;
}

static int save(struct volume *volume, const char *scratch, const char *name, uint64_t *bytes,
                struct error *err)
{
    autofd tree = -1;
    autofd all = layer_open_all(volume, true, err);
    if (all < 0)
        return -1;
    if (volume->ops->layers)
        return volume->ops->layers->save(volume, scratch, all, name, bytes, err);
    if (faccessat(all, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return conflict(name, err);
    if (layer_open_scratch(volume, scratch, &tree, err) < 0)
        return -1;
    return make_from(volume, all, name, &tree, 1, bytes, NULL, err);
}

int layer_save(struct volume *volume, const char *scratch, const char *name, uint64_t *bytes,
               struct error *err)
{
    uint64_t unused;
    if (check_name(name, err) < 0)
        return -1;
    if (!volume_is_name(scratch))
        return error_set(err, ERROR_INVALID, "'%.80s' names no scratch", scratch);
    if (save(volume, scratch, name, bytes ? bytes : &unused, err) < 0)
        return error_wrap(err, "save scratch '%s' as layer '%s'", scratch, name);
    return 0;
}

/* Merging */

static void close_all(int *fds, size_t count)
{
    for (size_t i = 0; i < count; i++)
        closep(&fds[i]);
    free(fds);
}

int layer_merge(struct volume *volume, const char *const *names, size_t n_names, const char *name,
                uint64_t *bytes, const atomic_bool *is_cancelled, struct error *err)
{
    size_t opened = 0;
    int result = 0;

    if (n_names == 0)
        return error_set(err, ERROR_INVALID, "nothing to merge");
    if (check_name(name, err) < 0)
        return -1;
    autofd all = layer_open_all(volume, true, err);
    if (all < 0)
        return -1;
    if (faccessat(all, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return conflict(name, err);
    int *trees = xcalloc(n_names, sizeof *trees);
    for (; result == 0 && opened < n_names; opened += result == 0) {
        result = check_name(names[opened], err);
        if (result == 0)
            result = open_tree(all, names[opened], &trees[opened], err);
    }
    if (result == 0)
        result = make_from(volume, all, name, trees, n_names, bytes, is_cancelled, err);
    close_all(trees, opened);
    return result < 0 ? error_wrap(err, "merge %zu layers to '%s'", n_names, name) : 0;
}

/* Restoring */

static int copy_to_scratch(struct volume *volume, int layers_fd, const char *name,
                           const char *scratch, const struct volume_limits *limits,
                           struct error *err)
{
    struct error ignored;
    autofd tree = -1, dir = -1, top = -1;

    if (open_tree(layers_fd, name, &tree, err) < 0 ||
        volume_scratch_create(volume, scratch, limits, &dir, err) < 0)
        return -1;
    struct layer_copy *copy = xnew(struct layer_copy);
    top = openat(dir, LAYER_UPPER, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    copy->top_fd = top;
    int result =
        top < 0 ? error_sys(err, "open the scratch") : layer_copy_tree(copy, tree, top, err);
    if (result == 0 && volume->scratch_fd >= 0 && syncfs(top) < 0)
        result = error_sys(err, "write to the disk");
    layer_copy_clear(copy);
    free(copy);
    if (result < 0) {
        closep(&top);
        closep(&dir);
        (void)volume_scratch_remove(volume, scratch, &ignored);
    }
    return result;
}

static int restore(struct volume *volume, const char *name, uint64_t layer_bytes,
                   const char *scratch, const struct volume_limits *limits, struct error *err)
{
    struct error ignored;
    char id[ID_TEXT], temporary[64];
    autofd all = -1;

    int any = open_all_if_any(volume, &all, err);
    if (any <= 0)
        return any < 0 ? -1 : no_layer(name, err);
    if (faccessat(all, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? no_layer(name, err) : error_sys(err, "look for it");
    (void)snprintf(temporary, sizeof temporary, NEW_SCRATCH "%s", id_make(id));
    int result = volume->ops->layers ? volume->ops->layers->branch(volume, all, name, layer_bytes,
                                                                   temporary, limits, err)
                                     : copy_to_scratch(volume, all, name, temporary, limits, err);
    if (result < 0)
        return -1;
    result = volume->ops->replace(volume, temporary, scratch, err);
    if (result < 0)
        (void)volume_scratch_remove(volume, temporary, &ignored);
    return result;
}

int layer_restore(struct volume *volume, const char *name, uint64_t layer_bytes,
                  const char *scratch, const struct volume_limits *limits, struct error *err)
{
    if (check_name(name, err) < 0)
        return -1;
    if (!volume_is_name(scratch))
        return error_set(err, ERROR_INVALID, "'%.80s' names no scratch", scratch);
    if (restore(volume, name, layer_bytes, scratch, limits, err) < 0)
        return error_wrap(err, "restore layer '%s' to scratch '%s'", name, scratch);
    return 0;
}

/* Removing */

/*
 * First the name goes, then it is asked who uses it: a launch notes what it uses before it opens it. So one of the two
 * sees the other.
 */
static int free_gone(struct volume *volume, int layers_fd, int slots_fd, const char *gone,
                     unsigned *n_used, struct error *err)
{
    const char *name = strchr(gone + strlen(GONE), '.');
    char note[LAYER_PREFIX_SIZE + 80];

    if (layer_prefix(layers_fd, note, err) < 0)
        return -1;
    (void)snprintf(note + strlen(note), sizeof note - strlen(note), "%s", name ? name + 1 : "");
    int used = name ? slots_have_note(slots_fd, note, err) : 0;
    if (used < 0)
        return -1;
    *n_used += used > 0;
    return used > 0 ? 0 : discard(volume, layers_fd, gone, err);
}

static int list_all(int layers_fd, struct layer_names *names, struct error *err)
{
    return layer_names_read(names, layers_fd, err);
}

static int reclaim(struct volume *volume, int layers_fd, unsigned *n_used, struct error *err)
{
    struct layer_names names = {0};
    struct error later;
    autofd slots = -1;

    int result = list_all(layers_fd, &names, err);
    for (size_t i = 0; i < names.count; i++) {
        if (strncmp(names.names[i], GONE, strlen(GONE)) != 0)
            continue;
        if (slots < 0 && slots_open(&slots, result < 0 ? &later : err) < 0) {
            result = -1;
            break;
        }
        if (free_gone(volume, layers_fd, slots, names.names[i], n_used, result < 0 ? &later : err) <
            0)
            result = -1;
    }
    layer_names_clear(&names);
    return result;
}

int layer_reclaim(struct volume *volume, unsigned *n_used, struct error *err)
{
    unsigned used = 0;
    autofd all = -1;
    int any = open_all_if_any(volume, &all, err);
    if (any > 0 && reclaim(volume, all, &used, err) < 0)
        return error_wrap(err, "free removed layers");
    if (any >= 0 && n_used)
        *n_used = used;
    return any < 0 ? -1 : 0;
}

/* A full volume has no room for the other name, but a layer that no box uses can be destroyed there: or it would stay full for good. */
static int remove_in_place(struct volume *volume, int layers_fd, const char *name,
                           struct error *err)
{
    char note[LAYER_PREFIX_SIZE + 80];
    autofd slots = -1;

    if (layer_prefix(layers_fd, note, err) < 0 || slots_open(&slots, err) < 0)
        return -1;
    (void)snprintf(note + strlen(note), sizeof note - strlen(note), "%s", name);
    int used = slots_have_note(slots, note, err);
    if (used < 0)
        return -1;
    if (used > 0)
        return error_sys_code(err, ENOSPC, "rename it while a sandbox uses it");
    return discard(volume, layers_fd, name, err);
}

/* 1: it has the name `gone`. 0: it is not there any more, be it that there was no room for another name. */
static int hide(struct volume *volume, int layers_fd, const char *name, char gone[128],
                struct error *err)
{
    char id[ID_TEXT];
    (void)snprintf(gone, 128, GONE "%s.%s", id_make(id), name);
    if (renameat(layers_fd, name, layers_fd, gone) == 0)
        return 1;
    if (errno == ENOENT)
        return 0; // somebody else was faster
    if (errno == ENOSPC || errno == EDQUOT)
        return remove_in_place(volume, layers_fd, name, err);
    return error_sys(err, "rename it");
}

int layer_remove(struct volume *volume, const char *name, struct error *err)
{
    struct error ignored;
    char gone[128];
    unsigned n_used = 0;
    autofd all = -1, slots = -1;

    if (check_name(name, err) < 0)
        return -1;
    int any = open_all_if_any(volume, &all, err);
    if (any <= 0)
        return any;
    if (faccessat(all, name, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
        return 0;
    int hidden = hide(volume, all, name, gone, err);
    if (hidden < 0)
        return error_wrap(err, "remove layer '%s'", name);
    if (hidden && slots_open(&slots, &ignored) == 0) // what cannot be freed now is layer_reclaim's
        (void)free_gone(volume, all, slots, gone, &n_used, &ignored);
    return 0;
}

/* What was begun and never finished. */
static int sweep_new(struct volume *volume, int layers_fd, const struct layer_names *names,
                     struct error *err)
{
    struct volume_names scratches = {0};
    struct error later;
    int result = 0;

    for (size_t i = 0; i < names->count; i++) {
        if (strncmp(names->names[i], NEW, strlen(NEW)) == 0 &&
            discard(volume, layers_fd, names->names[i], result < 0 ? &later : err) < 0)
            result = -1;
    }
    if (volume->ops->list(volume, &scratches, result < 0 ? &later : err) < 0)
        return -1;
    for (size_t i = 0; i < scratches.count; i++) {
        if (strncmp(scratches.names[i], NEW_SCRATCH, strlen(NEW_SCRATCH)) == 0 &&
            volume_scratch_remove(volume, scratches.names[i], result < 0 ? &later : err) < 0)
            result = -1;
    }
    volume_names_clear(&scratches);
    return result;
}

int layer_sweep(struct volume *volume, bool (*is_owned)(const char *name, void *data), void *data,
                struct error *err)
{
    struct layer_names names = {0};
    struct error later;
    unsigned unused = 0;
    autofd all = -1;

    int any = open_all_if_any(volume, &all, err);
    if (any < 0)
        return -1;
    int result = any > 0 ? list_all(all, &names, err) : 0;
    for (size_t i = 0; i < names.count; i++) {
        if (volume_is_name(names.names[i]) && !is_owned(names.names[i], data) &&
            layer_remove(volume, names.names[i], result < 0 ? &later : err) < 0)
            result = -1;
    }
    if (sweep_new(volume, all, &names, result < 0 ? &later : err) < 0)
        result = -1;
    layer_names_clear(&names);
    if (any > 0 && reclaim(volume, all, &unused, result < 0 ? &later : err) < 0)
        result = -1;
    return result < 0 ? error_wrap(err, "sweep the layers") : 0;
}
