/* SPDX-License-Identifier: Apache-2.0 */
/* Many layers made one that stands for them; see layer.h. */
#include "base/auto.h"
#include "engine/layer_impl.h"

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

struct merge {
    const struct layer_dir *roots;
    struct layer_copy *copy;
    size_t n_open; // real directories on the way
};

static int merge_dir(struct merge *merge, const struct layer_dir *dir, int to_fd, unsigned depth,
                     struct error *err);

/* Says what lies below a merged directory, where that is not what lies below its parent under the same name. */
static int mark_dir(int fd, const struct layer_dir *parent, const struct layer_dir *dir,
                    const char *name, struct error *err)
{
    size_t length = parent->below ? strlen(parent->below) : 0;
    bool is_plain = parent->below && dir->below &&
                    strncmp(dir->below, parent->below, length) == 0 && dir->below[length] == '/' &&
                    strcmp(dir->below + length + 1, name) == 0;
    if (is_plain || (!parent->below && !dir->below))
        return 0;
    int result = dir->below ? fsetxattr(fd, LAYER_REDIRECT, dir->below, strlen(dir->below), 0)
                            : fsetxattr(fd, LAYER_OPAQUE, "y", 1, 0);
    return result < 0 ? error_sys(err, "mark a directory") : 0;
}

static int merge_subdir(struct merge *merge, const struct layer_dir *parent,
                        const struct layer_entry *entry, const char *name, int to_fd,
                        unsigned depth, struct error *err)
{
    if (depth > LAYER_MAX_DEPTH)
        return error_set(err, ERROR_LIMIT, "directories are nested deeper than %d",
                         LAYER_MAX_DEPTH);
    if (merge->n_open + entry->dir.count > LAYER_MAX_OPEN)
        return error_set(err, ERROR_LIMIT, "too many layers have too deep directories");
    if (mkdirat(to_fd, name, 0700) < 0)
        return error_sys(err, "make a directory");
    autofd fd = openat(to_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return error_sys(err, "open a directory");
    merge->n_open += entry->dir.count;
    int result = mark_dir(fd, parent, &entry->dir, name, err);
    if (result == 0)
        result = merge_dir(merge, &entry->dir, fd, depth, err);
    merge->n_open -= entry->dir.count;
    if (result < 0)
        return -1;
    return layer_copy_attributes(entry->dir.places[0].fd, fd, &entry->info, false, err);
}

static int merge_entry(struct merge *merge, const struct layer_dir *parent,
                       const struct layer_entry *entry, const char *name, int to_fd, unsigned depth,
                       struct error *err)
{
    if (entry->kind == ENTRY_DIR)
        return merge_subdir(merge, parent, entry, name, to_fd, depth, err);
    // A whiteout where nothing can show through would itself be seen.
    if (entry->kind == ENTRY_NONE && (!entry->is_hidden || !parent->below))
        return 0;
    if (strcmp(entry->name, name) != 0)
        return error_set(err, ERROR_SYSTEM, "a file goes by two names");
    return layer_copy_entry(merge->copy, entry->parent_fd, name, &entry->info, to_fd, err);
}

static int merge_name(struct merge *merge, const struct layer_dir *dir, const char *name, int to_fd,
                      unsigned depth, struct error *err)
{
    struct layer_entry entry;
    if (layer_check_cancelled(merge->copy->is_cancelled, err) < 0 ||
        layer_lookup(merge->roots, dir, name, &entry, err) < 0)
        return -1;
    ssize_t length = layer_copy_enter(merge->copy, name, err);
    int result = length < 0 ? -1 : merge_entry(merge, dir, &entry, name, to_fd, depth + 1, err);
    if (length >= 0)
        layer_copy_leave(merge->copy, length);
    layer_entry_clear(&entry);
    return result;
}

static int merge_dir(struct merge *merge, const struct layer_dir *dir, int to_fd, unsigned depth,
                     struct error *err)
{
    struct layer_names names = {0};
    int result = 0;

    for (size_t i = 0; i < dir->count && result == 0; i++)
        result = layer_names_read(&names, dir->places[i].fd, err);
    layer_names_sort(&names);
    for (size_t i = 0; result == 0 && i < names.count; i++)
        result = merge_name(merge, dir, names.names[i], to_fd, depth, err);
    layer_names_clear(&names);
    return result;
}

int layer_merge_into(struct layer_copy *copy, const int *fds, size_t count, int to_fd,
                     struct error *err)
{
    struct layer_dir root;
    struct stat info;
    struct merge merge = {&root, copy, 0};

    if (fstat(fds[0], &info) < 0)
        return error_sys(err, "look at a layer");
    if (layer_dir_root(fds, count, &root, err) < 0)
        return -1;
    if (copy->is_lowest) {
        free(root.below);
        root.below = NULL;
    }
    int result = merge_dir(&merge, &root, to_fd, 0, err);
    layer_dir_clear(&root);
    return result < 0 ? -1 : layer_copy_attributes(fds[0], to_fd, &info, false, err);
}
