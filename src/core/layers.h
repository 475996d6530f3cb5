/* SPDX-License-Identifier: Apache-2.0 */
/* Layers as the core uses them: who needs which, and what goes when nobody does. Private to the core. */
#pragma once
#include "core/live.h"
#include "core/texts.h"
#include "engine/layer.h"

/* A new name. */
#define LAYER_NAME 48
const char *layers_name(char name[LAYER_NAME]);

/* What a sandbox wrote, kept as a new layer; *bytes is what it takes. Commands may run. */
int layers_save(struct live *live, const char *name, uint64_t *bytes, struct error *err);

/* Rows for a new layer that `user` (an id) needs, in the caller's transaction. */
int layers_put(struct core *core, const char *name, uint64_t bytes, const char *user, struct error *err);
/* `user` needs all of these (packed texts; NULL: none), in the caller's transaction. */
int layers_use(struct core *core, const char *packed, const char *user, struct error *err);

/* Removes layers that nobody needs any more, in the background. Does not block. */
void layers_tidy(struct core *core);
/* At the start, before anything else: what a crash left goes. */
int layers_sweep(struct core *core, struct error *err);
