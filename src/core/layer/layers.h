/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as the core uses them: who needs which, and what goes when nobody does. Private to the core. */
#pragma once
#include "core/sandbox/sandbox_object.h"
#include "base/strings.h"
#include "engine/layer.h"

/* A new name. */
#define LAYER_NAME 48
const char *layers_name(char name[LAYER_NAME]);

/* Where there was no room for a layer, says so and the way out. Returns -1. */
#define LAYERS_NO_ROOM                                                                             \
    "there is no room left on the server's volume; delete sandboxes, snapshots or checkpoints "    \
    "that are not needed"
int layers_explain(struct error *err);

/* Rows for a new layer that `user` (an id) needs, in the caller's transaction. */
int layers_put(struct core *core, const char *name, uint64_t bytes, const char *user,
               struct error *err);
/* `user` needs all of these (packed texts; NULL: none), in the caller's transaction. */
int layers_use(struct core *core, const char *packed, const char *user, struct error *err);

/* Layers that a call reads: nobody removes them meanwhile. A restart of the server lets go of all. */
struct layers_hold {
    struct core *core;
    char user[ID_TEXT]; // "": holds none
};
/* ERROR_NOT_FOUND when one of these (packed texts) is gone. Again for more. */
int layers_hold(struct layers_hold *hold, const char *packed, struct error *err);
void layers_let_go(struct layers_hold *hold);
#define autohold __attribute__((cleanup(layers_let_go))) struct layers_hold

/* Removes layers that nobody needs any more; what they took is added. */
struct layers_freed {
    uint64_t count, bytes;
};
int layers_remove_unused(struct core *core, struct layers_freed *freed, struct error *err);
/* Removes layers that nobody needs any more, in the background. Does not block. */
void layers_tidy(struct core *core);
/* At the start, before anything else: what a crash left goes. */
int layers_sweep(struct core *core, struct error *err);
