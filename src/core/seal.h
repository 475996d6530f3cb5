/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Secrets of a sandbox that need no record: each is made from what this server alone knows (a file in its data directory), the sandbox's
 * id and what it is for. A front whose protocol gives every sandbox a secret of its own makes it so, and tells by it who is asking.
 * Threads: any; none blocks, but for seal_open: one thread.
 */
#pragma once
#include "core/account/actor.h"
#include "model/sandbox.h"

#include <stddef.h>

#define SEAL_BYTES 32
#define SEAL_TEXT 65 // 64 hexadecimal digits

struct core;

/* Reads what it is made from, or makes that. */
int seal_open(struct core *core, struct error *err);

/* `purpose` is a word of the front's, a literal; `subject` what it is for: a sandbox's id, with more where that matters. Both together have 127 bytes at most. */
void seal_make(const struct core *core, const char *purpose, const char *subject,
               char out[SEAL_TEXT]);
/* Whether this is it; in the same time for all that are not. */
bool seal_is(const struct core *core, const char *purpose, const char *subject, const char *text);

/*
 * Who has shown that it may use this sandbox: sees it alone, with the scopes read, run and manage, for the key that made it. False: it is not
 * alive. `state` (may be NULL) is its state.
 */
bool seal_actor(struct core *core, const char *sandbox_id, struct actor *out,
                enum sandbox_state *state);

/* Nobody known, where a sandbox is open to everybody: sees it alone, by no key. */
bool seal_stranger(struct core *core, const char *sandbox_id, struct actor *out);
/* Without who: whether it is alive. */
bool seal_is_alive(struct core *core, const char *sandbox_id, enum sandbox_state *state);

/*
 * For a secret that is one key's: the actor, who is that key, is held to this sandbox, with no more than the scopes read, run and manage. False: it is not alive, or the
 * actor may not see it; labels (actor.selector) are not looked at.
 */
bool seal_hold(struct core *core, const char *sandbox_id, struct actor *actor);

/*
 * Which keys such a secret may be of, where it is shown by what was made with it: that which made the sandbox, first, and those that were added since the server has started, the last
 * SEAL_KEYS of them. "" is the machine's own root. The number of them; 0: it is not alive.
 */
#define SEAL_KEYS 8
void seal_add_key(struct core *core, const char *sandbox_id, const char *key_id);
size_t seal_list_keys(struct core *core, const char *sandbox_id, char out[SEAL_KEYS + 1][ID_TEXT]);

/* What a front keeps with it (front_data), the caller's to free; NULL: nothing, or it is not alive. Memory work alone. */
char *seal_front_data(struct core *core, const char *sandbox_id);

/* Calls fn with the id of each sandbox that is alive until it returns true; whether it did. */
bool seal_find(struct core *core, bool (*fn)(void *data, const char *sandbox_id), void *data);
