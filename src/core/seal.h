/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets of a sandbox that need no record: each is made from what this server alone knows (a file in its data directory), the sandbox's
 * id and what it is for. A front whose protocol gives every sandbox a secret of its own makes it so, and tells by it who is asking.
 * Threads: any; none blocks, but for seal_open: one thread.
 */
#pragma once
#include "core/account/actor.h"
#include "model/sandbox.h"

#define SEAL_BYTES 32
#define SEAL_TEXT 65 // 64 hexadecimal digits

struct core;

/* Reads what it is made from, or makes that. */
int seal_open(struct core *core, struct error *err);

/* `purpose` is a word of the front's, a literal. */
void seal_make(const struct core *core, const char *purpose, const char *sandbox_id,
               char out[SEAL_TEXT]);
/* Whether this is it; in the same time for all that are not. */
bool seal_is(const struct core *core, const char *purpose, const char *sandbox_id,
             const char *text);

/*
 * Who has shown that it may use this sandbox: sees it alone, with the scopes read, run and manage, for the key that made it. False: it is not
 * alive. `state` (may be NULL) is its state.
 */
bool seal_actor(struct core *core, const char *sandbox_id, struct actor *out,
                enum sandbox_state *state);

/* What a front keeps with it (front_data), the caller's to free; NULL: nothing, or it is not alive. Memory work alone. */
char *seal_front_data(struct core *core, const char *sandbox_id);

/* Calls fn with the id of each sandbox that is alive until it returns true; whether it did. */
bool seal_find(struct core *core, bool (*fn)(void *data, const char *sandbox_id), void *data);
