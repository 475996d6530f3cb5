/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Listing in order, page by page: of a whole tree, those entries are kept that come first behind a given path, and only so many. So a
 * page takes the same memory whatever a guest has made, and what comes or goes meanwhile moves no other entry to another page.
 * Directories whose entries cannot be among them are not entered.
 */
#include "base/auto.h"
#include "base/pattern.h"
#include "init/files_talk.h"
#include "init/inside.h"
#include "init/walk.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define MAX_KEPT 1000
#define MAX_KEPT_BYTES ((size_t)1 << 20) // of their paths
#define ALIVE_EVERY 64                   // entries

struct found {
    struct files_item item;
    char *strings; // path and target
    size_t bytes;
};

struct find {
    struct talk *talk;
    struct walk walk;
    struct pattern *pattern; // NULL: any path
    struct found *found;     // a heap, the last path at its top
    size_t count, maximum;
    size_t bytes;
};

static void find_clear(struct find *find)
{
    for (size_t i = 0; i < find->count; i++)
        free(find->found[i].strings);
    free(find->found);
    pattern_free(find->pattern);
    walk_clear(&find->walk);
}
#define autofind __attribute__((cleanup(find_clear))) struct find

// ---- those that are kept ----

static int compare(const struct found *a, const struct found *b)
{
    return files_path_compare(a->item.path, b->item.path);
}

static int compare_for_sort(const void *a, const void *b)
{
    return compare(a, b);
}

static void swap(struct found *a, struct found *b)
{
    struct found kept = *a;
    *a = *b;
    *b = kept;
}

static void sift_up(struct find *find, size_t at)
{
    while (at > 0) {
        size_t above = (at - 1) / 2;
        if (compare(&find->found[at], &find->found[above]) <= 0)
            return;
        swap(&find->found[at], &find->found[above]);
        at = above;
    }
}

static void sift_down(struct find *find, size_t at)
{
    for (;;) {
        size_t last = at;
        for (size_t below = at * 2 + 1; below <= at * 2 + 2 && below < find->count; below++) {
            if (compare(&find->found[below], &find->found[last]) > 0)
                last = below;
        }
        if (last == at)
            return;
        swap(&find->found[at], &find->found[last]);
        at = last;
    }
}

/* The last path of all goes: there is more than fits. */
static void drop_last(struct find *find)
{
    find->bytes -= find->found[0].bytes;
    free(find->found[0].strings);
    find->found[0] = find->found[--find->count];
    sift_down(find, 0);
    find->talk->total.is_truncated = 1;
}

static bool is_full(const struct find *find)
{
    return find->count == find->maximum || find->bytes > MAX_KEPT_BYTES;
}

static int keep(struct find *find, const struct files_item *item)
{
    size_t path_size = strlen(item->path) + 1, target_size = strlen(item->target) + 1;
    char *strings = malloc(path_size + target_size);

    if (!strings)
        return -1;
    memcpy(strings, item->path, path_size);
    memcpy(strings + path_size, item->target, target_size);
    struct found found = {*item, strings, path_size + target_size};
    found.item.path = strings;
    found.item.target = strings + path_size;
    find->found[find->count++] = found; // there is room for one more than the maximum
    find->bytes += found.bytes;
    sift_up(find, find->count - 1);
    while (find->count > find->maximum || (find->bytes > MAX_KEPT_BYTES && find->count > 1))
        drop_last(find);
    return 0;
}

// ---- which they are ----

static bool is_below(const char *path, const char *above)
{
    size_t length = strlen(above);
    return strncmp(path, above, length) == 0 && path[length] == '/';
}

/* Whether an entry with this path comes too late to be kept. */
static bool is_late(const struct find *find, const char *path)
{
    return is_full(find) && files_path_compare(path, find->found[0].item.path) > 0;
}

