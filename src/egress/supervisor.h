/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The supervisor of burrow-egress: the process with rights. It listens to the server, keeps what boxes were set to, starts the worker, as often as that ends, and does for it what
 * needs rights: pins in the kernel, sockets of the host's network, certificates. It reads nothing that a box or a stranger has sent.
 * Threads: one thread.
 */
#pragma once
#include "egress/authority.h"
#include "egress/egress_wire.h"
#include "egress/exchange.h"
#include "engine/gateway.h"

#include <netinet/in.h>
#include <sys/types.h>

#define SUPERVISOR_CLIENTS 64

/* What a box was set to. */
struct kept {
    unsigned slot;
    struct buffer message; // of EGRESS_SET
    struct policy policy;
    struct kept *next;
};

struct supervisor_client {
    struct exchange frames; // sock -1: none
    bool is_following;
};

/* A call of a client that the worker answers. */
struct pending {
    uint64_t serial; // the worker's
    uint64_t client_serial;
    int client;
    struct pending *next;
};

struct supervisor {
    const char *data_dir, *resolvers_setting, *proxy_setting;
    struct gateway *gateway;
    struct authority *authority;
    int listener, lock, refusals;
    int sockets[4]; // of the gateway, for the worker
    struct supervisor_client clients[SUPERVISOR_CLIENTS];
    struct kept *boxes;
    struct pending *pending;
    struct exchange worker; // sock -1: it has ended
    pid_t worker_pid;
    uint64_t worker_started_ms;
    uint64_t serial;
    struct sockaddr_in6 resolvers[EGRESS_RESOLVERS]; // of version 4: mapped
    size_t n_resolvers;
    struct sockaddr_in6 proxy;
    uint64_t idle_since_ms;
    bool is_ending;
};

/* Serves until nobody needs it. */
int supervisor_run(struct supervisor *supervisor, struct error *err);

// ---- supervisor_worker.c ----

int supervisor_start_worker(struct supervisor *supervisor, struct error *err);
/* Takes what the worker says; it is started again where it has ended. */
void supervisor_hear_worker(struct supervisor *supervisor);
void supervisor_forward(struct supervisor *supervisor, int client, const struct frame *frame);
/* Tells the worker of resolvers, where those have changed. */
void supervisor_look_for_resolvers(struct supervisor *supervisor, bool is_new_worker);

// ---- supervisor_resolvers.c ----

/* "192.0.2.53, [2001:db8::1]:5353"; NULL: of /etc/resolv.conf. How many. */
size_t supervisor_read_resolvers(const char *setting, struct sockaddr_in6 out[EGRESS_RESOLVERS]);
/* "http://proxy.example:3128" */
int supervisor_read_proxy(const char *setting, struct sockaddr_in6 *out, struct error *err);
/* A socket of the host's network that connects there, not blocking; -1: none. */
int supervisor_connect(const struct sockaddr_in6 *to, int type);
