/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of files, made once and remembered; see list_cache.h. */
#include "core/snapshot/list_cache.h"

#include "base/fd.h"
#include "base/lock.h"
#include "base/mem.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define MAKINGS_MAX 8 // at once
#define WAITING_MAX 8 // for any of them

#define FIRST_WORD "burrow-files-1"

struct making {
    struct making *next;
    char id[ID_TEXT];
};

struct list_cache {
    char *directory;
    struct lock lock; // guards all below
    struct lock_condition made;
    struct making *makings;
    unsigned n_makings, n_waiting;
};

struct list_cache *list_cache_new(const char *data_dir)
{
    struct list_cache *cache = xnew(struct list_cache);

    cache->directory = xasprintf("%s/" LIST_CACHE_DIRECTORY, data_dir);
    lock_init(&cache->lock, LOCK_LIST_CACHE);
    lock_condition_init(&cache->made);
    return cache;
}

void list_cache_free(struct list_cache *cache)
{
    if (!cache)
        return;
    lock_condition_clear(&cache->made);
    lock_clear(&cache->lock);
    free(cache->directory);
    free(cache);
}

// ---- who makes which ----

static struct making **find(struct list_cache *cache, const char *id)
{
    struct making **at = &cache->makings;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

/* The caller has the lock. */
static int wait_for(struct list_cache *cache, const char *id)
{
    if (!*find(cache, id))
        return cache->n_makings < MAKINGS_MAX ? 0 : -1;
    if (cache->n_waiting == WAITING_MAX)
        return -1;
    cache->n_waiting++;
    while (*find(cache, id))
        (void)lock_condition_wait(&cache->made, &cache->lock, 0);
    cache->n_waiting--;
    return 0;
}

/* Whether the caller makes the list; false: too many are made or waited for. */
static bool try_begin(struct list_cache *cache, const char *id)
{
    autolock(&cache->lock);
    if (wait_for(cache, id) < 0)
        return false;
    struct making *making = xnew(struct making);
    (void)snprintf(making->id, sizeof making->id, "%s", id);
    making->next = cache->makings;
    cache->makings = making;
    cache->n_makings++;
    return true;
}

static int begin(struct list_cache *cache, const char *id, struct error *err)
{
    if (try_begin(cache, id))
        return 0;
    return error_refuse(err, ERROR_FULL, "snapshot",
                        "the files of too many snapshots are being listed just now; try again");
}

static struct making *unlink_making(struct list_cache *cache, const char *id)
{
    autolock(&cache->lock);
    struct making **at = find(cache, id), *making = *at;
    *at = making->next;
    cache->n_makings--;
    lock_condition_wake(&cache->made);
    return making;
}

void list_cache_done(struct list_cache *cache, const char *id)
{
    free(unlink_making(cache, id));
}

// ---- the file ----

/*
 * Texts that end with NUL, since a path may hold anything else: the first word with the number of files and whether there are more of
 * them than are listed, then hash (or "-"), mode, size and path of each.
 */

static bool read_file(const char *text, struct snapshot_file *out)
{
    struct snapshot_file file = {0};
    int at = 0;

    if (sscanf(text, "%64s %o %" SCNu64 "%n", file.sha256, &file.mode, &file.size, &at) != 3 ||
        text[at] != ' ' || !text[at + 1])
        return false;
    if (strcmp(file.sha256, "-") == 0)
        file.sha256[0] = '\0';
    file.path = xstrdup(text + at + 1);
    *out = file;
    return true;
}

/* One text with its NUL; a file that was cut has none. */
static bool read_text(FILE *file, char **text, size_t *size)
{
    ssize_t got = getdelim(text, size, '\0', file);
    return got > 0 && (*text)[got - 1] == '\0';
}

static bool read_all(FILE *file, struct snapshot_files *out)
{
    autofree char *text = NULL;
    size_t size = 0, count = 0;
    unsigned is_cut = 0;

    if (!read_text(file, &text, &size) ||
        sscanf(text, FIRST_WORD " %zu %u", &count, &is_cut) != 2 || count > SNAPSHOT_FILES_MAX)
        return false;
    out->files = xcalloc(count + 1, sizeof *out->files);
    out->is_cut = is_cut != 0;
    while (out->count < count && read_text(file, &text, &size)) {
        if (!read_file(text, &out->files[out->count]))
            return false;
        out->count++;
    }
    return out->count == count;
}

static bool read_list(struct list_cache *cache, const char *id, struct snapshot_files *out)
{
    struct snapshot_files files = {0};
    autofree char *path = xasprintf("%s/%s", cache->directory, id);
    autofile file = fopen(path, "re");

    if (!file)
        return false;
    if (!read_all(file, &files)) {
        snapshot_files_clear(&files);
        return false;
    }
    *out = files;
    return true;
}

static bool write_all(FILE *file, const struct snapshot_files *files)
{
    (void)fprintf(file, FIRST_WORD " %zu %u%c", files->count, files->is_cut, 0);
    for (size_t i = 0; i < files->count; i++) {
        const struct snapshot_file *one = &files->files[i];
        (void)fprintf(file, "%s %o %" PRIu64 " %s%c", one->sha256[0] ? one->sha256 : "-", one->mode,
                      one->size, one->path, 0);
    }
    return !ferror(file);
}

void list_cache_put(struct list_cache *cache, const char *id, const struct snapshot_files *files)
{
    autofree char *path = xasprintf("%s/%s", cache->directory, id);
    autofree char *partial = xasprintf("%s.new", path); // only one at a time makes it
    struct error ignored = {0};

    if (fd_make_dirs(cache->directory, 0700, &ignored) < 0)
        return;
    FILE *file = fopen(partial, "we");
    if (!file)
        return;
    bool is_whole = write_all(file, files);
    if (fclose(file) != 0 || !is_whole || rename(partial, path) < 0)
        (void)unlink(partial); // only remembered: it can be made again
}

// ---- what callers ask ----

int list_cache_get(struct list_cache *cache, const char *id, struct snapshot_files *out,
                   struct error *err)
{
    if (read_list(cache, id, out))
        return 1;
    if (begin(cache, id, err) < 0)
        return -1;
    if (!read_list(cache, id, out)) // whoever made it before may have put it
        return 0;
    list_cache_done(cache, id);
    return 1;
}

void list_cache_drop(struct list_cache *cache, const char *id)
{
    autofree char *path = xasprintf("%s/%s", cache->directory, id);
    (void)unlink(path);
}
