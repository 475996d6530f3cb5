/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of src/core/snapshot/list_cache.c: lists come back as they were put, and a damaged file counts as missing. */
#include "core/snapshot/list_cache.h"

#include "../core_rig.h"
#include "base/mem.h"

#include <fcntl.h>

#define ID "0123456789abcdefghjkmnpqrs"

static struct list_cache *open_cache(char path[256])
{
    const char *data_dir = rig_core()->settings.data_dir;

    (void)snprintf(path, 256, "%s/" LIST_CACHE_DIRECTORY "/" ID, data_dir);
    return list_cache_new(data_dir);
}

static void put(struct list_cache *cache)
{
    struct snapshot_file files[] = {
        {.path = "a b\nc", .size = 7, .mode = 0644, .sha256 = "aa"},
        {.path = "holes", .size = 1ull << 40, .mode = 04755},
    };
    const struct snapshot_files list = {.files = files, .count = 2, .is_cut = true};

    list_cache_put(cache, ID, &list);
}

/* What list_cache_get returns; whoever is to make the list does not. */
static int get(struct list_cache *cache, struct snapshot_files *out)
{
    struct error err = {0};
    int result = list_cache_get(cache, ID, out, &err);

    if (result == 0)
        list_cache_done(cache, ID);
    return result;
}

TEST(a_list_comes_back_as_it_was_put)
{
    char path[256];
    struct list_cache *cache = open_cache(path);
    struct snapshot_files back = {0};

    CHECK_INT(get(cache, &back), 0);
    put(cache);
    CHECK_INT(get(cache, &back), 1);
    CHECK_INT(back.count, 2);
    CHECK(back.is_cut);
    CHECK_STR(back.files[0].path, "a b\nc");
    CHECK_STR(back.files[0].sha256, "aa");
    CHECK_INT(back.files[0].mode, 0644);
    CHECK_STR(back.files[1].path, "holes");
    CHECK_STR(back.files[1].sha256, "");
    CHECK(back.files[1].size == 1ull << 40);
    snapshot_files_clear(&back);
    list_cache_free(cache);
}

TEST(a_damaged_file_counts_as_missing)
{
    char path[256];
    struct list_cache *cache = open_cache(path);
    struct snapshot_files back = {0};

    put(cache);
    CHECK_INT(truncate(path, 40), 0);
    CHECK_INT(get(cache, &back), 0);
    CHECK_INT(back.count, 0);
    list_cache_free(cache);
}

TEST(what_was_dropped_is_made_again)
{
    char path[256];
    struct list_cache *cache = open_cache(path);
    struct snapshot_files back = {0};

    put(cache);
    list_cache_drop(cache, ID);
    CHECK(access(path, F_OK) < 0);
    CHECK_INT(get(cache, &back), 0);
    list_cache_free(cache);
}

TEST(too_many_at_once_are_refused)
{
    char path[256];
    struct list_cache *cache = open_cache(path);
    struct snapshot_files back = {0};
    struct error err = {0};
    char ids[9][ID_TEXT];

    for (unsigned i = 0; i < 8; i++)
        CHECK_INT(list_cache_get(cache, id_make(ids[i]), &back, &err), 0);
    CHECK_INT(list_cache_get(cache, id_make(ids[8]), &back, &err), -1);
    CHECK_INT(err.reason, ERROR_FULL);
    list_cache_done(cache, ids[0]);
    CHECK_INT(list_cache_get(cache, ids[8], &back, &err), 0);
    for (unsigned i = 1; i < 9; i++)
        list_cache_done(cache, ids[i]);
    list_cache_free(cache);
}
