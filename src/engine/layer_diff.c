/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What differs between two stacks; see layer.h. Both are walked together. At the lower end of a merged directory the two often
 * have the same real ones: what only these hold is the same on both sides and never looked at.
 */
#include "base/auto.h"
#include "base/buffer.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/layer_impl.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define CHUNK 65536
#define MAX_ATTRIBUTES 65536
#define UNSURE_NS ((int64_t)30 * 1000000000) // more than writing back takes

enum side { FROM, TO };

struct age { // of a layer
    dev_t device;
    int64_t made_at; // 0: not asked yet, or not known
};

struct diff {
    struct layer_dir from, to;                // roots
    const struct volume_layer_ops *layer_ops; // or NULL
    struct age ages[2];
    const struct layer_diff_options *options;
    layer_on_change on_change;
    void *data;
    struct layer_diff_total total;
    struct layer_links links;
    char path[FILES_MAX_RECORD_PATH];
    size_t length;
    size_t n_open; // real directories on the way to it
    char target[FILES_MAX_PATH];
    char chunks[2][CHUNK];
};

/* Opening stacks */

static int open_roots(struct volume *volume, const struct layer_stack *stack, int *fds,
                      size_t *count, struct error *err)
{
    if (stack->scratch) {
        if (layer_open_scratch(volume, stack->scratch, &fds[*count], err) < 0)
            return -1;
        (*count)++;
    }
    for (size_t i = 0; i < stack->n_saved; i++, (*count)++) {
        if (layer_open(volume, stack->saved[i], &fds[*count], err) < 0)
            return -1;
    }
    for (size_t i = 0; i < stack->n_base; i++, (*count)++) {
        fds[*count] = open(stack->base[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fds[*count] < 0)
            return error_sys(err, "open '%s'", stack->base[i]);
    }
    return 0;
}

static int open_stack(struct volume *volume, const struct layer_stack *stack, struct layer_dir *out,
                      struct error *err)
{
    int *fds = xcalloc(1 + stack->n_saved + stack->n_base, sizeof *fds);
    size_t count = 0;

    int result = open_roots(volume, stack, fds, &count, err);
    if (result == 0)
        result = layer_dir_root(fds, count, out, err);
    for (size_t i = 0; i < count; i++)
        closep(&fds[i]);
    free(fds);
    return result;
}

/* Comparing */

static int open_entry(const struct layer_entry *entry)
{
    struct stat info;
    autofd fd = openat(entry->parent_fd, entry->name,
                       O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return -1;
    return take_fd(fd);
}

/* Where the next bytes are that are no hole, from `at` on; the end where there are none. */
static off_t next_data(int fd, off_t at, off_t end)
{
    off_t data = lseek(fd, at, SEEK_DATA);
    if (data < 0)
        return errno == ENXIO ? end : at; // or the file system does not know holes
    return data < end ? data : end;
}

/* 1 when the bytes differ. What is a hole in both is not read: holes may be of any size. */
static int compare_bytes(struct diff *diff, int a, int b, off_t size, struct error *err)
{
    for (off_t at = 0; at < size; at += CHUNK) {
        if (layer_check_cancelled(diff->options->is_cancelled, err) < 0)
            return -1;
        off_t first = next_data(a, at, size), second = next_data(b, at, size);
        at = first < second ? first : second;
        if (at >= size)
            return 0;
        ssize_t got = fd_read_full_at(a, diff->chunks[0], CHUNK, at),
                other = fd_read_full_at(b, diff->chunks[1], CHUNK, at);
        if (got < 0 || other < 0)
            return error_sys(err, "read '%s'", diff->path);
        if (got != other || memcmp(diff->chunks[0], diff->chunks[1], (size_t)got) != 0)
            return 1;
    }
    return 0;
}

/* Attributes that mean something to a box, one behind the other: name, NUL, length, value. */
static int read_attributes(int fd, struct buffer *out, struct error *err)
{
    autofree char *names = xcalloc(1, MAX_ATTRIBUTES);
    ssize_t size = flistxattr(fd, names, MAX_ATTRIBUTES);
    for (const char *at = names; size > 0 && at < names + size; at += strlen(at) + 1) {
        if (strncmp(at, "trusted.", 8) == 0)
            continue;
        if (buffer_add(out, at, strlen(at) + 1, err) < 0 ||
            buffer_reserve(out, sizeof(ssize_t) + MAX_ATTRIBUTES, err) < 0)
            return -1;
        ssize_t length = fgetxattr(fd, at, out->data + out->length + sizeof length, MAX_ATTRIBUTES);
        memcpy(out->data + out->length, &length, sizeof length);
        buffer_grew(out, sizeof length + (length > 0 ? (size_t)length : 0));
    }
    return 0;
}

static int compare_attributes(int a, int b, struct error *err)
{
    char none[1];
    autobuffer first = {.maximum = 1 << 20};
    autobuffer second = {.maximum = 1 << 20};

    if (flistxattr(a, none, 0) == 0 && flistxattr(b, none, 0) == 0)
        return 0;
    if (read_attributes(a, &first, err) < 0 || read_attributes(b, &second, err) < 0)
        return -1;
    return first.length != second.length ||
           (first.length > 0 && memcmp(first.data, second.data, first.length) != 0);
}

static bool is_moment_equal(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* When the layer that `fd` lies in was made; asked once as long as it stays the same. */
static int64_t made_at(struct diff *diff, enum side side, int fd, dev_t device)
{
    struct age *age = &diff->ages[side];
    if (!diff->layer_ops)
        return 0;
    if (!age->made_at || age->device != device)
        *age = (struct age){device, diff->layer_ops->made_at(fd)};
    return age->made_at;
}

/*
 * A file and its copy in a snapshot of a subvolume have the same number and the same time of their last change, which no guest
 * can set. That time is one of ticks, though, and is on disk before what was written then: it tells nothing of a file that was written
 * shortly before the older of the two was made.
 */
static bool is_untouched(struct diff *diff, const struct layer_entry *a, int a_fd,
                         const struct layer_entry *b, int b_fd)
{
    const struct stat *one = &a->info, *two = &b->info;
    if (one->st_ino != two->st_ino || !is_moment_equal(&one->st_ctim, &two->st_ctim) ||
        one->st_size != two->st_size)
        return false;
    int64_t changed_at = (int64_t)one->st_ctim.tv_sec * 1000000000 + one->st_ctim.tv_nsec;
    return changed_at + UNSURE_NS < made_at(diff, FROM, a_fd, one->st_dev) &&
           changed_at + UNSURE_NS < made_at(diff, TO, b_fd, two->st_dev);
}

static bool has_same_rights(const struct stat *a, const struct stat *b)
{
    return a->st_mode == b->st_mode && a->st_uid == b->st_uid && a->st_gid == b->st_gid;
}

static int compare_links(const struct layer_entry *a, const struct layer_entry *b)
{
    char first[FILES_MAX_PATH], second[FILES_MAX_PATH];
    ssize_t length = readlinkat(a->parent_fd, a->name, first, sizeof first);
    if (length < 0 || length != readlinkat(b->parent_fd, b->name, second, sizeof second))
        return 1;
    return memcmp(first, second, (size_t)length) != 0;
}

/* 1 when two entries of one type, no directories, differ. */
static int compare_files(struct diff *diff, const struct layer_entry *a,
                         const struct layer_entry *b, struct error *err)
{
    const struct stat *one = &a->info;
    const struct stat *two = &b->info;

    if (one->st_dev == two->st_dev && one->st_ino == two->st_ino)
        return 0;
    if (!has_same_rights(one, two))
        return 1;
    if (S_ISLNK(one->st_mode))
        return compare_links(a, b);
    if (!S_ISREG(one->st_mode))
        return one->st_rdev != two->st_rdev;
    if (one->st_size != two->st_size)
        return 1;
    if (is_untouched(diff, a, a->parent_fd, b, b->parent_fd))
        return 0;
    if (!diff->options->is_base_compared)
        return 1;
    autofd first = open_entry(a), second = open_entry(b);
    if (first < 0 || second < 0)
        return 1;
    int differs = compare_attributes(first, second, err);
    return differs ? differs : compare_bytes(diff, first, second, one->st_size, err);
}

static int compare_dirs(struct diff *diff, const struct layer_entry *a, const struct layer_entry *b,
                        struct error *err)
{
    int first = a->dir.places[0].fd, second = b->dir.places[0].fd;
    if (!has_same_rights(&a->info, &b->info))
        return 1;
    if (is_untouched(diff, a, first, b, second))
        return 0;
    return compare_attributes(first, second, err);
}

/* Telling */

static bool is_told(mode_t mode)
{
    return S_ISREG(mode) || S_ISDIR(mode) || S_ISLNK(mode);
}

/* 0 when the entry is gone, in a living scratch. */
static int describe(struct diff *diff, const struct layer_entry *entry, struct files_item *item)
{
    const struct stat *info = &entry->info;
    *item = (struct files_item){
        .size = S_ISREG(info->st_mode) ? (uint64_t)info->st_size : 0,
        .mtime_ns = (int64_t)info->st_mtim.tv_sec * 1000000000 + info->st_mtim.tv_nsec,
        .mode = info->st_mode,
        .uid = info->st_uid,
        .gid = info->st_gid,
        .links = (uint32_t)info->st_nlink,
        .path = diff->path,
        .target = "",
    };
    if (!S_ISLNK(info->st_mode))
        return 1;
    ssize_t length =
        readlinkat(entry->parent_fd, entry->name, diff->target, sizeof diff->target - 1);
    if (length < 0)
        return 0;
    diff->target[length] = '\0';
    item->target = diff->target;
    return 1;
}

static bool has_same_type(const struct layer_entry *a, const struct layer_entry *b)
{
    return (a->info.st_mode & S_IFMT) == (b->info.st_mode & S_IFMT);
}

/* `before` is NULL for what was not there. */
static int tell(struct diff *diff, enum layer_change_kind kind, const struct layer_entry *before,
                const struct layer_entry *entry, struct error *err)
{
    uint64_t *const counts[] = {&diff->total.n_added, &diff->total.n_changed,
                                &diff->total.n_removed};
    struct layer_change change = {.kind = kind, .fd = -1};
    autofd fd = -1;

    if (kind != LAYER_REMOVED && !is_told(entry->info.st_mode)) {
        diff->total.skipped++;
        return 0;
    }
    if (!describe(diff, entry, &change.item))
        return 0;
    if (before) {
        change.is_type_changed = !has_same_type(before, entry);
        change.before_mode = before->info.st_mode;
        change.before_size = S_ISREG(before->info.st_mode) ? (uint64_t)before->info.st_size : 0;
    }
    if (kind != LAYER_REMOVED && S_ISREG(entry->info.st_mode)) {
        if (entry->info.st_nlink > 1) {
            const char *first = layer_links_meet(&diff->links, &entry->info, diff->path);
            change.item.is_hard_link = first != NULL;
            change.item.target = first ? first : "";
        }
        change.disk_bytes = (uint64_t)entry->info.st_blocks * 512;
        fd = diff->options->is_unopened ? -1 : open_entry(entry);
        if (fd < 0 && !diff->options->is_unopened)
            return 0;
        change.fd = fd;
    }
    ++*counts[kind];
    return diff->on_change(diff->data, &change, err);
}

/* Walking */

static int diff_dir(struct diff *diff, const struct layer_dir *from, const struct layer_dir *to,
                    unsigned depth, struct error *err);

static int diff_entries(struct diff *diff, struct layer_entry *a, struct layer_entry *b,
                        unsigned depth, struct error *err)
{
    static const struct layer_dir nothing = {0};
    bool is_told_dir = b->kind == ENTRY_DIR;

    if (b->kind == ENTRY_NONE)
        return a->kind == ENTRY_NONE ? 0 : tell(diff, LAYER_REMOVED, a, a, err);
    if (a->kind == ENTRY_NONE) {
        if (tell(diff, LAYER_ADDED, NULL, b, err) < 0)
            return -1;
        return is_told_dir ? diff_dir(diff, &nothing, &b->dir, depth, err) : 0;
    }
    if (!has_same_type(a, b)) {
        if (tell(diff, LAYER_CHANGED, a, b, err) < 0)
            return -1;
        return is_told_dir ? diff_dir(diff, &nothing, &b->dir, depth, err) : 0;
    }
    int differs = is_told_dir ? compare_dirs(diff, a, b, err) : compare_files(diff, a, b, err);
    if (differs < 0 || (differs && tell(diff, LAYER_CHANGED, a, b, err) < 0))
        return -1;
    return is_told_dir ? diff_dir(diff, &a->dir, &b->dir, depth, err) : 0;
}

static int diff_name(struct diff *diff, const struct layer_dir *from, const struct layer_dir *to,
                     const char *name, unsigned depth, struct error *err)
{
    struct layer_entry a, b;
    size_t length = diff->length;
    size_t more = strlen(name) + (length > 0);

    if (layer_check_cancelled(diff->options->is_cancelled, err) < 0)
        return -1;
    if (length + more >= sizeof diff->path || depth > LAYER_MAX_DEPTH ||
        diff->n_open > LAYER_MAX_OPEN) {
        diff->total.skipped++;
        diff->total.n_deep++;
        return 0;
    }
    if (layer_lookup(&diff->from, from, name, &a, err) < 0)
        return -1;
    if (layer_lookup(&diff->to, to, name, &b, err) < 0) {
        layer_entry_clear(&a);
        return -1;
    }
    (void)snprintf(diff->path + length, sizeof diff->path - length, "%s%s", length ? "/" : "",
                   name);
    diff->length += more;
    size_t opened = a.dir.count + b.dir.count;
    diff->n_open += opened;
    int result = diff_entries(diff, &a, &b, depth + 1, err);
    diff->n_open -= opened;
    diff->length = length;
    diff->path[length] = '\0';
    layer_entry_clear(&a);
    layer_entry_clear(&b);
    return result;
}

/* How many real directories of the first are not at the lower end of the second too. */
static size_t count_own(const struct layer_dir *dir, const struct layer_dir *other)
{
    size_t own = dir->count, theirs = other->count;
    while (own > 0 && theirs > 0 &&
           dir->places[own - 1].device == other->places[theirs - 1].device &&
           dir->places[own - 1].inode == other->places[theirs - 1].inode) {
        own--;
        theirs--;
    }
    return own;
}

static int diff_dir(struct diff *diff, const struct layer_dir *from, const struct layer_dir *to,
                    unsigned depth, struct error *err)
{
    struct layer_names names = {.maximum = diff->options->max_names};
    size_t n_from = count_own(from, to), n_to = count_own(to, from);
    int result = 0;

    for (size_t i = 0; i < n_from && result == 0; i++)
        result = layer_names_read(&names, from->places[i].fd, err);
    for (size_t i = 0; i < n_to && result == 0; i++)
        result = layer_names_read(&names, to->places[i].fd, err);
    layer_names_sort(&names);
    for (size_t i = 0; result == 0 && i < names.count; i++)
        result = diff_name(diff, from, to, names.names[i], depth, err);
    layer_names_clear(&names);
    return result;
}

int layer_diff(struct volume *volume, const struct layer_stack *from, const struct layer_stack *to,
               const struct layer_diff_options *options, layer_on_change on_change, void *data,
               struct layer_diff_total *total, struct error *err)
{
    static const struct layer_diff_options usual = {.is_base_compared = true};
    struct diff *diff = xnew(struct diff);

    diff->layer_ops = volume->ops->layers;
    diff->options = options ? options : &usual;
    diff->on_change = on_change;
    diff->data = data;
    int result = open_stack(volume, from, &diff->from, err);
    if (result == 0)
        result = open_stack(volume, to, &diff->to, err);
    if (result == 0)
        result = diff_dir(diff, &diff->from, &diff->to, 0, err);
    if (result == 0 && total)
        *total = diff->total;
    layer_dir_clear(&diff->from);
    layer_dir_clear(&diff->to);
    layer_links_clear(&diff->links);
    free(diff);
    return result;
}

/* One file */

static int find_file(const struct layer_dir *roots, const char *path, int *fd, struct error *err)
{
    autofree char *copy = xstrdup(path);
    char *rest = copy;
    struct layer_entry at = {.parent_fd = -1}, next;
    const struct layer_dir *dir = roots;
    int result = 0;

    for (char *part; result == 0 && dir && (part = strsep(&rest, "/"));) {
        result = layer_lookup(roots, dir, part, &next, err);
        if (result == 0 && next.kind == ENTRY_FILE && !rest)
            *fd = open_entry(&next);
        layer_entry_clear(&at);
        at = next;
        dir = result == 0 && next.kind == ENTRY_DIR ? &at.dir : NULL;
    }
    layer_entry_clear(&at);
    return result;
}

int layer_open_file(struct volume *volume, const struct layer_stack *stack, const char *path,
                    int *fd, struct error *err)
{
    struct layer_dir roots = {0};
    int found = -1;

    if (!files_path_is_plain(path))
        return error_set(err, ERROR_INVALID, "'%.200s' is not a plain path", path);
    if (open_stack(volume, stack, &roots, err) < 0)
        return -1;
    int result = find_file(&roots, path, &found, err);
    layer_dir_clear(&roots);
    if (result == 0 && found < 0)
        return error_set(err, ERROR_NOT_FOUND, "there is no file '%.200s'", path);
    if (result == 0)
        *fd = found;
    return result;
}
