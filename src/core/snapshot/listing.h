/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a snapshot's files on their way: each is made once, however many ask for it at once, and then remembered in a file. The
 * file is only a memory: one that is damaged counts as missing. Private to the core.
 */
#pragma once
#include "core/snapshot/snapshot_impl.h"

#define LISTINGS_DIRECTORY "snapshots" // in the data directory

struct listings;

struct listings *listings_new(const char *data_dir); // borrowed
void listings_free(struct listings *listings);

/*
 * 1: the list is remembered, and in *out. 0: the caller makes it, and then lets others go on, with or without having it kept. Waits
 * while another makes it. ERROR_LIMIT, noun "snapshot", reason "full", when too many are made or waited for: workers are there for others too.
 */
int listings_get(struct listings *listings, const char *id, struct snapshot_files *out,
                 struct error *err);
void listings_keep(struct listings *listings, const char *id, const struct snapshot_files *files);
void listings_go_on(struct listings *listings, const char *id);

/* It is not needed any more. */
void listings_forget(struct listings *listings, const char *id);
