/* SPDX-License-Identifier: Apache-2.0 */
/*
 * API keys: hashes of secrets, whose they are and what they allow. All writes but store_key_used
 * are durable.
 * Threads: any but loops.
 */
#pragma once
#include "model/quota.h"
#include "store/store.h"

#define KEY_HASH 32 // SHA-256

struct key_record {
    const char *id;
    unsigned char hash[KEY_HASH];
    const char *prefix;       // what lists show of the key
    const char *organisation; // must exist
    const char *member;       // whose it is inside the organisation; NULL: nobody's in particular
    const char *made_by;      // the id of the key that made it; NULL: none did
    const char *sandbox_id;   // of a token: what it opens; NULL: it is a key
    int64_t created_at;
    int64_t used_at;    // to the minute
    int64_t revoked_at; // 0: valid

    // KEY_PART_ABOUT
    const char *name;
    const char *scopes;               // opaque, never NULL
    const char *const *runtimes;      // that it may start sandboxes from; NULL: all
    bool has_no_network;              // its sandboxes get none
    const char *const *network_allow; // rules that their networks may have; NULL: any
    const char *selector;             // labels of the sandboxes it sees; NULL: all
    const char *tools; // opaque: of models, that it is for alone; NULL: it is for everything
    struct quota quota;
    int64_t expires_at; // 0: never
};
void key_record_clear(struct key_record *record);
#define autokey __attribute__((cleanup(key_record_clear))) struct key_record

int store_key_put(struct store *store, const struct key_record *record, struct error *err);
int store_key_get(struct store *store, const char *id, struct key_record *out, struct error *err);
/* Revoked and expired ones are found too: the caller looks. */
int store_key_find(struct store *store, const unsigned char hash[KEY_HASH], struct key_record *out,
                   struct error *err);

#define KEY_PART_ABOUT 1u
/* Writes what can be changed of one that is not revoked: ERROR_STATE else. */
int store_key_change(struct store *store, const struct key_record *record, struct error *err);

/* ERROR_CONFLICT when it is already. Its tokens go with it. */
int store_key_revoke(struct store *store, const char *id, int64_t now, struct error *err);
/* Notes the time, unless less than a minute has passed since the last one. */
int store_key_used(struct store *store, const char *id, int64_t now, struct error *err);

struct key_list {
    struct key_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void key_list_clear(struct key_list *list);
#define autokeys __attribute__((cleanup(key_list_clear))) struct key_list

/* Keys, oldest first; organisation NULL: of all. `total` is 0 where no key was ever made. */
int store_key_list(struct store *store, const char *organisation, const struct page *page,
                   struct key_list *out, struct error *err);
/* The same of one member; NULL: of all. */
int store_key_list_of(struct store *store, const struct owner *owner, const struct page *page,
                      struct key_list *out, struct error *err);
/* The tokens of one sandbox that are neither revoked nor expired at `now`, oldest first. */
int store_token_list(struct store *store, const char *sandbox_id, int64_t now,
                     const struct page *page, struct key_list *out, struct error *err);
/* Keys and tokens that were revoked or expired after `since`, by `now`; at most 1000. Keys come first: with one end all its tokens. */
int store_key_list_ended(struct store *store, int64_t since, int64_t now, struct key_list *out,
                         struct error *err);
/* Whether its sandbox still lives. */
int store_token_is_alive(struct store *store, const char *sandbox_id, bool *out, struct error *err);
/* Forgets up to `limit` tokens that ended before `before`. */
int store_token_purge(struct store *store, int64_t before, int64_t limit, int64_t *removed,
                      struct error *err);
