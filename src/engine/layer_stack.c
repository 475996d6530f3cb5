/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of trees, read by the rules of overlay (Documentation/filesystems/overlayfs.rst): a whiteout or anything but a directory
 * ends the search downwards, directories merge until one is opaque, and a renamed directory goes on below under its
 * old path. Only attributes that no guest can set count.
 */
#include "base/auto.h"
#include "base/mem.h"
#include "engine/layer_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MAX_NAMES 8000000 // of one directory
#define MAX_LINK_BYTES ((size_t)256 << 20)

/* Hard links */

struct layer_link {
    dev_t device;
    ino_t inode;
    char *path; // NULL: free
};

static struct layer_link *find_link(struct layer_link *slots, size_t capacity, dev_t device,
                                    ino_t inode)
{
    size_t at = (size_t)((inode ^ device << 7) * UINT64_C(0x9E3779B97F4A7C15) >> 20) % capacity;
    while (slots[at].path && (slots[at].inode != inode || slots[at].device != device))
        at = (at + 1) % capacity;
    return &slots[at];
}

static void grow_links(struct layer_links *links)
{
    size_t capacity = links->capacity ? links->capacity * 2 : 256;
    struct layer_link *slots = xcalloc(capacity, sizeof *slots);
    for (size_t i = 0; i < links->capacity; i++) {
        const struct layer_link *old = &links->slots[i];
        if (old->path)
            *find_link(slots, capacity, old->device, old->inode) = *old;
    }
    free(links->slots);
    links->slots = slots;
    links->capacity = capacity;
}

const char *layer_links_meet(struct layer_links *links, const struct stat *info, const char *path)
{
    if (links->count * 2 >= links->capacity)
        grow_links(links);
    struct layer_link *link = find_link(links->slots, links->capacity, info->st_dev, info->st_ino);
    if (link->path)
        return link->path;
    links->bytes += strlen(path) + 1 + 2 * sizeof *link;
    links->is_full |= links->bytes > MAX_LINK_BYTES;
    if (links->is_full)
        return NULL;
    *link = (struct layer_link){info->st_dev, info->st_ino, xstrdup(path)};
    links->count++;
    return NULL;
}

void layer_links_clear(struct layer_links *links)
{
    for (size_t i = 0; i < links->capacity; i++)
        free(links->slots[i].path);
    free(links->slots);
    *links = (struct layer_links){0};
}

/* Names */

static int add_name(struct layer_names *names, const char *name, struct error *err)
{
    size_t maximum = names->maximum ? names->maximum : MAX_NAMES;
    if (names->count >= maximum)
        return error_set(err, ERROR_LIMIT, "a directory has more than %zu entries", maximum);
    if (names->count == names->capacity) {
        names->capacity = names->capacity ? names->capacity * 2 : 32;
        names->names = xrealloc(names->names, names->capacity, sizeof *names->names);
    }
    names->names[names->count++] = xstrdup(name);
    return 0;
}

int layer_names_read(struct layer_names *names, int dir_fd, struct error *err)
{
    struct dirent *entry;
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    autodir dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        error_sys(err, "list a directory");
        closep(&fd);
        return -1;
    }
    errno = 0;
    while ((entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
            add_name(names, entry->d_name, err) < 0)
            return -1;
        errno = 0;
    }
    return errno ? error_sys(err, "list a directory") : 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void layer_names_sort(struct layer_names *names)
{
    size_t kept = 0;
    if (names->count > 1)
        qsort(names->names, names->count, sizeof *names->names, compare_names);
    for (size_t i = 0; i < names->count; i++) {
        if (kept > 0 && strcmp(names->names[kept - 1], names->names[i]) == 0)
            free(names->names[i]);
        else
            names->names[kept++] = names->names[i];
    }
    names->count = kept;
}

void layer_names_clear(struct layer_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->names[i]);
    free(names->names);
    *names = (struct layer_names){0};
}

/* Directories */

void layer_dir_clear(struct layer_dir *dir)
{
    for (size_t i = 0; i < dir->count; i++)
        closep(&dir->places[i].fd);
    free(dir->places);
    free(dir->below);
    *dir = (struct layer_dir){0};
}

