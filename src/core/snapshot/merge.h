/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of snapshots of snapshots: their stacks of layers are kept short (docs/internals/layers.md). The lowest LAYER_MERGE_AT layers of a
 * stack that has more become one, for all snapshots that stand on them; what they show stays the same. Sandboxes keep the layers they
 * were started on.
 * Threads: any but loops; merge_later: any.
 */
#pragma once
#include "base/error.h"

struct layers_pin; // core/layer/layers.h
struct snapshots;  // snapshots.h

/* Shortens the stack of a snapshot, where it is too long. Blocks for as long as it takes: a background_fn. */
void merge_snapshot(void *snapshots, const char *id);

/* The same for whoever wants to start on it, where no box takes so many layers: only then does it block. `layers` is packed. */
int merge_for_start(struct snapshots *snapshots, const char *id, const char *layers,
                    struct error *err);

/* For a new snapshot: shortens its stack in the background, where needed. Does not block. `layers` is packed. */
void merge_later(struct snapshots *snapshots, const char *id, const char *layers);

/*
 * The same for a stack that is no snapshot's, whose lower layers exist: *out is what to start on instead, or a copy of `layers`, and the caller's to free. A layer that
 * had to be made stays as long as it is pinned, or used by somebody else.
 */
int merge_stack(struct snapshots *snapshots, const char *layers, struct layers_pin *pin, char **out,
                struct error *err);
