/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a snapshot's files: each is made once, however many ask for it at once, and then cached in a file. A file that is damaged
 * counts as missing.
 * Threads: any but loops.
 */
#pragma once
#include "core/snapshot/snapshot_impl.h"

#define LIST_CACHE_DIRECTORY "snapshots" // in the data directory

struct list_cache;

struct list_cache *list_cache_new(const char *data_dir); // borrowed
void list_cache_free(struct list_cache *cache);

/*
 * 1: the list is cached, and in *out. 0: the caller makes it, puts it if it succeeds, and then calls list_cache_done in any case.
 * Waits while another makes it. ERROR_FULL, noun "snapshot", when too many are made or waited for, so that not all
 * workers wait here.
 */
int list_cache_get(struct list_cache *cache, const char *id, struct snapshot_files *out,
                   struct error *err);
void list_cache_put(struct list_cache *cache, const char *id, const struct snapshot_files *files);
void list_cache_done(struct list_cache *cache, const char *id);

/* The snapshot is gone. */
void list_cache_drop(struct list_cache *cache, const char *id);
