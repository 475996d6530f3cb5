/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Forks: a new sandbox with the files of a living one as they are at that moment, and everything else that it has: runtime, environment, limits, labels, deadlines. Its
 * processes are not copied. Costs the same however much is on the disk; commands in the first one go on.
 * Threads: any but loops.
 */
#pragma once
#include "core/create.h"
#include "core/sandbox/sandbox_modify.h"

/*
 * Makes a fork of sandbox `id`, different in what `changes` say; without a name unless they give one. A fork of a one-shot sandbox is interactive, with nothing
 * running in it. ERROR_ENDED, noun "sandbox"; else as sandbox_create. No snapshot is left: the files that both share go when neither needs them.
 */
int sandbox_fork(struct core *core, const struct actor *actor, const char *id,
                 const struct sandbox_changes *changes, const struct once *once,
                 struct sandbox_info *out, struct error *err);
