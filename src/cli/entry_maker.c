/* SPDX-License-Identifier: Apache-2.0 */
/* Makes what a stranger names; see entry_maker.h. */
#include "cli/entry_maker.h"

#include "base/fd.h"
#include "base/mem.h"
#include "cli/file_maker.h"
#include "cli/say.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct entry_maker {
    int root;
    char prefix[ENTRY_NAME];  // of all names; "": none
    struct file_maker *small; // NULL: there was none yet
    char *room;               // for what is left of the content of a small one; NULL: it is none
    int fd;                   // of a large one that is being written, which is in parent_fd
    char name[ENTRY_NAME];    // its name
    char last[256];           // the last part of it
    char beside[FILE_BESIDE]; // its name until it is whole, where there was something already; ""
    char parent[ENTRY_NAME];  // of parent_fd
    int parent_fd;
    uint64_t files, directories, bytes, refused;
};

struct entry_maker *entry_maker_new(int directory)
{
    struct entry_maker *maker = xnew(struct entry_maker);

    maker->root = directory;
    maker->fd = maker->parent_fd = -1;
    return maker;
}

void entry_drop_file(struct entry_maker *maker)
{
    if (maker->fd >= 0) // nobody should take a part of a file for all of it
        file_drop(maker->parent_fd, *maker->beside ? maker->beside : maker->last, maker->fd);
    closep(&maker->fd);
    maker->room = NULL; // of a small one, which is not kept then
}

void entry_maker_free(struct entry_maker *maker)
{
    struct burrow_error ignored;

    if (!maker)
        return;
    (void)entry_maker_settle(maker, &ignored);
    file_maker_free(maker->small);
    entry_drop_file(maker);
    closep(&maker->parent_fd);
    free(maker);
}

uint64_t entry_maker_files(const struct entry_maker *maker)
{
    return maker->files;
}

uint64_t entry_maker_entries(const struct entry_maker *maker)
{
    return maker->files + maker->directories;
}

uint64_t entry_maker_bytes(const struct entry_maker *maker)
{
    return maker->bytes;
}

uint64_t entry_maker_refused(const struct entry_maker *maker)
{
    return maker->refused;
}

// ---- names ----

/* Below the prefix, its parts without "."; false where it leads outside. "" is the directory itself. */
static bool clean_name(const struct entry_maker *maker, const char *name, char out[ENTRY_NAME])
{
    size_t length = strlen(maker->prefix);

    memcpy(out, maker->prefix, length + 1);
    while (*name) {
        name += strspn(name, "/");
        size_t part = strcspn(name, "/");
        bool is_dot = part == 1 && name[0] == '.';
        if (part == 2 && name[0] == '.' && name[1] == '.')
            return false;
        if (part > 255 || length + part + 2 > ENTRY_NAME)
            return false;
        if (part && !is_dot) {
            if (length)
                out[length++] = '/';
            memcpy(out + length, name, part);
            length += part;
            out[length] = '\0';
        }
        name += part;
    }
    return true;
}

/* False for what is refused, which is counted, and for the directory itself, which is there. */
static bool takes_name(struct entry_maker *maker, const char *name, char out[ENTRY_NAME])
{
    bool is_clean = clean_name(maker, name, out);

    maker->refused += !is_clean;
    return is_clean && *out;
}

bool entry_maker_enter(struct entry_maker *maker, const char *name)
{
    char clean[ENTRY_NAME];

    maker->prefix[0] = '\0';
    if (!clean_name(maker, name, clean))
        return false;
    memcpy(maker->prefix, clean, strlen(clean) + 1);
    return true;
}

bool entry_link_stays(const char *name, const char *target)
{
    unsigned above = 0; // directories that the link may go up
    bool has_gone_in = false;

    if (*target == '/' || !*target)
        return false;
    for (const char *at = name; (at = strchr(at, '/')); at++)
        above++;
    while (*target) {
        size_t part = strcspn(target, "/");
        bool is_up = part == 2 && target[0] == '.' && target[1] == '.';
        if (is_up && (has_gone_in || above-- == 0))
            return false; // behind a name, which may be a link itself, nobody can count
        has_gone_in |= part && !is_up && !(part == 1 && target[0] == '.');
        target += part;
        target += strspn(target, "/");
    }
    return true;
}

