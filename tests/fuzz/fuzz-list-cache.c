/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzz target: any bytes as the remembered list of a snapshot's files. What is taken is written and read again as it was, and not a byte
 * less of it is taken. */
#include "place.h"

#include "base/mem.h"
#include "core/snapshot/list_cache.h"
#include "core/snapshot/snapshot.h"

#include <stdint.h>
#include <string.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char id[] = "00000000000000000000000000";
static const char file[] = LIST_CACHE_DIRECTORY "/00000000000000000000000000";
static struct list_cache *cache;

static void check(bool is_true)
{
    if (!is_true)
        abort();
}

static bool get(struct snapshot_files *out)
{
    struct error err = {0};
    int found = list_cache_get(cache, id, out, &err);
    check(found >= 0);
    if (found == 0)
        list_cache_done(cache, id);
    return found == 1;
}

static void check_same(const struct snapshot_files *a, const struct snapshot_files *b)
{
    check(a->count == b->count && a->is_cut == b->is_cut);
    for (size_t i = 0; i < a->count; i++) {
        const struct snapshot_file *one = &a->files[i], *two = &b->files[i];
        check(*one->path && strcmp(one->path, two->path) == 0);
        check(one->size == two->size && one->mode == two->mode);
        check(strcmp(one->sha256, two->sha256) == 0);
    }
}

/* Written whole it is the same; without its last byte it is none. */
static void check_again(const struct snapshot_files *files)
{
    struct snapshot_files again = {0}, cut = {0};
    struct stat info;

    list_cache_put(cache, id, files);
    check(get(&again));
    check_same(files, &again);
    snapshot_files_clear(&again);
    autofd fd = openat(place_fd, file, O_WRONLY | O_CLOEXEC);
    check(fd >= 0 && fstat(fd, &info) == 0 && ftruncate(fd, info.st_size - 1) == 0);
    check(!get(&cut));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct snapshot_files files = {0};

    if (!cache) {
        (void)place_open();
        check(mkdirat(place_fd, LIST_CACHE_DIRECTORY, 0700) == 0);
        cache = list_cache_new(place);
    }
    place_put(file, data, size);
    if (get(&files))
        check_again(&files);
    snapshot_files_clear(&files);
    return 0;
}
