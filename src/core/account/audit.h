/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A record of every change that was answered: who, with which key, from where, what, when. audit_add copies it into a ring that lies in a file of the
 * data directory, mapped into memory, before the answer goes out; a thread moves what is there into the database, many at a time. So a crash of
 * the server loses nothing that was answered (the next one finds it in the file), a power cut what was not on the disk yet, and whoever
 * answers waits for neither. Where the database stands still for so long that the ring is full, records are dropped and counted in the log.
 * Threads: any; audit_open, audit_free and audit_list: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "model/page.h"

#include <stdint.h>

struct audit;
struct store;

/* Makes the file where there is none; takes over what an earlier server left in it. The store must outlive it. */
int audit_open(const char *data_dir, struct store *store, struct audit **out, struct error *err);
/* Returns when all is in the database, or cannot be. */
void audit_free(struct audit *audit);
DEFINE_AUTOPTR(audit)

#define AUDIT_SUBJECT 100
/* Texts that are longer than they may be are cut. */
struct audit_entry {
    const char *organisation, *member, *key_id, *token_id; // "" and NULL: none
    const char *front, *method, *route;                    // the route's pattern
    const char *subject;                                   // what the path names: "sbx_…/tok_…"
    const char *peer, *request_id;
    int status;
};
/* Does not block. */
void audit_add(struct audit *audit, const struct audit_entry *entry);

struct audit_info {
    int64_t number, at, status;
    const char *member, *key_id, *token_id; // NULL: none
    const char *front, *method, *route, *subject, *peer, *request_id;
};
struct audit_infos {
    struct audit_info *items;
    size_t count;
    struct page_mark next;
};
void audit_infos_clear(struct audit_infos *infos);

struct audit_query {
    int64_t from, to; // 0: any
    const char *key_id, *subject, *request_id, *method;
    struct page page; // marked
};
/* Newest first; what the actor sees: its member's, or with SCOPE_ORGANISATION all. What was answered before is there. */
int audit_list(struct audit *audit, const struct actor *actor, const struct audit_query *query,
               struct audit_infos *out, struct error *err);
