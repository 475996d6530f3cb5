/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between create.c, create_files.c and create_later.c: a sandbox on its way, and the steps to it.
 * Threads: one per object.
 */
#pragma once
#include "core/create.h"
#include "core/execution/execution_object.h"
#include "core/fork_files.h"
#include "core/runtime/runtime.h"
#include "core/sandbox/sandbox_object.h"
#include "store/checkpoints.h"
#include "store/snapshots.h"

/* A sandbox on its way. */
struct creation {
    struct core *core;
    const struct actor *actor;
    const struct sandbox_request *request;
    struct snapshot_record snapshot;      // what it starts from; id NULL: nothing but its runtime
    struct fork_files fork;               // or these; "" as layer: none
    char runtime[RUNTIME_REFERENCE_TEXT]; // that was asked for, as it is recorded; "": none was
    struct limits needed;                 // by that
    char *dependencies, *packages; // packed: what was asked for and what its origin has; NULL: none
    char *mounts;                  // packed: directories of the host; NULL: none
    struct sandbox *sandbox;
    struct execution *execution; // of the first command, or NULL
    struct network_wish network;
    bool is_known; // in the registry
    bool is_put;   // has a row
};
void creation_clear(struct creation *creation);

/* Its record in memory, and what it stands on. */
int creation_reserve(struct creation *creation, struct error *err);
/* The row, and that this is the answer to the request: whoever sends it again gets the same. */
int creation_put_early(struct creation *creation, struct error *err);
int creation_take_box(struct creation *creation, struct error *err);
/* Its files, once there is a box. */
int creation_populate(struct creation *creation, struct error *err);
/* The rest, once there is a box. */
int creation_finish(struct creation *creation, struct sandbox_info *out,
                    struct execution_info *first, struct error *err);
/* What had got a row stays known as failed; nothing else is left. */
void creation_abandon(struct creation *creation, const struct error *why);

/* One whose runtime has to be built first: it is there as SANDBOX_CREATING, and goes on by itself. Takes what the creation has. */
int create_later(struct creation *creation, struct sandbox_info *out, struct execution_info *first,
                 struct error *err);