/* The directory `path` below the root, made where missing, never through a link. */
static int open_directory(struct entry_maker *maker, const char *path)
{
    autofd at = openat(maker->root, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char name[256];

    while (*path && at >= 0) {
        size_t part = strcspn(path, "/");
        (void)snprintf(name, sizeof name, "%.*s", (int)part, path);
        int made = mkdirat(at, name, 0755);
        if (made < 0 && errno != EEXIST)
            return -1;
        maker->directories += made == 0;
        int next = openat(at, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int saved = errno;
        closep(&at);
        errno = saved;
        at = next;
        path += part;
        path += strspn(path, "/");
    }
    return take_fd(at);
}

/* The descriptor of the directory that `name` is in; *last is the name in it. Kept for the next one. */
static int open_parent(struct entry_maker *maker, const char *name, const char **last)
{
    const char *slash = strrchr(name, '/');
    char parent[ENTRY_NAME] = "";

    *last = slash ? slash + 1 : name;
    if (slash)
        (void)snprintf(parent, sizeof parent, "%.*s", (int)(slash - name), name);
    if (maker->parent_fd < 0 || strcmp(parent, maker->parent) != 0) {
        closep(&maker->parent_fd);
        maker->parent_fd = open_directory(maker, parent);
        if (maker->small)
            file_maker_enter(maker->small, maker->parent_fd);
        (void)snprintf(maker->parent, sizeof maker->parent, "%s", parent);
    }
    return maker->parent_fd;
}

// ---- entries ----

static int fail_at(const char *name, struct burrow_error *err)
{
    int saved = errno;
    autofree char *clean = say_clean(name);

    errno = saved;
    return say_fail_sys(err, "write '%s'", clean);
}

static int begin_small_file(struct entry_maker *maker, const char *name, unsigned mode, size_t size,
                            struct burrow_error *err)
{
    if (!maker->small) {
        maker->small = file_maker_new();
        file_maker_enter(maker->small, maker->parent_fd);
    }
    return file_maker_room(maker->small, name, mode, size, &maker->room, err);
}

/* Small ones first: one of the same name came before it, and what failed is told before much has come in vain. */
static int begin_large_file(struct entry_maker *maker, const char *name, const char *last,
                            unsigned mode, struct burrow_error *err)
{
    if (entry_maker_settle(maker, err) < 0)
        return -1;
    (void)snprintf(maker->name, sizeof maker->name, "%s", name);
    (void)snprintf(maker->last, sizeof maker->last, "%s", last);
    maker->fd = file_open_new(maker->parent_fd, last, 0600, maker->beside);
    if (maker->fd < 0 || fchmod(maker->fd, mode & 0777) < 0)
        return fail_at(name, err);
    return 0;
}

int entry_begin_file(struct entry_maker *maker, const char *name, unsigned mode, uint64_t size,
                     bool *is_taken, struct burrow_error *err)
{
    char clean[ENTRY_NAME];
    const char *last;

    *is_taken = false;
    if (!takes_name(maker, name, clean))
        return 0;
    if (open_parent(maker, clean, &last) < 0)
        return fail_at(clean, err);
    if ((size <= FILE_MAKER_MOST ? begin_small_file(maker, clean, mode, (size_t)size, err)
                                 : begin_large_file(maker, clean, last, mode, err)) < 0)
        return -1;
    *is_taken = true;
    return 0;
}

int entry_file_descriptor(const struct entry_maker *maker)
{
    return maker->fd;
}

void entry_wrote(struct entry_maker *maker, uint64_t bytes)
{
    maker->bytes += bytes;
}

int entry_add_bytes(struct entry_maker *maker, const void *data, size_t length,
                    struct burrow_error *err)
{
    if (maker->room) {
        memcpy(maker->room, data, length);
        maker->room += length;
    } else if (fd_write_all(maker->fd, data, length) < 0) {
        return fail_at(maker->name, err);
    }
    maker->bytes += length;
    return 0;
}

int entry_end_file(struct entry_maker *maker, struct burrow_error *err)
{
    if (maker->room)
        file_maker_keep(maker->small);
    maker->room = NULL;
    if (maker->fd >= 0 && *maker->beside &&
        renameat(maker->parent_fd, maker->beside, maker->parent_fd, maker->last) < 0)
        return fail_at(maker->name, err);
    if (maker->fd >= 0 && close(take_fd(maker->fd)) < 0)
        return fail_at(maker->name, err);
    maker->files++;
    return 0;
}

int entry_maker_settle(struct entry_maker *maker, struct burrow_error *err)
{
    return maker->small ? file_maker_settle(maker->small, err) : 0;
}

int entry_make_directory(struct entry_maker *maker, const char *name, unsigned mode,
                         struct burrow_error *err)
{
    char clean[ENTRY_NAME];

    if (!takes_name(maker, name, clean))
        return 0;
    uint64_t before = maker->directories;
    autofd made = open_directory(maker, clean);
    if (made < 0)
        return fail_at(clean, err);
    autofree char *place = xasprintf("/proc/self/fd/%d", made); // which is open by name alone
    if (maker->directories > before && chmod(place, (mode & 0777) | 0700) < 0)
        return fail_at(clean, err);
    return 0;
}

/* What cannot take the place leaves what is there. */
static int put_in_place(int parent, const char *beside, const char *name)
{
    if (renameat(parent, beside, parent, name) == 0)
        return 0;
    int saved = errno;
    (void)unlinkat(parent, beside, 0);
    errno = saved;
    return -1;
}

static int link_in_place(int from, const char *file, int parent, const char *name)
{
    char beside[FILE_BESIDE];

    file_name_beside(beside);
    return linkat(from, file, parent, beside, 0) < 0 ? -1 : put_in_place(parent, beside, name);
}

/* Renaming one name of a file to another of it does nothing. */
static bool is_same(int parent, const char *name, const struct stat *info)
{
    struct stat there;

    return fstatat(parent, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           there.st_dev == info->st_dev && there.st_ino == info->st_ino;
}

int entry_make_link(struct entry_maker *maker, const char *name, const char *target,
                    struct burrow_error *err)
{
    char clean[ENTRY_NAME];
    const char *last;

    if (!takes_name(maker, name, clean))
        return 0;
    if (!entry_link_stays(clean, target)) {
        maker->refused++;
        return 0;
    }
    int parent = open_parent(maker, clean, &last);
    if (parent < 0)
        return fail_at(clean, err);
    if (entry_maker_settle(maker, err) < 0)
        return -1;
    char beside[FILE_BESIDE];
    file_name_beside(beside);
    if (symlinkat(target, parent, beside) < 0 || put_in_place(parent, beside, last) < 0)
        return fail_at(clean, err);
    maker->files++;
    return 0;
}

/* Of a link it would lead from here to somewhere else. */
int entry_make_hard_link(struct entry_maker *maker, const char *name, const char *first,
                         struct burrow_error *err)
{
    char clean[ENTRY_NAME], target[ENTRY_NAME], from_dir[ENTRY_NAME] = "";
    struct stat info;
    const char *last;

    if (!takes_name(maker, name, clean))
        return 0;
    if (!clean_name(maker, first, target) || !*target) {
        maker->refused++;
        return 0;
    }
    const char *slash = strrchr(target, '/');
    if (slash)
        (void)snprintf(from_dir, sizeof from_dir, "%.*s", (int)(slash - target), target);
    autofd from = open_directory(maker, from_dir);
    int parent = open_parent(maker, clean, &last);
    if (from < 0 || parent < 0)
        return fail_at(clean, err);
    if (entry_maker_settle(maker, err) < 0)
        return -1;
    const char *file = slash ? slash + 1 : target;
    if (fstatat(from, file, &info, AT_SYMLINK_NOFOLLOW) < 0)
        return fail_at(clean, err);
    if (!S_ISREG(info.st_mode)) {
        maker->refused++;
        return 0;
    }
    if (!is_same(parent, last, &info) && link_in_place(from, file, parent, last) < 0)
        return fail_at(clean, err);
    maker->files++;
    return 0;
}

void entry_refuse(struct entry_maker *maker)
{
    maker->refused++;
}
