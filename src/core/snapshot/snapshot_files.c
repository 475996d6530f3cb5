/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a snapshot: listed with hashes when somebody asks, and then remembered in a file. */
#include "base/mem.h"
#include "core/snapshot/list_cache.h"
#include "core/snapshot/snapshot_impl.h"
#include "core/snapshot/digest.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define HOLES_MAX ((uint64_t)1 << 30)    // bytes of all holes that are hashed
#define STRINGS_MAX ((uint64_t)48 << 20) // bytes that a list takes, about: more are in no answer

struct listing {
    struct snapshot_files files;
    size_t capacity;
    uint64_t strings, holes;
};

/* A hole has no end to speak of: a file with too much of them has no hash. */
static int hash_one(struct listing *listing, const struct layer_change *change,
                    struct snapshot_file *file, struct error *err)
{
    struct stat info;

    if (fstat(change->fd, &info) < 0)
        return error_sys(err, "look at a file of the snapshot");
    uint64_t taken = (uint64_t)info.st_blocks * 512, size = (uint64_t)info.st_size;
    uint64_t hole = size > taken ? size - taken : 0;
    if (hole > HOLES_MAX - listing->holes)
        return 0;
    listing->holes += hole;
    return digest_file(change->fd, file->sha256, err);
}

static int list_one(void *data, const struct layer_change *change, struct error *err)
{
    struct listing *listing = data;
    struct snapshot_files *files = &listing->files;
    struct snapshot_file file = {.size = change->item.size, .mode = change->item.mode & 07777};

    if (change->kind == LAYER_REMOVED || !S_ISREG(change->item.mode) || change->fd < 0)
        return 0;
    files->is_cut |= listing->strings > STRINGS_MAX || files->count == SNAPSHOT_FILES_MAX;
    if (files->is_cut)
        return 0;
    if (hash_one(listing, change, &file, err) < 0)
        return -1;
    if (files->count == listing->capacity) {
        listing->capacity = listing->capacity ? listing->capacity * 2 : 64;
        files->files = xrealloc(files->files, listing->capacity, sizeof *files->files);
    }
    file.path = xstrdup(change->item.path);
    listing->strings += strlen(file.path) + sizeof file;
    files->files[files->count++] = file;
    return 0;
}

void snapshot_files_clear(struct snapshot_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free((char *)files->files[i].path);
    free(files->files);
    *files = (struct snapshot_files){0};
}

static int is_of(struct snapshots *snapshots, const char *name, enum snapshot_state state,
                 struct error *err)
{
    autosnapshot record = {0};

    if (!id_is_valid(name))
        return 0;
    if (store_snapshot_get(snapshots->store, name, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    return record.state == state;
}

static int make_list(struct snapshots *snapshots, const struct snapshot_record *record,
                     struct snapshot_files *out, struct error *err)
{
    const struct layer_diff_options options = {0};
    struct listing listing = {0};
    struct error ignored = {0};

    if (snapshot_walk(snapshots, record, &options, list_one, &listing, err) < 0) {
        snapshot_files_clear(&listing.files);
        return -1;
    }
    list_cache_put(snapshots->lists, record->id, &listing.files);
    if (is_of(snapshots, record->id, SNAPSHOT_READY, &ignored) <=
        0) // who deleted it found nothing to forget
        list_cache_drop(snapshots->lists, record->id);
    *out = listing.files;
    return 0;
}

/* Files that are not called as a snapshot in this state go. */
static int sweep_directory(struct snapshots *snapshots, const char *path, enum snapshot_state state,
                           struct error *err)
{
    const struct dirent *entry;

    autodir directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_sys(err, "look into '%s'", path);
    while ((entry = readdir(directory))) {
        int is_wanted = entry->d_name[0] == '.' ? 1 : is_of(snapshots, entry->d_name, state, err);
        if (is_wanted < 0)
            return -1;
        if (!is_wanted && unlinkat(dirfd(directory), entry->d_name, 0) < 0)
            return error_sys(err, "remove '%s/%s'", path, entry->d_name);
    }
    return 0;
}

int snapshot_sweep(struct snapshots *snapshots, struct error *err)
{
    autofree char *lists = xasprintf("%s/" LIST_CACHE_DIRECTORY, snapshots->settings->data_dir);
    autofree char *uploads = snapshot_build_directory(snapshots);

    if (sweep_directory(snapshots, lists, SNAPSHOT_READY, err) < 0)
        return -1;
    return sweep_directory(snapshots, uploads, SNAPSHOT_BUILDING, err);
}

int snapshot_files(struct snapshots *snapshots, const struct snapshot_info *info,
                   struct snapshot_files *out, struct error *err)
{
    const struct snapshot_record record = {.id = info->id, .runtime = info->runtime};

    if (info->state != SNAPSHOT_READY)
        return 0;
    int known = list_cache_get(snapshots->lists, info->id, out, err);
    if (known != 0)
        return known < 0 ? -1 : 0;
    int result = make_list(snapshots, &record, out, err);
    list_cache_done(snapshots->lists, info->id);
    if (result < 0 && !error_is(err, ERROR_NOT_FOUND))
        return error_wrap(err, "list the files of snapshot '%s'", info->id);
    return result;
}
