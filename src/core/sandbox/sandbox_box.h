/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The box of a sandbox: the right to use it, and a new one where it has none. Private to the core.
 * Threads: workers; blocks. sandbox_try_box and sandbox_unlock_box: any.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

/* The right to use the box. sandbox_lock_box fails, ERROR_GONE noun "sandbox" reason "ended", when there is none; while it goes back to a
 * checkpoint, ERROR_CONFLICT noun "sandbox" reason "state". */
int sandbox_lock_box(struct sandbox *sandbox, struct error *err);
bool sandbox_try_box(struct sandbox *sandbox); // false: in use, or none
void sandbox_unlock_box(struct sandbox *sandbox);

/* A new box over its own files, where it has none: its processes went with the machine, or were ended. */
int sandbox_bring_back(struct sandbox *sandbox, struct error *err);
/* The same by one that has the box_lock and has found no box. */
int sandbox_launch_again(struct sandbox *sandbox, struct error *err);
/* The same for whoever needs a box, unless it is over. */
int sandbox_ensure_box(struct sandbox *sandbox, struct error *err);

/* What a sandbox wrote, kept as a new layer; *bytes is what it takes. Commands may run. */
int sandbox_save_files(struct sandbox *sandbox, const char *name, uint64_t *bytes,
                       struct error *err);
