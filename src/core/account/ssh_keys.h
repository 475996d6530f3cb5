/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public SSH keys of an organisation's people: added, listed, removed. Whoever has one may log in to the sandboxes that the API key that
 * added it may use (ssh_login.h), as long as that one is in use.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/account.h"

#define SSH_KEYS_OF_MEMBER 100 // so many at most of one person
#define SSH_KEYS_OF_ALL 1000   // and where keys are nobody's in particular
#define SSH_KEY_NAME 200       // bytes

/* What is announced on the hub when one was added or removed: whoever has let somebody in looks again. */
#define SSH_KEYS_CHANGED "ssh-keys"

struct ssh_key_request {
    const char *line; // as in authorized_keys without options: type, base64, comment
    const char *name; // what lists call it; NULL: its comment
};

/*
 * *is_new: it was not there, or only with an API key that has ended. One that is there stays as it is, but for a name that is given.
 * What other owners have is nothing to this one, and is not told: a public key is no secret, and who adds one has not shown to have its other half.
 * ERROR_INVALID, noun "ssh key", says what is wrong with it; ERROR_FULL: too many; ERROR_DENIED for a token.
 */
int ssh_key_add(struct accounts *accounts, const struct actor *actor,
                const struct ssh_key_request *request, struct ssh_key_info *out, bool *is_new,
                struct error *err);
/* By its fingerprint: the actor's own; where it has none, with SCOPE_ORGANISATION the oldest of others. *found: it was there. */
int ssh_key_remove(struct accounts *accounts, const struct actor *actor, const char *fingerprint,
                   bool *found, struct error *err);
/* Likewise. ERROR_NOT_FOUND, noun "ssh key". */
int ssh_key_get(struct accounts *accounts, const struct actor *actor, const char *fingerprint,
                struct ssh_key_info *out, struct error *err);
/* Those of its member, or with SCOPE_ORGANISATION all; oldest first. */
int ssh_key_list(struct accounts *accounts, const struct actor *actor, const struct page *page,
                 struct ssh_key_infos *out, struct error *err);
