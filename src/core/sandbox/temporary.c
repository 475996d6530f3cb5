/* SPDX-License-Identifier: Apache-2.0 */
/* Unnamed files, and the room they take; see temporary.h. */
#include "core/sandbox/temporary.h"

#include "base/fd.h"
#include "base/lock.h"
#include "base/mem.h"
#include "base/size.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* What one key has; while it has something. */
struct temporary_key {
    char id[ID_TEXT];
    uint64_t bytes;
    unsigned files;
    struct temporary_key *next;
};

struct temporaries {
    const struct core_settings *settings;
    struct lock lock; // guards all below
    uint64_t limit, key_limit;
    uint64_t bytes;
    struct temporary_key *keys;
};

// ---- the room ----

static uint64_t measure_free(const struct core_settings *settings)
{
    struct statvfs space;

    if (statvfs(settings->data_dir, &space) < 0)
        return 2 * (uint64_t)settings->file_limit_bytes;
    return (uint64_t)space.f_bavail * space.f_frsize;
}

/* With the lock held. Half of what is free or theirs already, so that nobody who is slow to read fills the disk; unless it was set. */
static void set_limits(struct temporaries *all, uint64_t free_bytes)
{
    uint64_t in_all = (uint64_t)all->settings->temporary_bytes;
    uint64_t for_a_key = (uint64_t)all->settings->temporary_key_bytes;

    all->limit = in_all ? in_all : (free_bytes + all->bytes) / 2;
    all->key_limit = for_a_key ? for_a_key : all->limit / 2;
}

struct temporaries *temporaries_new(const struct core_settings *settings)
{
    struct temporaries *all = xnew(struct temporaries);

    all->settings = settings;
    lock_init(&all->lock, LOCK_TEMPORARIES);
    return all;
}

void temporaries_free(struct temporaries *all)
{
    if (!all)
        return;
    lock_clear(&all->lock);
    free(all);
}

/* With the lock held. */
static struct temporary_key *find_key(struct temporaries *all, const char *id)
{
    struct temporary_key *key = all->keys;

    while (key && strcmp(key->id, id) != 0)
        key = key->next;
    if (key)
        return key;
    key = xnew(struct temporary_key);
    (void)snprintf(key->id, sizeof key->id, "%s", id);
    key->next = all->keys;
    all->keys = key;
    return key;
}

/* With the lock held: the key has no more files. */
static void drop_key(struct temporaries *all, struct temporary_key *key)
{
    struct temporary_key **at = &all->keys;

    while (*at != key)
        at = &(*at)->next;
    *at = key->next;
    free(key);
}

/* Whether a limit is in the way: it is named in the refusal. */
static int check_room(const struct temporary *file, uint64_t bytes, uint64_t used, uint64_t limit,
                      const char *whose, struct error *err)
{
    char text[SIZE_TEXT];

    if (bytes <= limit && used <= limit - bytes)
        return 0;
    if (file->charged + bytes > limit)
        return error_refuse(err, ERROR_TOO_LARGE, "file",
                            "there is room for %s of files on their way%s, and this needs more",
                            size_format(limit, text), whose);
    return error_refuse(err, ERROR_FULL, "file",
                        "files on their way already take the room of %s that there is%s: try "
                        "again when some have been read or written",
                        size_format(limit, text), whose);
}

int temporary_reserve(struct temporary *file, uint64_t bytes, struct error *err)
{
    struct temporaries *all = file->all;

    autolock(&all->lock);
    if (check_room(file, bytes, file->key->bytes, all->key_limit, " for each key", err) < 0 ||
        check_room(file, bytes, all->bytes, all->limit, "", err) < 0)
        return -1;
    file->charged += bytes;
    file->key->bytes += bytes;
    all->bytes += bytes;
    return 0;
}

static void give_back(struct temporary *file, uint64_t bytes)
{
    struct temporaries *all = file->all;

    autolock(&all->lock);
    file->charged -= bytes;
    file->key->bytes -= bytes;
    all->bytes -= bytes;
}

int temporary_settle(struct temporary *file, struct error *err)
{
    struct stat info;

    if (fstat(file->fd, &info) < 0)
        return error_sys(err, "look at a temporary file");
    uint64_t taken = (uint64_t)info.st_blocks * 512;
    file->size = (uint64_t)info.st_size;
    if (taken > file->charged)
        return temporary_reserve(file, taken - file->charged, err);
    give_back(file, file->charged - taken);
    return 0;
}

// ---- files ----

/* O_TMPFILE is not on every file system; memory is. */
static int open_unnamed(const char *data_dir, int *fd, struct error *err)
{
    char dir[4096];

    (void)snprintf(dir, sizeof dir, "%s/tmp", data_dir);
    int made = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (made < 0 && errno == ENOENT) {
        if (fd_make_dirs(dir, 0700, err) < 0)
            return -1;
        made = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    }
    if (made < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL))
        made = memfd_create("burrow", MFD_CLOEXEC);
    if (made < 0)
        return error_sys(err, "make a temporary file in '%s'", dir);
    *fd = made;
    return 0;
}

int temporary_new(struct temporaries *all, const struct actor *actor, struct temporary **out,
                  struct error *err)
{
    int fd = -1;

    if (open_unnamed(all->settings->data_dir, &fd, err) < 0)
        return -1;
    struct temporary *file = xnew(struct temporary);
    file->fd = fd;
    file->all = all;
    uint64_t free_bytes = measure_free(all->settings); // others use the disk too
    autolock(&all->lock);
    set_limits(all, free_bytes);
    file->key = find_key(all, actor->key_id);
    file->key->files++;
    *out = file;
    return 0;
}

void temporary_free(struct temporary *file)
{
    if (!file)
        return;
    closep(&file->fd); // its blocks are free before its room is
    give_back(file, file->charged);
    struct temporaries *all = file->all;
    {
        autolock(&all->lock);
        if (--file->key->files == 0)
            drop_key(all, file->key);
    }
    free(file);
}

int temporary_write(struct temporary *file, const void *bytes, size_t length, struct error *err)
{
    ssize_t written = fd_write_sparse(file->fd, file->size, bytes, length);

    if (written < 0)
        return error_sys(err, "write a temporary file");
    file->size += length;
    return temporary_reserve(file, (uint64_t)written, err);
}

int temporary_finish(struct temporary *file, struct error *err)
{
    if (ftruncate(file->fd, (off_t)file->size) < 0 || lseek(file->fd, 0, SEEK_SET) < 0)
        return error_sys(err, "finish a temporary file");
    return 0;
}
