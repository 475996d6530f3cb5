/* SPDX-License-Identifier: Apache-2.0 */
/* The catalog, read when it has changed; see catalog_cache.h. */
#include "core/runtime/catalog_cache.h"

void catalog_cache_init(struct catalog_cache *cache)
{
    lock_init(&cache->lock, LOCK_RUNTIMES);
}

void catalog_cache_clear(struct catalog_cache *cache)
{
    catalog_free(cache->catalog);
    cache->catalog = NULL;
    lock_clear(&cache->lock);
}

static struct catalog *find(struct catalog_cache *cache, uint64_t state)
{
    autolock(&cache->lock);
    return cache->catalog && cache->state == state ? catalog_ref(cache->catalog) : NULL;
}

static void keep(struct catalog_cache *cache, struct catalog *catalog, uint64_t state)
{
    struct catalog *old;
    {
        autolock(&cache->lock);
        old = cache->catalog;
        cache->catalog = catalog_ref(catalog);
        cache->state = state;
    }
    catalog_free(old);
}

int catalog_cache_get(struct catalog_cache *cache, const char *data_dir, struct catalog **out,
                      struct error *err)
{
    uint64_t state, after;
    bool is_settled = catalog_look(data_dir, NULL, &state);
    autoptr(catalog) catalog = is_settled ? find(cache, state) : NULL;

    if (!catalog) {
        if (catalog_load(data_dir, NULL, &catalog, err) < 0)
            return -1;
        // what changed while it was read may be in it or not
        if (is_settled && !catalog_is_unsure(catalog) && catalog_look(data_dir, NULL, &after) &&
            after == state)
            keep(cache, catalog, state);
    }
    *out = take(catalog);
    return 0;
}
