/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of what there are on this node, and what they take, as far as the database knows.
 * Threads: any but loops.
 */
#pragma once
#include "store/store.h"

enum layer_need { // who needs a layer; the first that fits
    LAYER_FOR_SNAPSHOTS,
    LAYER_FOR_CHECKPOINTS,
    LAYER_FOR_SANDBOXES,
    LAYER_FOR_NOBODY,
    LAYER_NEEDS,
};

struct store_space {
    int64_t snapshots; // ready
    int64_t checkpoints;
    int64_t sandboxes; // alive
    int64_t streams, stream_bytes;
    int64_t layers[LAYER_NEEDS], layer_bytes[LAYER_NEEDS];
};

/* What is kept until somebody removes it. */
enum store_kept {
    KEPT_STREAMS, // of users
    KEPT_SNAPSHOTS,
    KEPT_CHECKPOINTS,
    KEPT_BUILDS, // of snapshots, announced or under way
};

/* How many there are, of the organisation and member (each NULL: of all; "" of builds: those that are no member's), counted up to `enough`. */
int store_count_kept(struct store *store, enum store_kept kind, const char *organisation,
                     const char *member, int64_t enough, int64_t *out, struct error *err);

/*
 * What the layers take that snapshots and checkpoints of this key (NULL: of the whole organisation) have: a layer that an older snapshot of another key has too is that one's. Without what
 * builds keep of their steps.
 */
int store_saved_bytes(struct store *store, const char *organisation, const char *key_id,
                      int64_t *out, struct error *err);

int store_space_get(struct store *store, struct store_space *out, struct error *err);
