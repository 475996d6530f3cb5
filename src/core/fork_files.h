/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files of a fork, from when they are taken until the new sandbox has them. Private to the root of the core.
 * Threads: any but loops; one per object.
 */
#pragma once
#include "core/core.h"
#include "core/layer/layers.h"

struct actor;

struct fork_files {
    struct core *core;
    char layer[LAYER_NAME]; // what the first one wrote; "": nothing was taken
    uint64_t bytes;
    char *layers;          // that, and what it stands on; packed, top first
    char *snapshot;        // what the first one was made from; or NULL
    struct layers_pin pin; // of what it stands on
    bool is_held;          // a sandbox needs the layers: they are its own
};

/* Keeps the files of the sandbox as a layer. */
int fork_files_take(struct fork_files *files, struct core *core, const struct actor *actor,
                    const char *sandbox_id, struct error *err);
/* From here on sandbox `id` needs them. */
int fork_files_hold(struct fork_files *files, const char *id, struct error *err);
/* What nobody holds is removed. */
void fork_files_clear(struct fork_files *files);
