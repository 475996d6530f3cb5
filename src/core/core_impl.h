/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the core share and nobody else sees. */
#pragma once
#include "core/core.h"
#include "core/stream/streams.h"
#include "engine/box.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "store/store.h"

/*
 * Opens a conversation about files in the sandbox's box (engine/files.h speaks it), counted as activity. `out_user_base`
 * semantics are the sandbox's: its user, its working directory. Waits while it is being created.
 */
int core_files(struct core *core, const struct actor *actor, const char *sandbox_id,
               int *conversation, struct error *err);
