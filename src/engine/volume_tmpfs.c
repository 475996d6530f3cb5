/* SPDX-License-Identifier: Apache-2.0 */
/* Scratches in memory: each a tmpfs of its own, attached nowhere, alive as long as an fd or an
 * overlay holds it. */
#include "base/auto.h"
#include "base/mem.h"
#include "base/lock.h"
#include "engine/fs_context.h"
#include "engine/volume_impl.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>

// the scratch's own: its top, upper, work, and what overlay makes in work
#define OWN_INODES 8

struct tmpfs_scratch {
    char *name;
    int fd; // the root of its mount
    struct tmpfs_scratch *next;
};

struct tmpfs_scratches {
    struct lock lock; // guards the list; held for memory work only
    struct tmpfs_scratch *first;
};

static void scratch_free(struct tmpfs_scratch *scratch)
{
    if (!scratch)
        return;
    closep(&scratch->fd);
    free(scratch->name);
    free(scratch);
}

void volume_tmpfs_init(struct volume *volume)
{
    volume->scheme = VOLUME_TMPFS;
    volume->ops = &volume_tmpfs_ops;
    volume->tmpfs = xnew(struct tmpfs_scratches);
    lock_init(&volume->tmpfs->lock, LOCK_ENGINE);
}

static void tmpfs_clear(struct volume *volume)
{
    struct tmpfs_scratch *scratch;
    if (!volume->tmpfs)
        return;
    while ((scratch = volume->tmpfs->first)) {
        volume->tmpfs->first = scratch->next;
        scratch_free(scratch);
    }
    lock_clear(&volume->tmpfs->lock);
    free(take(volume->tmpfs));
}

/* Takes it out of the list; NULL when there is none of that name. */
static struct tmpfs_scratch *take_scratch(struct volume *volume, const char *name)
{
    struct tmpfs_scratch *found = NULL;
    autolock(&volume->tmpfs->lock);
    for (struct tmpfs_scratch **at = &volume->tmpfs->first; *at; at = &(*at)->next) {
        if (strcmp((*at)->name, name) == 0) {
            found = *at;
            *at = found->next;
            break;
        }
    }
    return found;
}

static void put_scratch(struct volume *volume, const char *name, int fd)
{
    struct tmpfs_scratch *scratch = xnew(struct tmpfs_scratch);
    scratch->name = xstrdup(name);
    scratch->fd = fd;
    autolock(&volume->tmpfs->lock);
    scratch->next = volume->tmpfs->first;
    volume->tmpfs->first = scratch;
}

static int tmpfs_remove(struct volume *volume, const char *name, struct error *err)
{
    scratch_free(take_scratch(volume, name));
    return 0;
}

/* A copy of the fd, the caller's. */
static int tmpfs_open(struct volume *volume, const char *name, int *dir_fd, struct error *err)
{
    int fd = -1;
    bool is_there = false;

    autolock(&volume->tmpfs->lock);
    for (struct tmpfs_scratch *at = volume->tmpfs->first; at && !is_there; at = at->next) {
        is_there = strcmp(at->name, name) == 0;
        if (is_there)
            fd = fcntl(at->fd, F_DUPFD_CLOEXEC, 3);
    }
    if (!is_there)
        return error_set(err, ERROR_NOT_FOUND, "there is no scratch '%s'", name);
    if (fd < 0)
        return error_sys(err, "open scratch '%s'", name);
    *dir_fd = fd;
    return 0;
}

/* "No limit" is written as a number too: a tmpfs made without one cannot get one later. */
struct limit_strings {
    char bytes[24];
    char inodes[24];
};

static void write_limits(const struct volume_limits *limits, struct limit_strings *out)
{
    struct sysinfo memory = {0};
    (void)sysinfo(&memory);
    uint64_t half = (uint64_t)memory.totalram * memory.mem_unit / 2;
    uint64_t bytes = limits->bytes ? limits->bytes : half;
    uint64_t inodes = limits->inodes ? limits->inodes + OWN_INODES : half / 4096 + OWN_INODES;
    (void)snprintf(out->bytes, sizeof out->bytes, "%" PRIu64, bytes);
    (void)snprintf(out->inodes, sizeof out->inodes, "%" PRIu64, inodes);
}

static int tmpfs_create(struct volume *volume, const char *name, const struct volume_limits *limits,
                        int *dir_fd, struct error *err)
{
    struct limit_strings strings;
    autofd mount_fd = -1;

    write_limits(limits, &strings);
    const struct fs_option options[] = {
        {"source", "burrow"},          {"mode", "0700"}, {"size", strings.bytes},
        {"nr_inodes", strings.inodes}, {NULL, NULL},
    };
    if (fs_context_mount("tmpfs", options, &mount_fd, err) < 0)
        return -1;
    if (volume_make_places(mount_fd, err) < 0)
        return -1;
    int copy = fcntl(mount_fd, F_DUPFD_CLOEXEC, 3);
    if (copy < 0)
        return error_sys(err, "copy a file descriptor");
    scratch_free(take_scratch(volume, name));
    put_scratch(volume, name, take_fd(mount_fd));
    *dir_fd = copy;
    return 0;
}

static int tmpfs_limit(struct volume *volume, const char *name, const struct volume_limits *limits,
                       struct error *err)
{
    struct limit_strings strings;
    autofd fd = -1;

    if (tmpfs_open(volume, name, &fd, err) < 0)
        return -1;
    write_limits(limits, &strings);
    const struct fs_option options[] = {
        {"size", strings.bytes}, {"nr_inodes", strings.inodes}, {NULL, NULL}};
    return fs_context_change(fd, options, err);
}

static int tmpfs_usage(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                       struct error *err)
{
    struct statfs info;
    autofd fd = -1;

    if (tmpfs_open(volume, name, &fd, err) < 0)
        return -1;
    if (fstatfs(fd, &info) < 0)
        return error_sys(err, "measure it");
    *bytes = (info.f_blocks - info.f_bfree) * (uint64_t)info.f_bsize;
    return 0;
}

static int tmpfs_list(struct volume *volume, struct volume_names *out, struct error *err)
{
    autolock(&volume->tmpfs->lock);
    for (struct tmpfs_scratch *at = volume->tmpfs->first; at; at = at->next)
        volume_names_add(out, at->name);
    return 0;
}

static int tmpfs_replace(struct volume *volume, const char *from, const char *to, struct error *err)
{
    struct tmpfs_scratch *scratch = take_scratch(volume, from);
    if (!scratch)
        return error_set(err, ERROR_NOT_FOUND, "there is no scratch '%s'", from);
    scratch_free(take_scratch(volume, to));
    put_scratch(volume, to, take_fd(scratch->fd));
    scratch_free(scratch);
    return 0;
}

static int tmpfs_space(struct volume *volume, struct volume_space *out, struct error *err)
{
    struct sysinfo memory;
    if (sysinfo(&memory) < 0)
        return error_sys(err, "measure the memory");
    out->total_bytes = (uint64_t)memory.totalram * memory.mem_unit;
    out->free_bytes = (uint64_t)(memory.freeram + memory.bufferram) * memory.mem_unit;
    return 0;
}

const struct volume_ops volume_tmpfs_ops = {
    .counts_inodes = true,
    .create = tmpfs_create,
    .open = tmpfs_open,
    .limit = tmpfs_limit,
    .usage = tmpfs_usage,
    .remove = tmpfs_remove,
    .space = tmpfs_space,
    .list = tmpfs_list,
    .clear = tmpfs_clear,
    .replace = tmpfs_replace,
};
