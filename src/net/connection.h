/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection: one request at a time, its answer, then the next.
 * Threads: the loop.
 */
#pragma once
#include "net/connection_list.h"
#include "net/gather.h"
#include "net/http1.h"
#include "net/http_server.h"

/* What a connection needs of its server, and tells it. */
struct connection_home {
    struct loop *loop;
    struct http_limits limits;
    struct http1_limits parse_limits;
    const struct http_handler *handler;
    void *owner;
    const struct http_elsewhere *elsewhere; // NULL: all requests are for the handler
    struct gather_budget *budget;
    bool is_draining; // every answer is the last of its connection
    size_t under_way; // requests that are being received or answered
    uint64_t requests;
    uint64_t bad_requests;
    char *scratch; // for one read; shared, since each is used up at once
    /* It has become idle, or is idle no more; it has shown this key, perhaps another than before; it is about to be no more. */
    void (*on_idle)(struct connection_home *home, struct connection *connection, bool is_idle);
    void (*on_known)(struct connection_home *home, struct connection *connection, uint64_t who);
    void (*on_close)(struct connection_home *home, struct connection *connection);
    /* While draining: no request is under way any more. */
    void (*on_quiet)(struct connection_home *home);
};
#define CONNECTION_SCRATCH (64u << 10)

/* Takes fd when it succeeds. `bytes` were read from it before. */
int connection_open(struct connection_home *home, int fd, const char *bytes, size_t length,
                    struct connection **out, struct error *err);
/* Once its server knows it: waits for a request, or reads the one that came with it. */
void connection_start(struct connection *connection);

const struct peer *connection_peer(const struct connection *connection);
bool connection_is_known(const struct connection *connection);
/* For the server, when it is told of a key. */
void connection_set_known(struct connection *connection, uint64_t who);
/* Whose it is: the key's number, or its address's. */
uint64_t connection_group(const struct connection *connection);
/* It came just now, and had no time yet to send its request. */
bool connection_is_young(const struct connection *connection);
/* Whether nobody works for it: it is idle, still sending its request, or does not take its answer. */
bool connection_can_go(const struct connection *connection);

/* Reads what has come, without waiting to be told of it. May close it. */
void connection_look(struct connection *connection);

/* Cuts it now. What was being answered is told that it is gone. */
void connection_close(struct connection *connection);
