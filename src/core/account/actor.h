/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is asking: by which key, for which organisation, seeing how much of it. A value; copy it freely.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"
#include "model/owner.h"

#include <stdbool.h>

struct cancel; // base/cancel.h

struct actor {
    char key_id[ID_TEXT]; // "": no key (the machine's own root, over the local socket)
    char organisation[ID_TEXT];
    bool is_admin; // may manage keys
    const char *
        tenant; // NULL: sees every tenant of the organisation; else this one alone. Borrowed, like those below
    const char *scope;   // likewise
    const char *project; // given to what it makes; never hides anything
    struct cancel
        *cancel; // says that it does not wait for the answer any more; NULL: it cannot. Borrowed
};

/* Whether a row of this owner exists for the actor. */
bool actor_sees(const struct actor *actor, const struct owner *owner);

/* ERROR_DENIED unless it is an administrator. */
int actor_need_admin(const struct actor *actor, struct error *err);

/* Whose its new rows are. Texts are borrowed from the actor. */
struct owner actor_owner(const struct actor *actor);

/* What lists of the actor may contain. */
struct owner actor_filter(const struct actor *actor);
