/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What was changed, and by whom. Written many at a time.
 * Threads: any but loops.
 */
#pragma once
#include "store/store.h"

struct audit_record {
    const char *node;
    int64_t number; // in the order of the answers
    int64_t at;
    const char *organisation;
    const char *member;   // NULL: nobody's in particular
    const char *key_id;   // NULL: none, the local socket
    const char *token_id; // NULL: no token
    const char *front;
    const char *method, *route;
    const char *subject; // what the path names; NULL: nothing
    const char *peer;
    const char *request_id;
    int64_t status;
};
void audit_record_clear(struct audit_record *record);

/* All or none. One whose number is there already is passed over: what was being written when a server died comes twice. */
int store_audit_add(struct store *store, const struct audit_record *records, size_t count,
                    struct error *err);
/* The highest number of this node; 0: none. */
int store_audit_last(struct store *store, int64_t *out, struct error *err);

struct audit_filter {
    struct owner owner; // its organisation and member; NULL matches all
    int64_t from, to;   // 0: any
    const char *key_id, *subject, *request_id, *method;
    struct page page;
};
struct audit_list {
    struct audit_record *rows;
    size_t count;
    struct page_mark next;
};
void audit_list_clear(struct audit_list *list);
#define autoaudits __attribute__((cleanup(audit_list_clear))) struct audit_list
/* Newest first. */
int store_audit_list(struct store *store, const struct audit_filter *filter, struct audit_list *out,
                     struct error *err);

/* Forgets up to `limit` from before `before`, and those that are more than `most`. */
int store_audit_purge(struct store *store, int64_t before, int64_t most, int64_t limit,
                      int64_t *removed, struct error *err);
