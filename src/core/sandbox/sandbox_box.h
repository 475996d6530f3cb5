/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The box of a sandbox: the right to use it, a new one where it has none, and its files kept as a layer. Private to the core.
 *
 *     autobox held = sandbox_use_box(sandbox, err);   held until the block ends
 *     if (!held)
 *         return -1;
 *
 * Threads: any but loops; sandbox_try_box: any.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

/* The box_lock is held as long as this is; NULL: it is not held. */
#define autobox __attribute__((cleanup(sandbox_leave_box), unused)) struct sandbox *
void sandbox_leave_box(struct sandbox **held);

/*
 * One that has a box; waits while its files are copied. NULL: ERROR_ENDED, noun "sandbox", when it has none;
 * ERROR_STATE while it goes back to a checkpoint.
 */
struct sandbox *sandbox_use_box(struct sandbox *sandbox, struct error *err);
struct sandbox *
sandbox_hold_box(struct sandbox *sandbox); // with a box or without; not while its files are copied
struct sandbox *sandbox_share_box(
    struct sandbox *sandbox); // the same, also while they are: nothing in it must change
struct sandbox *
sandbox_try_box(struct sandbox *sandbox); // likewise; NULL: in use, or there is none

/* Where it has no box: a new one over its own files. Its processes went with the machine, or were ended. */
int sandbox_bring_back(struct sandbox *sandbox, struct error *err);
/* The same by one that holds the box_lock and has found no box. */
int sandbox_launch_again(struct sandbox *sandbox, struct error *err);
/* The same for whoever needs a box, unless it is over. */
int sandbox_ensure_box(struct sandbox *sandbox, struct error *err);

/*
 * What it wrote, kept as the new layer `name`; *bytes is what that takes. Commands may run; where files have to be copied one by one
 * they stand still meanwhile, but output and ends are still heard.
 */
int sandbox_save_files(struct sandbox *sandbox, const char *name, uint64_t *bytes,
                       struct error *err);
