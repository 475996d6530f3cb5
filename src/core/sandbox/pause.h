/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Pausing a sandbox and waking it, and states that it only passes through. Private to the core.
 * Threads: any but loops; sandbox_rest: any.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

/* The same for whoever needs it awake, however it is now. */
int sandbox_awake(struct sandbox *sandbox, bool *was_paused, struct error *err);

/* It is idle: its box goes, its files stay, and it is paused. In the background; does not block. */
void sandbox_rest(struct sandbox *sandbox);
/* Its time is up, and it is paused for that, whatever runs in it. In the background; does not block. */
void sandbox_rest_expired(struct sandbox *sandbox);
/* Back to what it was doing, from a state that it only passes through. Who has led it there is the only one to lead it away, unless it ends. */
void sandbox_pass_back(struct sandbox *sandbox);