/* Takes fd. */
static int add_place(struct layer_dir *dir, unsigned layer, int fd, struct error *err)
{
    struct stat info;
    if (fd < 0 || fstat(fd, &info) < 0) {
        error_sys(err, "open a directory");
        closep(&fd);
        return -1;
    }
    dir->places = xrealloc(dir->places, dir->count + 1, sizeof *dir->places);
    dir->places[dir->count++] = (struct layer_place){layer, fd, info.st_dev, info.st_ino};
    return 0;
}

int layer_dir_root(const int *fds, size_t count, struct layer_dir *out, struct error *err)
{
    struct layer_dir dir = {.below = xstrdup("")};
    for (size_t i = 0; i < count; i++) {
        if (add_place(&dir, (unsigned)i, fcntl(fds[i], F_DUPFD_CLOEXEC, 3), err) < 0) {
            layer_dir_clear(&dir);
            return -1;
        }
    }
    *out = dir;
    return 0;
}

static void set_below(struct layer_dir *dir, const struct layer_dir *parent, const char *name)
{
    free(dir->below);
    dir->below = NULL;
    if (parent->below)
        dir->below = xasprintf("%s/%s", parent->below, name);
}

static bool is_opaque(int fd)
{
    char value[4];
    return fgetxattr(fd, LAYER_OPAQUE, value, sizeof value) == 1 && value[0] == 'y';
}

/* A name, or names behind a slash each; none that leads up. */
static bool is_redirect(const char *text)
{
    bool is_path = text[0] == '/';
    const char *at = text + is_path;

    for (;; at++) {
        size_t length = strcspn(at, "/");
        bool is_dots = (length == 1 && at[0] == '.') || (length == 2 && memcmp(at, "..", 2) == 0);
        if (length == 0 || length > 255 || is_dots || (at[length] && !is_path))
            return false;
        at += length;
        if (!*at)
            return true;
    }
}

/* "name" for a directory renamed in its parent, "/path" for one from elsewhere; "" for all others, and where it says what the kernel
 * never writes. */
static void read_redirect(int fd, char *text, size_t size)
{
    ssize_t length = fgetxattr(fd, LAYER_REDIRECT, text, size - 1);
    text[length > 0 ? length : 0] = '\0';
    if (*text && !is_redirect(text))
        *text = '\0';
}

struct search {
    const struct layer_dir *roots;
    const struct layer_dir *parent;
    struct layer_entry *out;
    char name[256]; // looked for from here down
    bool is_over;
};

/* A path that a renamed directory was moved from, looked for in one layer after the other. */
struct detour {
    char *path;  // absolute; as it is called in the next layer
    size_t left; // of it, from the slash before what is looked for now
    bool is_over;
};

/* What lay at the name that ends where `left` begins is called otherwise from the next layer on; what is left of the path stays. */
static void change_path(struct detour *detour, size_t name_length, const char *redirect)
{
    size_t before = strlen(detour->path) - detour->left;
    const char *rest = detour->path + before;

    if (redirect[0] == '/')
        before = 0;
    else
        before -= name_length;
    char *changed = xasprintf("%.*s%s%s", (int)before, detour->path, redirect, rest);
    free(detour->path);
    detour->path = changed;
}

/* One name further down. 1, 0 when this layer does not have it, -1. */
static int step(struct detour *detour, int *fd, struct error *err)
{
    char name[256], redirect[4096];
    const char *at = detour->path + strlen(detour->path) - detour->left + 1;
    size_t length = strcspn(at, "/");

    (void)snprintf(name, sizeof name, "%.*s", (int)length, at);
    int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (next < 0 && (errno == ENOTDIR || errno == ELOOP)) // a whiteout too
        detour->is_over = true;
    else if (next < 0 && errno != ENOENT && errno != ENAMETOOLONG)
        return error_sys(err, "open a directory");
    if (next < 0)
        return 0;
    closep(fd);
    *fd = next;
    detour->left -= length + 1;
    if (is_opaque(next)) {
        detour->is_over = true;
        return 1;
    }
    read_redirect(next, redirect, sizeof redirect);
    if (*redirect)
        change_path(detour, length, redirect);
    return 1;
}

