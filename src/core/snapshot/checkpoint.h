/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checkpoints: named moments of one sandbox's files, to go back to.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/snapshot/checkpoint_info.h"

struct snapshots; // snapshots.h

/* ERROR_EXISTS, noun "checkpoint", when the name is taken; ERROR_STATE, noun "sandbox", when it is paused: that for all but the list. */
int checkpoint_create(struct snapshots *snapshots, const struct actor *actor,
                      const char *sandbox_id, const char *name, struct checkpoint_info *out,
                      struct error *err);
int checkpoint_list(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                    struct checkpoint_infos *out, struct error *err);
/* By id or name. Everything that runs ends, the files are as they were; later checkpoints stay. */
int checkpoint_restore(struct snapshots *snapshots, const struct actor *actor,
                       const char *sandbox_id, const char *reference, struct error *err);
/* Of an ended one too. */
int checkpoint_remove(struct snapshots *snapshots, const struct actor *actor,
                      const char *sandbox_id, const char *reference, struct error *err);
