/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the account room share.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/account.h"
#include "store/accounts.h"
#include "store/keys.h"

struct key_checks; // key.c: answers kept in memory, and the thread that records when keys were used

struct accounts {
    struct store *store;
    char organisation[ID_TEXT];
    struct key_checks *checks;
    struct quotas *quotas; // quota.h
    struct hub *hub;       // the core's; NULL: nobody is told
};

#define KEY_MAXIMUM 256 // characters of a key
/* SHA-256 of the text. */
void key_hash(const struct accounts *accounts, const char *text, unsigned char hash[32]);

/* Who has this key, unless it has ended: then false. */
bool key_actor(const struct accounts *accounts, const struct key_record *key, struct actor *out);
/* Who has this SSH key, whatever it may do. ERROR_NOT_FOUND: the API key that added it has ended. */
int ssh_key_actor(struct accounts *accounts, const struct ssh_key_record *record, struct actor *out,
                  struct error *err);

/* Some key has just been ended: whoever watches is told soon. */
void key_look_for_ended(struct accounts *accounts);
/* This key may less than before: whoever watches is told so too, soon. */
void key_cut_off(struct accounts *accounts, const char *id);

/* A secret behind its four characters of prefix, such as "brw_". */
void key_make_text(const char prefix[5], char text[64]);

int key_checks_new(struct store *store, struct key_checks **out, struct error *err);
/* Returns when the uses that wait are recorded. */
void key_checks_free(struct key_checks *checks);
