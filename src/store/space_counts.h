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
};

/* How many there are, of this organisation (NULL: of all), counted up to `enough`. */
int store_count_kept(struct store *store, enum store_kept kind, const char *organisation,
                     int64_t enough, int64_t *out, struct error *err);

int store_space_get(struct store *store, struct store_space *out, struct error *err);