static int look_along(struct detour *detour, const struct layer_place *root, struct layer_dir *out,
                      struct error *err)
{
    autofd fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 3);
    int found = 1;

    if (fd < 0)
        return error_sys(err, "open a directory");
    detour->left = strlen(detour->path);
    while (found > 0 && detour->left)
        found = step(detour, &fd, err);
    return found <= 0 ? found : add_place(out, root->layer, take_fd(fd), err);
}

/*
 * Adds what an absolute path names in the layers below `layer`. As in the kernel each layer is gone through once, by the path as it is
 * called there: whoever nests renamed directories in each other makes the way longer by steps, not many times longer.
 */
static int append_path(struct search *search, unsigned layer, const char *path, struct error *err)
{
    struct detour detour = {.path = xstrdup(path)};
    struct layer_dir *out = &search->out->dir;
    int result = 0;

    for (size_t i = 0; i < search->roots->count && !detour.is_over && result == 0; i++) {
        const struct layer_place *root = &search->roots->places[i];
        if (root->layer > layer)
            result = look_along(&detour, root, out, err);
    }
    free(out->below);
    out->below = detour.is_over ? NULL : take(detour.path);
    free(detour.path);
    return result;
}

/* One real directory of the name: the search goes on below it, goes on under another name, or is over. */
static int take_dir(struct search *search, const struct layer_place *at, struct error *err)
{
    struct layer_entry *out = search->out;
    char redirect[4096];

    int fd = openat(at->fd, search->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return 0; // of a living box: gone since
    if (add_place(&out->dir, at->layer, fd, err) < 0)
        return -1;
    if (out->kind == ENTRY_NONE) {
        out->kind = ENTRY_DIR;
        (void)fstat(fd, &out->info);
    }
    if (is_opaque(fd)) {
        search->is_over = true;
        return 0;
    }
    read_redirect(fd, redirect, sizeof redirect);
    if (!*redirect)
        return 0;
    if (redirect[0] != '/') {
        (void)snprintf(search->name, sizeof search->name, "%s", redirect);
        return 0;
    }
    search->is_over = true;
    return append_path(search, at->layer, redirect, err);
}

static int look(struct search *search, struct error *err)
{
    struct layer_entry *out = search->out;
    struct stat info;

    for (size_t i = 0; i < search->parent->count && !search->is_over; i++) {
        const struct layer_place *at = &search->parent->places[i];
        if (fstatat(at->fd, search->name, &info, AT_SYMLINK_NOFOLLOW) < 0) {
            if (errno == ENOENT || errno == ENAMETOOLONG)
                continue;
            return error_sys(err, "look at a file");
        }
        if (S_ISDIR(info.st_mode)) {
            if (take_dir(search, at, err) < 0)
                return -1;
            continue;
        }
        search->is_over = true;
        if (out->kind == ENTRY_DIR)
            break;
        out->is_hidden = layer_is_whiteout(&info);
        out->kind = out->is_hidden ? ENTRY_NONE : ENTRY_FILE;
        out->info = info;
        out->parent_fd = at->fd;
        (void)snprintf(out->name, sizeof out->name, "%s", search->name);
    }
    if (out->kind == ENTRY_DIR && !search->is_over)
        set_below(&out->dir, search->parent, search->name);
    return 0;
}

int layer_lookup(const struct layer_dir *roots, const struct layer_dir *parent, const char *name,
                 struct layer_entry *out, struct error *err)
{
    struct search search = {.roots = roots, .parent = parent, .out = out};
    *out = (struct layer_entry){.parent_fd = -1};
    (void)snprintf(search.name, sizeof search.name, "%s", name);
    if (look(&search, err) == 0)
        return 0;
    layer_entry_clear(out);
    return -1;
}

void layer_entry_clear(struct layer_entry *entry)
{
    layer_dir_clear(&entry->dir);
    entry->kind = ENTRY_NONE;
}