static bool may_hold_matches(struct find *find)
{
    struct walk *walk = &find->walk;
    const char *path = walk->path, *after = find->talk->third;
    size_t length = strlen(path);
    size_t used;

    if (find->talk->request.depth && walk->depth >= find->talk->request.depth)
        return false;
    if (*after && files_path_compare(path, after) < 0 && !is_below(after, path))
        return false;
    if (is_late(find, path)) {
        find->talk->total.is_truncated = 1;
        return false;
    }
    if (!find->pattern)
        return true;
    // what begins with "path/"
    if (!pattern_may_begin(find->pattern, path, length))
        return false;
    (void)pattern_feed(find->pattern, "/", 1, &used);
    return pattern_may_go_on(find->pattern);
}

static uint32_t kind_of(mode_t mode)
{
    switch (mode & S_IFMT) {
    case S_IFREG:
        return FILES_KIND_FILE;
    case S_IFDIR:
        return FILES_KIND_DIRECTORY;
    case S_IFLNK:
        return FILES_KIND_LINK;
    default:
        return FILES_KIND_OTHER;
    }
}

static bool is_wanted(struct find *find, const struct stat *info)
{
    const char *path = find->walk.path, *after = find->talk->third;

    if (!(find->talk->request.kinds & kind_of(info->st_mode)))
        return false;
    if (*after && files_path_compare(path, after) <= 0)
        return false;
    if (find->pattern && !pattern_matches(find->pattern, path, strlen(path)))
        return false;
    if (!is_late(find, path))
        return true;
    find->talk->total.is_truncated = 1;
    return false;
}

/* 0, or -1 without memory. */
static int find_entry(struct find *find)
{
    struct walk *walk = &find->walk;
    struct stat info;
    struct files_item item;

    if (fstatat(walk_dir(walk), walk_name(walk), &info, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT) < 0)
        return 0; // gone meanwhile
    if (is_wanted(find, &info)) {
        talk_describe(find->talk, walk_dir(walk), walk_name(walk), walk->path, &info, &item);
        if (keep(find, &item) < 0)
            return -1;
    }
    if (!S_ISDIR(info.st_mode) || !may_hold_matches(find))
        return 0;
    // behind that no request could name an entry, nor ask for the page behind one
    if (strlen(walk->path) + 257 >= FILES_MAX_PATH || walk_enter(walk) < 0)
        find->talk->total.skipped++;
    return 0;
}

static int find_walk(struct find *find, struct error *err)
{
    for (unsigned count = 1;; count++) {
        enum walk_step step = walk_next(&find->walk);
        if (step == WALK_FAILED)
            return error_path(err, "list " INSIDE_SHOWN, find->talk->path);
        if (step == WALK_END)
            return 0;
        if (step == WALK_ENTRY && find_entry(find) < 0)
            return error_set(err, ERROR_LIMIT, "the sandbox has no memory left for a listing");
        if (count % ALIVE_EVERY == 0 && talk_alive(find->talk) < 0)
            return TALK_OVER;
    }
}

static int send_found(struct find *find)
{
    if (find->count)
        qsort(find->found, find->count, sizeof *find->found, compare_for_sort);
    for (size_t i = 0; i < find->count; i++) {
        if (talk_item(find->talk, &find->found[i].item) < 0)
            return TALK_OVER;
    }
    return 0;
}

int files_do_find(struct talk *talk, struct error *err)
{
    autofind find = {.talk = talk};
    struct stat info;
    uint64_t maximum = talk->request.maximum;

    find.maximum = maximum < MAX_KEPT ? (size_t)maximum : MAX_KEPT;
    if (!find.maximum)
        return error_set(err, ERROR_INVALID, "a listing of no entries was asked for");
    if (talk->second[0] && pattern_new(talk->second, PATTERN_GLOB, false, &find.pattern, err) < 0)
        return -1;
    int fd = inside_open(talk->base, talk->path, O_RDONLY | O_DIRECTORY, S_IFDIR, &info, err);
    if (fd < 0)
        return -1;
    if (walk_init(&find.walk, fd, false) < 0)
        return error_path(err, "open " INSIDE_SHOWN, talk->path);
    find.found = calloc(find.maximum + 1, sizeof *find.found);
    if (!find.found)
        return error_set(err, ERROR_LIMIT, "the sandbox has no memory left for a listing");
    int result = find_walk(&find, err);
    return result < 0 ? result : send_found(&find);
}
