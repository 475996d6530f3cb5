/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of sandboxes that are reached from outside. Making and changing them is durable: their addresses are in other people's hands.
 * Threads: any but loops.
 */
#pragma once
#include "model/port.h"
#include "store/store.h"

#define PORT_HASH 32

struct port_record {
    const char *id;
    const char *node; // put with NULL: this one, whose host port it is
    const char *sandbox_id;
    int64_t port; // 0: all of them
    enum port_protocol protocol;
    int64_t host_port; // 0: none
    bool is_private;
    unsigned char token_hash[PORT_HASH]; // of a private one
    int64_t token_expires_at;
    const char *key_id; // that the token ends with; NULL: none
    int64_t created_at;
    int64_t released_at; // 0: it is exposed
};
void port_record_clear(struct port_record *record);

struct port_list {
    struct port_record *rows;
    size_t count;
};
void port_list_clear(struct port_list *list);
#define autoports __attribute__((cleanup(port_list_clear))) struct port_list

int store_port_put(struct store *store, const struct port_record *record, struct error *err);
/* Writes protocol, host port, privacy and token. */
int store_port_change(struct store *store, const struct port_record *record, struct error *err);
/* Its token is good no longer than that, where it is still this key's. */
int store_port_end_token(struct store *store, const char *id, const char *key_id, int64_t now,
                         struct error *err);
/* All of this node, released ones too; the oldest first. */
int store_port_list(struct store *store, struct port_list *out, struct error *err);
int store_port_release(struct store *store, const char *id, int64_t now, struct error *err);
/* Forgets those that were released before that. */
int store_port_purge(struct store *store, int64_t before, struct error *err);
