/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the port room share.
 * Threads: any; what is under the lock is told.
 */
#pragma once
#include "base/id_table.h"
#include "base/lock.h"
#include "core/port/port.h"
#include "core/settings.h"
#include "store/ports.h"

#include <stdatomic.h>

#define TOKEN_KEY (2 * 16 + 1) // half of the hash, in hexadecimal

struct exposed {
    _Atomic unsigned refs;
    char id[ID_TEXT], sandbox_id[ID_TEXT];
    uint16_t port;
    int64_t created_at;
    _Atomic bool is_gone;
    void *attached;
    // Under the room's lock:
    uint16_t host_port;
    enum port_protocol protocol;
    bool is_private, is_ready; // not ready: it is being made or changed
    unsigned char token_hash[PORT_HASH];
    int64_t token_expires_at;
    char key_id[ID_TEXT]; // that the token ends with; "": none
    char token_key[TOKEN_KEY];
    struct id_entry by_token; // while it is private
    struct exposed *next;     // of its sandbox; holds a reference
};

/* The ports of one sandbox. */
struct port_owner {
    struct id_entry known;
    char sandbox_id[ID_TEXT];
    struct exposed *first;
    unsigned count;
};

/* One of the machine's ports that may be handed out. */
struct host_slot {
    bool is_used;
    int64_t released_at; // on the wall clock, which the next server has too
};

struct ports {
    const struct core_settings *settings;
    struct sandboxes *sandboxes;
    struct store *store;
    struct lock lock; // guards what follows; memory work only
    struct id_table owners, tokens;
    struct host_slot *slots; // of the range in the settings
    size_t n_slots, next_slot;
    struct port_host host;
    bool has_host;
};

/* Where this key is over, tokens that it made end. Waits for the database. */
void ports_end_tokens(struct ports *ports, const char *key_id);

struct exposed *exposed_new(const char *sandbox_id, uint16_t port);
void exposed_put_info(const struct exposed *exposed, struct port_info *out); // under the lock

/* All under the lock. */
struct port_owner *ports_owner(struct ports *ports, const char *sandbox_id);
struct exposed *ports_find(struct ports *ports, const char *sandbox_id, uint16_t port);
void ports_add(struct ports *ports, struct exposed *exposed); // takes a reference of its own
/* Out of all tables, its host port at rest; the reference becomes the caller's. */
struct exposed *ports_take(struct ports *ports, struct exposed *exposed);
void ports_index_token(struct ports *ports, struct exposed *exposed, bool is_indexed);
struct host_slot *ports_slot(struct ports *ports, uint16_t host_port); // NULL: not in the range
/* 0: none is left. */
uint16_t ports_reserve(struct ports *ports);
void ports_rest(struct ports *ports, uint16_t host_port);
