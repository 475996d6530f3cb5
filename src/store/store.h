/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server remembers: opens the database, brings its tables up to date, and holds
 * transactions. The records are in the headers beside this one, one per kind, as plain structs;
 * JSON in them is text the store does not read. All calls block for the disk; none logs. Every
 * thread that reads has its own connection, made at its first read and closed when the thread ends;
 * writes go through one, in turn. Any thread may call anything at any time, but for a loop's
 * (base/thread.h), which must not wait.
 *
 * A record that a store function filled owns its strings (its x_record_clear frees them); strings of a
 * record passed in are borrowed for the call. Texts must be UTF-8: ERROR_INVALID else. Times are
 * milliseconds since 1970, 0 for never.
 *
 * Errors: NOT_FOUND with the record's noun, CONFLICT (already there, or not in this state), NO_SPACE
 * (disk full), SYSTEM; and RETRY and LOST, as told below.
 *
 * Threads: any but loops.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "model/owner.h"
#include "model/page.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct store;

/* Opens the database of a data directory, which must exist; makes it (mode 0600), its tables and
 * the node's identity where missing. */
int store_open(const char *directory, struct store **out, struct error *err);
/* Whether there is one to open; an empty file is none. */
bool store_exists(const char *directory);
/* What the database takes on this machine's disk. */
uint64_t store_disk_bytes(const struct store *store);
/* No thread may be in a call, and those that have used it must have ended or stay until it is done.
 */
void store_free(struct store *store);
DEFINE_AUTOPTR(store)

/* The identity of this node (base/id.h), made once for its data directory. */
const char *store_node(const struct store *store);

enum store_durability {
    STORE_FAST,    // what was committed survives the death of the process
    STORE_DURABLE, // and a power cut
};

/*
 * Several calls of this thread as one: all or nothing, and as if nobody else wrote meanwhile.
 *
 *     autotransaction together = {0};
 *     bool is_put;
 *     do
 *         is_put = store_begin(store, STORE_FAST, &together, err) == 0 &&
 *                  store_sandbox_put(store, &sandbox, err) == 0 &&
 *                  store_event_add(store, &event, err) == 0 && store_commit(&together, err) == 0;
 *     while (!is_put && store_again(&together, err));
 *
 * Isolation: what it reads is what is there when it commits, as if transactions ran one after the
 * other. Reads outside of one see what is committed, each call one moment of it.
 *
 * Retry: where another writer was in the way (a lock held for too long, a deadlock, a conflict of
 * what two have read and written), any step and the commit can fail with the reason ERROR_RETRY.
 * Nothing of it is kept then. store_again rolls back and says whether to do all of it once more, at
 * most STORE_ATTEMPTS times. So what stands between begin and commit can run twice: it changes
 * nothing but the store and its own results, which it makes anew. Single calls outside of a
 * transaction are done again by the store itself.
 *
 * Lost: a commit whose outcome nobody knows (the connection broke, the disk would not say) fails
 * with the reason ERROR_LOST. It is never run again by itself: what it wrote may be there.
 *
 * With SQLite writers wait for each other: nothing slow belongs in between. Its durability counts
 * for all calls in it; outside of one, each call is a transaction of its own with the durability
 * its header names (STORE_FAST where it does not). NOT_FOUND, and the CONFLICT of an expected
 * state, leave it usable; after any other failure it can only be rolled back, and store_commit says
 * so.
 */
#define STORE_ATTEMPTS 5
struct store_transaction {
    struct store *store; // NULL: ended
    unsigned attempts;
};
int store_begin(struct store *store, enum store_durability durability,
                struct store_transaction *out, struct error *err);
int store_commit(struct store_transaction *transaction, struct error *err);
void store_rollback(struct store_transaction *transaction);
/* It failed: rolls back; whether to do all of it once more. */
bool store_again(struct store_transaction *transaction, const struct error *err);
#define autotransaction __attribute__((cleanup(store_rollback))) struct store_transaction

/* Calls fn(data) after each commit that has events in it, on the thread that commits; it must be quick. Before any thread writes. */
void store_on_events(struct store *store, void (*fn)(void *data), void *data);

bool store_is_retry(const struct error *err);
bool store_is_lost(const struct error *err);
