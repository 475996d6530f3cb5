/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server's data takes on the disk, by what it is for, and giving back what nobody uses.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"

#include <stdbool.h>
#include <stdint.h>

struct core;

enum space_part {
    SPACE_RUNTIMES, // built ones
    SPACE_SNAPSHOTS, // layers that a snapshot needs; each layer is counted once, here before the next two
    SPACE_CHECKPOINTS, // layers that only checkpoints need
    SPACE_SANDBOXES, // what sandboxes have written beside their layers, and layers that only they need
    SPACE_STREAMS, // spools of outputs and users' streams
    SPACE_DATABASE,
    SPACE_UNUSED, // layers and files that nobody needs: what space_prune gives back
    SPACE_PARTS,
};

struct space_use {
    uint64_t count;
    uint64_t
        bytes; // of a layer, what its files took when it was kept: blocks that two layers share count in both
};

struct space {
    uint64_t volume_bytes; // of the file system that layers and sandboxes are on
    uint64_t free_bytes;
    struct space_use parts[SPACE_PARTS];
};

/* From the quotas, manifests and the database; no tree is walked. ERROR_DENIED unless the actor is an admin. */
int space_get(struct core *core, const struct actor *actor, struct space *out, struct error *err);

struct space_pruning {
    bool is_trial; // only tell what would go
};

/*
 * Removes what nothing uses: layers that nobody needs, builds of snapshots that were announced more than an hour ago and never finished, uploads of a
 * server that is no more. Never a snapshot, a checkpoint or a runtime that can be asked for. `freed` is by parts; what cannot be
 * attributed is SPACE_UNUSED. ERROR_DENIED unless the actor is an admin.
 */
int space_prune(struct core *core, const struct actor *actor, const struct space_pruning *pruning,
                struct space_use freed[SPACE_PARTS], struct error *err);
