/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The snapshot room: what its files share, for whoever opens it. Callers use snapshot.h, checkpoint.h, difference.h and
 * snapshot_archive.h.
 * Threads: any; nothing in the struct changes after snapshots_new.
 */
#pragma once
#include "base/auto.h"
#include "core/settings.h"

struct accounts;
struct background;
struct layers;
struct list_cache;
struct runtimes;
struct sandboxes;
struct store;
struct volume;

struct snapshots {
    // Borrowed; set by whoever opens the room.
    const struct core_settings *settings;
    struct store *store;
    struct volume *volume;
    struct runtimes *runtimes;
    struct layers *layers;
    struct accounts *accounts;
    struct sandboxes *sandboxes;
    struct background *background; // counts files and merges layers

    struct list_cache *lists; // its own
};

/* `parts` has what is borrowed. */
struct snapshots *snapshots_new(const struct snapshots *parts);
/* The background has stopped. */
void snapshots_free(struct snapshots *snapshots);
DEFINE_AUTOPTR(snapshots)
