/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an SSH key is, for whoever lets people in by one.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/ssh_keys.h"

#define SSH_LOGIN_OWNERS 64 // of one key are looked at, the oldest first

/*
 * By its fingerprint, as ssh_key.h makes it: `on_owner` is called for everybody who has added it and whom it opens anything for, until it returns false. Several may
 * have: a public key is no secret. The actor is who the API key that added it is, with at most its scopes read, run and organisation; actor->key_id is that key's: when it
 * ends or may less (key_watch_ends), and when SSH_KEYS_CHANGED is announced, ask again. The machine's own root, having no key, adds keys for all sandboxes of the organisation.
 * ERROR_NOT_FOUND, noun "ssh key", in the same words for every kind of wrong one, where there is nobody: not known, its API key ended or without scope run.
 */
int ssh_login(struct accounts *accounts, const char *fingerprint,
              bool (*on_owner)(void *data, const struct actor *actor), void *data,
              struct error *err);

/* Notes that somebody has shown to have its private half: lists tell when, to the minute. A failure is logged at level debug. */
void ssh_login_used(struct accounts *accounts, const struct actor *actor, const char *fingerprint);
