/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of files, made once and remembered; see listing.h. */
#include "core/snapshot/listing.h"

#include "base/fd.h"
#include "base/mem.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#define MAKINGS_MAX 8 // at once
#define WAITING_MAX 8 // for any of them

#define FIRST_WORD "burrow-files-1"

struct making {
    struct making *next;
    char id[ID_TEXT];
};

struct listings {
    char *directory;
    pthread_mutex_t lock; // guards all that follows
    pthread_cond_t made;
    struct making *makings;
    unsigned n_makings, n_waiting;
};

struct listings *listings_new(const char *data_dir)
{
    struct listings *listings = xnew(struct listings);

    listings->directory = xasprintf("%s/" LISTINGS_DIRECTORY, data_dir);
    (void)pthread_mutex_init(&listings->lock, NULL);
    (void)pthread_cond_init(&listings->made, NULL);
    return listings;
}

void listings_free(struct listings *listings)
{
    if (!listings)
        return;
    (void)pthread_mutex_destroy(&listings->lock);
    (void)pthread_cond_destroy(&listings->made);
    free(listings->directory);
    free(listings);
}

// ---- who makes which ----

static struct making **find(struct listings *listings, const char *id)
{
    struct making **at = &listings->makings;
    while (*at && strcmp((*at)->id, id) != 0)
        at = &(*at)->next;
    return at;
}

/* The caller has the lock. */
static int wait_for(struct listings *listings, const char *id)
{
    if (!*find(listings, id))
        return listings->n_makings < MAKINGS_MAX ? 0 : -1;
    if (listings->n_waiting == WAITING_MAX)
        return -1;
    listings->n_waiting++;
    while (*find(listings, id))
        (void)pthread_cond_wait(&listings->made, &listings->lock);
    listings->n_waiting--;
    return 0;
}

static int begin(struct listings *listings, const char *id, struct error *err)
{
    (void)pthread_mutex_lock(&listings->lock);
    int result = wait_for(listings, id);
    if (result == 0) {
        struct making *making = xnew(struct making);
        (void)snprintf(making->id, sizeof making->id, "%s", id);
        making->next = listings->makings;
        listings->makings = making;
        listings->n_makings++;
    }
    (void)pthread_mutex_unlock(&listings->lock);
    if (result == 0)
        return 0;
    return error_refuse(err, ERROR_FULL, "snapshot",
                        "the files of too many snapshots are being listed just now; try again");
}

void listings_go_on(struct listings *listings, const char *id)
{
    (void)pthread_mutex_lock(&listings->lock);
    struct making **at = find(listings, id), *over = *at;
    *at = over->next;
    listings->n_makings--;
    (void)pthread_cond_broadcast(&listings->made);
    (void)pthread_mutex_unlock(&listings->lock);
    free(over);
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

static bool read_all(FILE *file, struct snapshot_files *out)
{
    autofree char *text = NULL;
    size_t size = 0, count = 0;
    unsigned is_cut = 0;

    if (getdelim(&text, &size, '\0', file) <= 0 ||
        sscanf(text, FIRST_WORD " %zu %u", &count, &is_cut) != 2 || count > SNAPSHOT_FILES_MAX)
        return false;
    out->files = xcalloc(count + 1, sizeof *out->files);
    out->is_cut = is_cut != 0;
    while (out->count < count && getdelim(&text, &size, '\0', file) > 0) {
        if (!read_file(text, &out->files[out->count]))
            return false;
        out->count++;
    }
    return out->count == count;
}

static bool read_list(struct listings *listings, const char *id, struct snapshot_files *out)
{
    struct snapshot_files files = {0};
    autofree char *path = xasprintf("%s/%s", listings->directory, id);
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

void listings_keep(struct listings *listings, const char *id, const struct snapshot_files *files)
{
    autofree char *path = xasprintf("%s/%s", listings->directory, id);
    autofree char *partial = xasprintf("%s.new", path); // only its maker is at it
    struct error ignored = {0};

    if (fd_make_dirs(listings->directory, 0700, &ignored) < 0)
        return;
    FILE *file = fopen(partial, "we");
    if (!file)
        return;
    bool is_whole = write_all(file, files);
    if (fclose(file) != 0 || !is_whole || rename(partial, path) < 0)
        (void)unlink(partial); // only remembered: it can be made again
}

// ---- what callers ask ----

int listings_get(struct listings *listings, const char *id, struct snapshot_files *out,
                 struct error *err)
{
    if (read_list(listings, id, out))
        return 1;
    if (begin(listings, id, err) < 0)
        return -1;
    if (!read_list(listings, id, out)) // whoever was at it may have kept it
        return 0;
    listings_go_on(listings, id);
    return 1;
}

void listings_forget(struct listings *listings, const char *id)
{
    autofree char *path = xasprintf("%s/%s", listings->directory, id);
    (void)unlink(path);
}
