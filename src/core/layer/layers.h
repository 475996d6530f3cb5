/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The layer room: saved files of sandboxes, who needs which of them, and the removal of what nobody needs.
 * A layer is used by the ids of snapshots, checkpoints and sandboxes, all in the store.
 * Threads: any but loops; a call that does not block says so: any.
 */
#pragma once
#include "base/auto.h"
#include "base/id.h"
#include "base/strings.h"
#include "engine/layer.h"
#include "loop/workers.h"
#include "store/store.h"

struct layers;

/* All three must outlive it; `workers` remove what nobody needs. */
struct layers *layers_new(struct store *store, struct volume *volume, struct workers *workers);
void layers_free(struct layers *layers);
DEFINE_AUTOPTR(layers)

/* A new name. */
#define LAYER_NAME 48
const char *layers_name(char name[LAYER_NAME]);

/* A packed list of layers: this one, and below it those of another list (NULL: none). The caller frees it. */
char *layers_on_top(const char *layer, const char *below);

/* Where there was no room for a layer, says so and what to do about it; other errors stay as they are. Returns -1. */
#define LAYERS_NO_ROOM                                                                             \
    "there is no room left on the server's volume; delete sandboxes, snapshots or checkpoints "    \
    "that are not needed"
int layers_explain_no_room(struct error *err);

/* Rows for a new layer that `user` (an id) needs, in the caller's transaction. */
int layers_put(struct layers *layers, const char *name, uint64_t bytes, const char *user,
               struct error *err);
/* `user` needs all of these (packed strings; NULL: none), in the caller's transaction. */
int layers_use(struct layers *layers, const char *packed, const char *user, struct error *err);

/* Layers that a call reads: nobody removes them meanwhile. A restart of the server ends all pins. */
struct layers_pin {
    struct layers *layers;
    char user[ID_TEXT]; // "": no layer is pinned
};
/* ERROR_NOT_FOUND when one of these (packed strings) is gone. Can be called again, for more. */
int layers_pin(struct layers_pin *pin, const char *packed, struct error *err);
void layers_unpin(struct layers_pin *pin);
#define autopin __attribute__((cleanup(layers_unpin))) struct layers_pin

/* Removes layers that nobody needs any more; adds up what they took. */
struct layers_freed {
    uint64_t count, bytes;
};
int layers_remove_unused(struct layers *layers, struct layers_freed *freed, struct error *err);
/* The same by a worker. Does not block. */
void layers_remove_unused_later(struct layers *layers);
/* At the start, before anything else: removes what a crash left. */
int layers_sweep(struct layers *layers, struct error *err);
