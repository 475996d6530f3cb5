/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One client's connection: one request at a time, its answer, then the next.
 * Threads: the loop.
 */
#pragma once
#include "net/gather.h"
#include "net/http1.h"
#include "net/http_server.h"

struct connection;

/* What a connection needs of its server, and tells it. */
struct connection_home {
    struct loop *loop;
    struct http_limits limits;
    struct http1_limits parse_limits;
    const struct http_handler *handler;
    void *owner;
    struct gather_budget *budget;
    bool is_draining; // every answer is the last of its connection
    uint64_t requests;
    uint64_t bad_requests;
    char *scratch; // for one read; shared, since each is used up at once
    /* It has become idle, or is no more; or it is about to be no more. */
    void (*on_idle)(struct connection_home *home, struct connection *connection, bool is_idle);
    void (*on_close)(struct connection_home *home, struct connection *connection);
};
#define CONNECTION_SCRATCH (64u << 10)

/* For the server's lists. */
struct connection_place {
    struct connection *before, *after;
};

struct connection_list {
    struct connection *first, *last;
    size_t count;
};

/* Takes fd when it succeeds. */
int connection_open(struct connection_home *home, int fd, struct connection **out,
                    struct error *err);

/* Cuts it now. What was being answered is told that it is gone. */
void connection_close(struct connection *connection);

enum connection_order { CONNECTION_ALL, CONNECTION_IDLE, CONNECTION_ORDERS };
void connection_list_add(struct connection_list *list, struct connection *connection,
                         enum connection_order order);
void connection_list_remove(struct connection_list *list, struct connection *connection,
                            enum connection_order order);
