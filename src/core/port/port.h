/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ports of sandboxes that are reached from outside: which, by which port of this machine, with which token; and connections to any port of
 * a sandbox. Everything is in memory, and in the store for the next server. Who listens and who speaks HTTP is above this room.
 * Threads: any but loops; what says so, any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"
#include "core/account/actor.h"
#include "model/port.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core_settings;
struct exposed;
struct ports;
struct sandboxes;

#define PORTS_OF_SANDBOX 32
#define PORT_LEAST 1024
#define PORT_MOST 65535
#define PORT_TOKEN_MOST_MS (366LL * 24 * 3600 * 1000)
#define PORT_ALL 0            // as a port: every one of them, by name alone
#define PORT_TOKEN_LETTERS 32 // 160 random bits; fits into a name of DNS behind a port
#define PORT_TOKEN_TEXT (PORT_TOKEN_LETTERS + 1)

/* What is told of one; a plain value. */
struct port_info {
    char sandbox_id[ID_TEXT];
    uint16_t port; // or PORT_ALL
    enum port_protocol protocol;
    uint16_t host_port; // 0: none
    bool is_private;
    char token[PORT_TOKEN_TEXT]; // when it was just made; else ""
    int64_t token_expires_at;    // 0: never, or there is none
    int64_t created_at;
};
struct port_infos {
    struct port_info *items;
    size_t count;
};
void port_infos_clear(struct port_infos *infos);

struct port_request {
    int64_t port; // PORT_LEAST to PORT_MOST, or PORT_ALL
    enum port_protocol protocol;
    bool is_private;
    int64_t token_ms; // how long its token is good; 0: as long as the port is exposed
    bool
        has_own_secret; // whoever exposes it lets in by a secret of its own: nobody is told the token, which ends with no key
};

/* Loads what the store knows; those of sandboxes that are over are given up. After adoption. */
int ports_open(const struct core_settings *settings, struct sandboxes *sandboxes,
               struct ports **out, struct error *err);
void ports_free(struct ports *ports);

/* ERROR_INVALID, noun "port". */
int port_check(const struct port_request *request, struct error *err);

/*
 * Exposes it; once this returns, its address works. A token ends with the actor's key (but for has_own_secret). One that is exposed already gets what is asked for now: a new token where it is
 * private. ERROR_FULL, noun "port": there are too many of this sandbox, or no port of the machine is left.
 */
int port_expose(struct ports *ports, const struct actor *actor, const char *sandbox_id,
                const struct port_request *request, struct port_info *out, struct error *err);
/* The same for one that is being created. */
int port_expose_new(struct ports *ports, const struct actor *actor, const char *sandbox_id,
                    const struct port_request *request, struct port_info *out, struct error *err);
/* A key has ended, or may less: where it may not use sandboxes any more, tokens that it made end, and who came in by them is cut off. Any thread; does not wait. */
void ports_look_at_key(struct ports *ports, const char *key_id);
/* In the order in which they were exposed. Of a sandbox that is over there are none. */
int port_list(struct ports *ports, const struct actor *actor, const char *sandbox_id,
              struct port_infos *out, struct error *err);
/* ERROR_NOT_FOUND, noun "port". Connections to it are cut. */
int port_remove(struct ports *ports, const struct actor *actor, const char *sandbox_id,
                uint16_t port, struct error *err);
/* The first that was exposed and speaks HTTP, whoever asks; false: none. Any thread. */
bool port_first(struct ports *ports, const char *sandbox_id, struct port_info *out);

// ---- for who listens ----

/* Listens for the room. */
struct port_host {
    /* Opens the host port of it; returns once it is listened on. ERROR_CONFLICT: somebody else has it. */
    int (*open)(void *data, struct exposed *exposed, uint16_t host_port, struct error *err);
    /* It is not exposed any more: its host port is closed, and whoever is connected is cut off. Any thread, under locks: does not wait. */
    void (*close)(void *data, struct exposed *exposed);
    /* Whoever is connected is cut off. Likewise. */
    void (*cut)(void *data, struct exposed *exposed);
    void *data;
};
/* From now on, and for all that are exposed already. NULL: nobody does. */
void ports_set_host(struct ports *ports, const struct port_host *host);

/* All of these: any thread, memory work alone. A reference, or NULL. */
struct exposed *exposed_find(struct ports *ports, const char *sandbox_id, uint16_t port);
struct exposed *exposed_find_token(struct ports *ports, const char *token, uint16_t port);
struct exposed *exposed_ref(struct exposed *exposed);
void exposed_free(struct exposed *exposed); // gives up one reference
DEFINE_AUTOPTR(exposed)
void exposed_tell(struct ports *ports, const struct exposed *exposed, struct port_info *out);
bool exposed_is_gone(const struct exposed *exposed);
/* Whether this opens it now; NULL is no token. Always where it is not private. */
bool exposed_opens(struct ports *ports, const struct exposed *exposed, const char *token);
/* What whoever listens keeps with it; only on its thread. */
void exposed_attach(struct exposed *exposed, void *what);
void *exposed_attached(const struct exposed *exposed);

// ---- connections ----

enum port_result {
    PORT_CONNECTED, // *fd is a socket: non-blocking, connected or about to be
    PORT_REFUSED,   // nobody listens there
    PORT_WAITS,     // the sandbox has to be woken, or waited for: port_connect does
    PORT_OVER,      // there is no such sandbox any more
    PORT_FAILED,    // see *err
};
/* Counts as use of the sandbox. Any thread; does not wait. */
enum port_result port_connect_now(struct ports *ports, const char *sandbox_id, uint16_t port,
                                  int *fd, struct error *err);
/* The same, but wakes the sandbox and waits for it: of many at once one wakes it. Never PORT_WAITS. */
enum port_result port_connect(struct ports *ports, const char *sandbox_id, uint16_t port, int *fd,
                              struct error *err);
/* Out of the sandbox, by its network and its rules, to an address: waits as port_connect does. */
struct sockaddr;
enum port_result port_connect_out(struct ports *ports, const char *sandbox_id,
                                  const struct sockaddr *address, int *fd, struct error *err);
/* To who answers for names in the sandbox: a socket for datagrams. Waits likewise; PORT_FAILED where it has no network. */
enum port_result port_open_resolver(struct ports *ports, const char *sandbox_id, int *fd,
                                    struct error *err);
/* Listens on a port of the sandbox's loopback, 0: any; *port becomes which. Waits likewise. */
enum port_result port_listen(struct ports *ports, const char *sandbox_id, uint16_t *port, int *fd,
                             struct error *err);
/* A local socket that has no name yet, of the sandbox's network. Waits likewise. */
enum port_result port_make_local(struct ports *ports, const char *sandbox_id, int *fd,
                                 struct error *err);
/* Whether it is up, so that a connection from before leads to somebody who runs. Counts as use. Any thread. */
bool port_is_awake(struct ports *ports, const char *sandbox_id);
/* It is used: bytes pass. Any thread. */
void port_touch(struct ports *ports, const char *sandbox_id);
