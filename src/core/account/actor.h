/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking: by which key, for which organisation, seeing how much of it. A value; copy it freely.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"
#include "core/account/scope.h"
#include "model/owner.h"
#include "model/quota.h"

#include <stdbool.h>
#include <stdint.h>

struct cancel; // base/cancel.h

#define MEMBER_TEXT 65    // a name of 64 bytes
#define SELECTOR_TEXT 129 // of 128 bytes

struct actor {
    char key_id
        [ID_TEXT]; // "": no key (the machine's own root, over the local socket). Of a token: of the key that made it
    char token_id[ID_TEXT]; // "": it is no token
    char organisation[ID_TEXT];
    char member[MEMBER_TEXT]; // whose key it is; "": nobody's in particular
    char sandbox[ID_TEXT];    // of a token: the one sandbox it opens; "": any
    unsigned scopes;          // scope.h
    bool is_admin;            // has SCOPE_ADMIN
    bool is_stranger;         // nobody known, in a sandbox that is open to everybody: uses no quota
    char selector[SELECTOR_TEXT]; // labels of the sandboxes it may see (base/label.h); "": all
    bool has_rules;               // the key's record says more of what it may make: key_rules_check
    uint32_t
        tools; // mcp_tool.h: the key is for these alone, and for no other protocol; 0: it is no such key
    struct quota quota; // of the key; 0: no bound
    const char *
        tenant; // NULL: sees every tenant of the organisation; else this one alone. Borrowed, like those below
    const char *scope;   // likewise
    const char *project; // given to what it makes; never hides anything
    struct cancel
        *cancel; // says that it does not wait for the answer any more; NULL: it cannot. Borrowed
};

/* Whether a row of this owner exists for the actor. A token sees none this way: see below. */
bool actor_sees(const struct actor *actor, const struct owner *owner);
/* The same of a row that belongs to a sandbox (or is one), which is what a token may see. */
bool actor_sees_in(const struct actor *actor, const struct owner *owner, const char *sandbox_id);

/* Whether its key is for sandboxes with these labels, "name=value" (NULL: none). */
bool actor_selects(const struct actor *actor, const char *const *labels);
/* ERROR_DENIED unless it is. */
int actor_need_labels(const struct actor *actor, const char *const *labels, struct error *err);

/* ERROR_SCOPE, naming it, unless the actor has the scope. */
int actor_need(const struct actor *actor, enum key_scope scope, struct error *err);
/* ERROR_DENIED for a token, which is for its own sandbox alone. */
int actor_refuse_token(const struct actor *actor, const char *what, struct error *err);

/* ERROR_DENIED unless it is an administrator of the whole server: one of a single owner's things is not. */
int actor_need_admin(const struct actor *actor, struct error *err);

/* Whose its new rows are. Texts are borrowed from the actor. */
struct owner actor_owner(const struct actor *actor);
struct owner actor_own(const struct actor *actor); // the same, of all its projects

/* What lists of the actor may contain. */
struct owner actor_filter(const struct actor *actor);
