/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Organisations, and the public keys their people log in with. All writes are durable.
 * Threads: any but loops.
 */
#pragma once
#include "model/owner.h"
#include "model/quota.h"
#include "store/store.h"

struct organisation_record {
    const char *id;
    const char *name; // this and the ceilings: what store_organisation_change writes
    int64_t created_at;
    struct quota ceilings; // 0: none
};
void organisation_record_clear(struct organisation_record *record);
#define autoorganisation                                                                           \
    __attribute__((cleanup(organisation_record_clear))) struct organisation_record

int store_organisation_put(struct store *store, const struct organisation_record *record,
                           struct error *err);
int store_organisation_get(struct store *store, const char *id, struct organisation_record *out,
                           struct error *err);

int store_organisation_change(struct store *store, const struct organisation_record *record,
                              struct error *err);

struct organisation_list {
    struct organisation_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void organisation_list_clear(struct organisation_list *list);
#define autoorganisations __attribute__((cleanup(organisation_list_clear))) struct organisation_list

/* Oldest first. */
int store_organisation_list(struct store *store, const struct page *page,
                            struct organisation_list *out, struct error *err);

struct ssh_key_record {
    const char *organisation; // must exist
    const char *fingerprint;
    const char *type;
    const char *comment;
    const char *public_key;
    int64_t created_at;
    const char *name;   // what its owner calls it; NULL: nothing
    const char *member; // whose it is inside the organisation; NULL: nobody's in particular
    const char *key_id; // the API key that added it; NULL: the machine's own root did
    int64_t used_at;    // to the minute; 0: never
};
void ssh_key_record_clear(struct ssh_key_record *record);
#define autosshkeyrecord __attribute__((cleanup(ssh_key_record_clear))) struct ssh_key_record

struct ssh_key_list {
    struct ssh_key_record *rows;
    size_t count;
    int64_t total;
    struct page_mark next; // where the next page begins; see model/page.h
};
void ssh_key_list_clear(struct ssh_key_list *list);
#define autosshkeys __attribute__((cleanup(ssh_key_list_clear))) struct ssh_key_list

/* ERROR_CONFLICT: its owner has it already. Several owners may have the same one. */
int store_ssh_key_put(struct store *store, const struct ssh_key_record *record, struct error *err);
/* The one of this owner: organisation and member, NULL: nobody's in particular. ERROR_NOT_FOUND, noun "ssh key". */
int store_ssh_key_get(struct store *store, const struct owner *owner, const char *fingerprint,
                      struct ssh_key_record *out, struct error *err);
int store_ssh_key_rename(struct store *store, const struct owner *owner, const char *fingerprint,
                         const char *name, struct error *err);
/* *found: it was there. */
int store_ssh_key_remove(struct store *store, const struct owner *owner, const char *fingerprint,
                         bool *found, struct error *err);
/* Notes the time, unless less than a minute has passed since the last one. Not durable at once. */
int store_ssh_key_used(struct store *store, const struct owner *owner, const char *fingerprint,
                       int64_t now, struct error *err);
/* Of all owners that have it, at most so many; oldest first. */
int store_ssh_key_list_same(struct store *store, const char *organisation, const char *fingerprint,
                            int64_t most, struct ssh_key_list *out, struct error *err);
/* Oldest first; member NULL: of all. */
int store_ssh_key_list(struct store *store, const struct owner *owner, const struct page *page,
                       struct ssh_key_list *out, struct error *err);
