/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sandboxes wanted to go that no rule allows: counted by host, port and protocol.
 * Threads: any but loops.
 */
#pragma once
#include "store/store.h"

/* A host is kept as it was named, or its address; so many of one sandbox, newer ones are counted and not kept. */
#define NETWORK_SEEN_MOST 500

struct network_seen {
    const char *sandbox_id;
    const char *host;
    int64_t port; // 0: none, as of a question for a name
    const char *protocol;
    bool is_refused;  // false: it was let through, since all is observed
    const char *rule; // that refused it, or would have; NULL: none did
    int64_t attempts, first_at, last_at;
};
struct network_seen_list {
    struct network_seen *rows;
    size_t count;
};
void network_seen_list_clear(struct network_seen_list *list);
#define autoseen __attribute__((cleanup(network_seen_list_clear))) struct network_seen_list

/* Adds `seen->attempts`, also to what the sandbox was refused; first_at is not read. One that is not there any more is passed over. */
int store_network_note(struct store *store, const struct network_seen *seen, struct error *err);

/* Those of a sandbox that were refused, or were not; most attempts first. */
int store_network_list(struct store *store, const char *sandbox_id, bool is_refused,
                       struct network_seen_list *out, struct error *err);
/* Observing begins anew. */
int store_network_forget(struct store *store, const char *sandbox_id, struct error *err);
