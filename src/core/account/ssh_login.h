/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose an SSH key is, for whoever lets people in by one.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/ssh_keys.h"

/*
 * By its fingerprint, as ssh_key.h makes it. The actor is who the API key that added it is, with at most its scopes read, run and organisation;
 * actor->key_id is that key's: when it ends (key_watch_ends), and when SSH_KEYS_CHANGED is announced, ask again. The machine's own root, having no
 * key, adds keys for all sandboxes of the organisation.
 * ERROR_NOT_FOUND, noun "ssh key", in the same words for every kind of wrong one: not known, its API key ended or without scope run.
 */
int ssh_login(struct accounts *accounts, const char *fingerprint, struct actor *out,
              struct error *err);

/* Notes that somebody has shown to have its private half: lists tell when, to the minute. A failure is logged at level debug. */
void ssh_login_used(struct accounts *accounts, const struct actor *actor, const char *fingerprint);
