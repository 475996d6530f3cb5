/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The catalog of runtimes as its files are now, read again only when one of them has changed, or could not be read: every sandbox that names a runtime looks it
 * up there.
 * Threads: any but loops.
 */
#pragma once
#include "base/lock.h"
#include "runtime/catalog.h"

struct catalog_cache {
    struct lock lock; // guards the next
    struct catalog *catalog;
    uint64_t state; // of its files, when it was read
};
void catalog_cache_init(struct catalog_cache *cache);
void catalog_cache_clear(struct catalog_cache *cache);

/* A reference of the caller's. Looks at the files, and reads those that it has to. */
int catalog_cache_get(struct catalog_cache *cache, const char *data_dir, struct catalog **out,
                      struct error *err);
