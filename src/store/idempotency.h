/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests that carry a key of their own so that they happen once, however often they are sent.
 * Claim and finish belong into the transaction that writes what the request makes: then either both
 * are there or neither. Where the work takes long, claim first, finish with its record, and release
 * when it failed.
 * Threads: any but loops.
 */
#pragma once
#include "store/store.h"

#define REQUEST_HASH 32 // SHA-256 of what was asked

enum idempotency_state {
    IDEMPOTENCY_PENDING,
    IDEMPOTENCY_DONE,
};

struct idempotency_record {
    const char *organisation;
    const char *realm; // separates equal keys of different callers or calls; never NULL
    const char *key;
    const char *node; // that works on it; a claim writes this one's
    unsigned char request_hash[REQUEST_HASH];
    enum idempotency_state state;
    const char *subject_id; // what was made
    const char *answer;     // opaque, or NULL
    int64_t created_at;
};
void idempotency_record_clear(struct idempotency_record *record);
#define autoidempotency __attribute__((cleanup(idempotency_record_clear))) struct idempotency_record

/*
 * Takes the key: *is_new, and the work is the caller's. Otherwise `out` is what is known of the
 * earlier request (*is_new false): done, or still pending. ERROR_MISMATCH when
 * that one asked for something else.
 */
int store_idempotency_claim(struct store *store, const struct idempotency_record *record,
                            bool *is_new, struct idempotency_record *out, struct error *err);

/* Pending becomes done, with the record's subject and answer. ERROR_CONFLICT when it was done
 * already. */
int store_idempotency_finish(struct store *store, const struct idempotency_record *record,
                             struct error *err);

/* Gives a pending key back, so that the request can be sent again. */
int store_idempotency_release(struct store *store, const char *organisation, const char *realm,
                              const char *key, struct error *err);

/* After a restart: gives back all of this node that nobody will finish any more. */
int store_idempotency_release_all(struct store *store, int64_t *released, struct error *err);

/* Forgets up to `limit` of this node's that are older than `before`, or than the newest `most` and one. */
int store_idempotency_purge(struct store *store, int64_t before, int64_t most, int64_t limit,
                            int64_t *removed, struct error *err);
