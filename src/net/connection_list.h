/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of connections, each in several at once.
 * Threads: the loop.
 */
#pragma once
#include <stddef.h>

struct connection;

enum connection_order {
    CONNECTION_ALL,
    CONNECTION_IDLE,
    CONNECTION_STRANGER,
    CONNECTION_ADDRESS, // strangers of one address
    CONNECTION_ORDERS,
};

struct connection_place {
    struct connection *before, *after;
};

struct connection_list {
    struct connection *first, *last;
    size_t count;
};

void connection_list_add(struct connection_list *list, struct connection *connection,
                         enum connection_order order);
void connection_list_remove(struct connection_list *list, struct connection *connection,
                            enum connection_order order);
struct connection *connection_after(struct connection *connection, enum connection_order order);

/* Where a connection keeps its neighbours: for these lists alone. */
struct connection_place *connection_place(struct connection *connection,
                                          enum connection_order order);
