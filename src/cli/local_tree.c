/* SPDX-License-Identifier: Apache-2.0 */
/* Local directories as lists, and changes to them; see local_tree.h. */
#include "cli/local_tree.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/endpoint.h"
#include "cli/say.h"
#include "engine/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEPTH_MOST 512
#define INSIDE (RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS)

static int fail_at(const char *what, const char *path, struct burrow_error *err)
{
    int saved = errno;
    autofree char *clean = say_clean(path);

    errno = saved;
    return say_fail_sys(err, "%s '%s'", what, clean);
}

static int fail_read(const char *path, struct burrow_error *err)
{
    return endpoint_is_cancelled() ? say_fail(err, BURROW_CANCELLED, "interrupted")
                                   : fail_at("read", path, err);
}

bool local_tree_is_in_git(const char *path)
{
    for (const char *at = path; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strncasecmp(at, ".git", 4) == 0 && (!at[4] || at[4] == '/'))
            return true;
    }
    return false;
}

// ---- looking ----

static int digest_file(int fd, struct tree_entry *entry)
{
    struct sha256 sha;
    char bytes[65536];
    ssize_t got;

    sha256_init(&sha);
    entry->size = 0;
    while ((got = read(fd, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        if (endpoint_is_cancelled()) {
            errno = ECANCELED;
            return -1;
        }
        if (got < 0)
            continue;
        sha256_add(&sha, bytes, (size_t)got);
        entry->size += (uint64_t)got;
    }
    sha256_end(&sha, entry->digest);
    return got < 0 ? -1 : 0;
}

static int digest_link(int parent, const char *name, struct tree_entry *entry)
{
    char target[PATH_MAX];
    struct sha256 sha;
    ssize_t length = readlinkat(parent, name, target, sizeof target);

    if (length < 0)
        return -1;
    sha256_init(&sha);
    sha256_add(&sha, target, (size_t)length);
    sha256_end(&sha, entry->digest);
    return 0;
}

/* Of a name in a directory; kind TREE_NOTHING for what is neither file, directory nor link. */
static int read_entry(int parent, const char *name, struct tree_entry *entry)
{
    struct stat info;

    if (fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    entry->mode = S_ISLNK(info.st_mode) ? 0 : info.st_mode & 0777;
    if (S_ISDIR(info.st_mode)) {
        entry->kind = TREE_DIRECTORY;
        return 0;
    }
    if (S_ISLNK(info.st_mode)) {
        entry->kind = TREE_LINK;
        return digest_link(parent, name, entry);
    }
    if (!S_ISREG(info.st_mode))
        return 0;
    autofd fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &info) < 0 || !S_ISREG(info.st_mode))
        return fd < 0 ? -1 : 0;
    entry->kind = TREE_FILE;
    return digest_file(fd, entry);
}

struct scan {
    struct local_tree *tree;
    bool (*leaves_out)(void *context, const char *path);
    void *context;
};

static void add_entry(struct local_tree *tree, struct tree_entry *entry)
{
    if (tree->count == tree->room) {
        tree->room = tree->room ? tree->room * 2 : 256;
        tree->entries = xrealloc(tree->entries, tree->room, sizeof *tree->entries);
    }
    tree->bytes += entry->size;
    tree->names += strlen(entry->path);
    tree->entries[tree->count++] = *entry;
}

static int scan_directory(struct scan *scan, int fd, const char *path, unsigned depth,
                          struct burrow_error *err);

static int scan_name(struct scan *scan, int parent, const char *path, const char *name,
                     unsigned depth, struct burrow_error *err)
{
    autofree char *whole = *path ? xasprintf("%s/%s", path, name) : xstrdup(name);
    struct tree_entry entry = {0};

    if (scan->leaves_out && scan->leaves_out(scan->context, whole)) {
        scan->tree->skipped++;
        return 0;
    }
    if (read_entry(parent, name, &entry) < 0)
        return errno == ENOENT ? 0 : fail_read(whole, err); // it went meanwhile
    if (entry.kind == TREE_NOTHING) {
        scan->tree->skipped++;
        return 0;
    }
    if (scan->tree->count >= TREE_MOST_ENTRIES || depth >= DEPTH_MOST)
        return say_fail(err, BURROW_LIMIT,
                        "more than %d files, or directories too deep below each other",
                        TREE_MOST_ENTRIES);
    if (scan->tree->names + strlen(whole) > TREE_MOST_NAMES)
        return say_fail(err, BURROW_LIMIT, "the names of the files have more than %d MiB together",
                        (int)(TREE_MOST_NAMES >> 20));
    entry.path = xstrdup(whole);
    add_entry(scan->tree, &entry);
    if (entry.kind != TREE_DIRECTORY)
        return 0;
    autofd fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return fail_at("read", whole, err);
    return scan_directory(scan, fd, whole, depth + 1, err);
}

static int scan_directory(struct scan *scan, int fd, const char *path, unsigned depth,
                          struct burrow_error *err)
{
    DIR *directory = fdopendir(fcntl(fd, F_DUPFD_CLOEXEC, 3));
    const struct dirent *item;
    int result = 0;

    if (!directory)
        return fail_at("read", path, err);
    rewinddir(directory);
    while (result == 0 && (item = readdir(directory))) {
        if (strcmp(item->d_name, ".") != 0 && strcmp(item->d_name, "..") != 0)
            result = scan_name(scan, fd, path, item->d_name, depth, err);
    }
    (void)closedir(directory);
    return result;
}

static int compare(const void *one, const void *other)
{
    const struct tree_entry *left = one, *right = other;

    return strcmp(left->path, right->path);
}

int local_tree_scan(int root, bool (*leaves_out)(void *context, const char *path), void *context,
                    struct local_tree *out, struct burrow_error *err)
{
    struct scan scan = {out, leaves_out, context};

    if (scan_directory(&scan, root, "", 0, err) < 0)
        return -1;
    if (out->count)
        qsort(out->entries, out->count, sizeof *out->entries, compare);
    return 0;
}

void local_tree_clear(struct local_tree *tree)
{
    for (size_t i = 0; i < tree->count; i++)
        free(tree->entries[i].path);
    free(tree->entries);
    *tree = (struct local_tree){0};
}

const struct tree_entry *local_tree_find(const struct local_tree *tree, const char *path)
{
    const struct tree_entry wanted = {.path = (char *)(uintptr_t)path};

    return tree->count ? bsearch(&wanted, tree->entries, tree->count, sizeof wanted, compare)
                       : NULL;
}

/* Where it is, or would be. */
static size_t place_of(const struct local_tree *tree, const char *path)
{
    size_t low = 0, high = tree->count;

    while (low < high) {
        size_t middle = (low + high) / 2;
        if (strcmp(tree->entries[middle].path, path) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void local_tree_unset(struct local_tree *tree, const char *path)
{
    size_t at = place_of(tree, path);

    if (at == tree->count || strcmp(tree->entries[at].path, path) != 0)
        return;
    tree->bytes -= tree->entries[at].size;
    tree->names -= strlen(tree->entries[at].path);
    free(tree->entries[at].path);
    memmove(tree->entries + at, tree->entries + at + 1,
            (tree->count - at - 1) * sizeof *tree->entries);
    tree->count--;
}

void local_tree_set(struct local_tree *tree, const struct tree_entry *entry)
{
    struct tree_entry kept = *entry;

    kept.path = xstrdup(entry->path);
    local_tree_unset(tree, kept.path);
    size_t at = place_of(tree, kept.path);
    add_entry(tree, &kept); // makes room
    memmove(tree->entries + at + 1, tree->entries + at,
            (tree->count - at - 1) * sizeof *tree->entries);
    tree->entries[at] = kept;
}

bool tree_entry_is_same(const struct tree_entry *one, const struct tree_entry *other)
{
    enum tree_kind left = one ? one->kind : TREE_NOTHING;
    enum tree_kind right = other ? other->kind : TREE_NOTHING;

    if (left != right || left == TREE_NOTHING)
        return left == right;
    // who may read a directory is each side's own matter; of a file it counts whether it is a program
    return strcmp(one->digest, other->digest) == 0 &&
           (left != TREE_FILE || (one->mode & 0100) == (other->mode & 0100));
}

// ---- below the root, and nowhere else ----

/* The directory that the path is in, made where it is missing and `makes`; *name is the last part. */
static int open_parent(int root, const char *path, bool makes, const char **name)
{
    const char *slash = strrchr(path, '/');
    autofree char *parent = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");

    *name = slash ? slash + 1 : path;
    for (char *at = parent; makes && slash && at;) {
        at = strchr(at, '/');
        if (at)
            *at = '\0';
        const char *last;
        autofd above = open_parent(root, parent, false, &last);
        if (above < 0 || (mkdirat(above, last, 0755) < 0 && errno != EEXIST))
            return -1;
        if (at)
            *at++ = '/';
    }
    return sys_openat2(root, parent, O_PATH | O_DIRECTORY | O_CLOEXEC, 0, INSIDE);
}

int local_tree_look(int root, const char *path, struct tree_entry *out, struct burrow_error *err)
{
    const char *name;
    autofd parent = open_parent(root, path, false, &name);

    *out = (struct tree_entry){0};
    if (parent >= 0 && read_entry(parent, name, out) == 0)
        return 0;
    // a link or a file where a directory is looked for: what was meant is not there
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return 0;
    return fail_read(path, err);
}

int local_tree_open(int root, const char *path)
{
    const char *name;
    autofd parent = open_parent(root, path, false, &name);

    return parent < 0 ? -1 : openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/*
 * Root's own copy of a user's file stays the user's: `name` at `at`, or with "" `at` itself. By descriptor, since the user can put another file's
 * hard link in the place of a name.
 */
static void keep_owner(int parent, int at, const char *name)
{
    struct stat info;

    if (geteuid() == 0 && fstat(parent, &info) == 0)
        (void)fchownat(at, name, info.st_uid, info.st_gid, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH);
}

static int copy_bytes(int from, int to)
{
    char bytes[65536];
    ssize_t got;

    while ((got = read(from, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0 && fd_write_all(to, bytes, (size_t)got) < 0)
            return -1;
    }
    return got < 0 ? -1 : 0;
}

static int make_file(int parent, const char *name, int from, unsigned mode)
{
    autofd to = openat(parent, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);

    if (to < 0 || copy_bytes(from, to) < 0)
        return -1;
    keep_owner(parent, to, "");
    if (fchmod(to, mode & 0777) < 0)
        return -1;
    return close(take_fd(to));
}

int local_tree_target(int root, const char *path, char *to, size_t size)
{
    const char *last;
    autofd above = open_parent(root, path, false, &last);
    ssize_t length = above < 0 ? -1 : readlinkat(above, last, to, size - 1);

    if (length < 0)
        return -1;
    to[length] = '\0';
    return 0;
}

static int make_link(int parent, const char *name, const char *target)
{
    if (symlinkat(target, parent, name) < 0)
        return -1;
    keep_owner(parent, parent, name);
    return 0;
}

static int put_directory(int parent, const char *name)
{
    struct stat info;

    if (mkdirat(parent, name, 0755) == 0) {
        keep_owner(parent, parent, name);
        return 0;
    }
    if (errno != EEXIST || fstatat(parent, name, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return -1;
    if (S_ISDIR(info.st_mode))
        return 0;
    if (unlinkat(parent, name, 0) < 0 || mkdirat(parent, name, 0755) < 0)
        return -1;
    keep_owner(parent, parent, name);
    return 0;
}

/* Beside it first: what is there stays until all of the new one is. */
static int put_other(int parent, const char *name, const struct tree_entry *entry, int source,
                     const char *target)
{
    char beside[64];
    static unsigned count;

    (void)snprintf(beside, sizeof beside, ".burrow-%d-%u", (int)getpid(), count++);
    int result = entry->kind == TREE_LINK ? make_link(parent, beside, target)
                                          : make_file(parent, beside, source, entry->mode);
    if (result == 0 && renameat(parent, beside, parent, name) < 0 &&
        (errno != EISDIR || unlinkat(parent, name, AT_REMOVEDIR) < 0 ||
         renameat(parent, beside, parent, name) < 0))
        result = -1;
    int saved = errno;
    if (result < 0)
        (void)unlinkat(parent, beside, 0);
    errno = saved;
    return result;
}

int local_tree_write(int root, const struct tree_entry *entry, int source, const char *target,
                     struct burrow_error *err)
{
    const char *name;
    autofd parent = open_parent(root, entry->path, true, &name);

    if (parent < 0 ||
        (entry->kind == TREE_DIRECTORY ? put_directory(parent, name)
                                       : put_other(parent, name, entry, source, target)) < 0)
        return fail_at("write", entry->path, err);
    return 0;
}

int local_tree_put(int root, int from, const struct tree_entry *entry, struct burrow_error *err)
{
    char target[PATH_MAX] = "";
    autofd source = entry->kind == TREE_FILE ? local_tree_open(from, entry->path) : -1;

    if ((entry->kind == TREE_FILE && source < 0) ||
        (entry->kind == TREE_LINK &&
         local_tree_target(from, entry->path, target, sizeof target) < 0))
        return fail_at("read", entry->path, err);
    return local_tree_write(root, entry, source, target, err);
}

int local_tree_remove(int root, const char *path, struct burrow_error *err)
{
    const char *name;
    autofd parent = open_parent(root, path, false, &name);

    if (parent >= 0 && (unlinkat(parent, name, 0) == 0 ||
                        (errno == EISDIR && unlinkat(parent, name, AT_REMOVEDIR) == 0)))
        return 0;
    if (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)
        return 0;
    if (errno == ENOTEMPTY || errno == EEXIST)
        return 1;
    return fail_at("remove", path, err);
}
