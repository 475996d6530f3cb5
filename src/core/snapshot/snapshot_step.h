/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots that are built from steps: what a build has after each of its steps is kept under a key, so that the next build with the same
 * steps begins behind them; and how such a build ends. core/recipe.h runs the steps.
 * Threads: any but loops.
 */
#pragma once
#include "core/snapshot/snapshot.h"

#define SNAPSHOT_STEPS_KEPT 64    // of an owner: what was used longest ago goes
#define SNAPSHOT_BY_STEPS "steps" // the content_hash of builds from steps

/* What an earlier build of the same owner had behind the step with this key (snapshot_request.step), never another's that the actor sees.
 * ERROR_NOT_FOUND, noun "snapshot". */
int snapshot_step_find(struct snapshots *snapshots, const struct actor *actor, const char *key,
                       struct snapshot_info *out, struct error *err);
/* Removes those of the actor's own that are too many. */
void snapshot_steps_prune(struct snapshots *snapshots, const struct actor *actor);

/* What a build has become. */
struct snapshot_outcome {
    const char *snapshot;          // whose files it has; NULL: those of the runtime alone
    const char *runtime;           // where that is NULL
    const char *const *env;        // NAME=VALUE, over those of `snapshot`; or NULL
    const char *metadata;          // JSON
    const char *const *other_tags; // under which it is known beside its own; NULL: none
};
/* The build is ready, and takes its tags from others; an earlier build from steps that has none any more is removed. */
int snapshot_build_complete(struct snapshots *snapshots, const struct actor *actor, const char *id,
                            const struct snapshot_outcome *outcome, struct error *err);
/* It has failed; one that is over already stays as it is, and *has_changed (or NULL) is false. */
int snapshot_build_fail(struct snapshots *snapshots, const char *id, const char *why,
                        bool *has_changed, struct error *err);

/* The same files once more, under another tag of its name. */
int snapshot_add_tag(struct snapshots *snapshots, const struct actor *actor, const char *id,
                     const char *tag, struct error *err);
int snapshot_set_public(struct snapshots *snapshots, const struct actor *actor, const char *id,
                        bool is_public, struct error *err);
