/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Limits of a sandbox, changed while it lives.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/sandbox/sandbox_info.h"

struct sandboxes;

/*
 * Sets the limits that are asked for (0: stays as it is), up or down, while its commands go on; what programs in it see follows. It is recorded, with an event,
 * and holds for its later boxes too. One that is paused, or at rest without a box, can be changed as well.
 * ERROR_INVALID, about the limit, below the least or above the server's ceiling. ERROR_STATE, about "memory" or "disk", when more is in use than would be left:
 * caches are taken back for it, nobody is killed and no file goes. Fewer processes than there are only keeps new ones from starting. On failure all is as
 * it was.
 */
int sandbox_set_limits(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                       const struct limits *asked, struct sandbox_info *out, struct error *err);
