/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SSH into sandboxes: listens, gives each connection a fresh burrow-ssh, which speaks with the client and has no rights, and decides what that asks for: who is let into
 * which sandbox, commands, terminals, connections to ports. Has a thread of its own. docs/internals/ssh.md has the whole of it.
 * Threads: any but loops; what says so, any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "core/account/actor.h"
#include "ssh/ssh_host_key.h"

#include <stdbool.h>
#include <stdint.h>

struct core;
struct ssh_server;

#define SSH_ADDRESSES 8

struct ssh_settings {
    struct core *core;
    const char *data_dir;
    const char *program;                  // path; NULL: next to this program
    const char *addresses[SSH_ADDRESSES]; // where to listen; none: tunnels alone
    size_t n_addresses;
    size_t connections;            // at once; of one owner at most half of them
    size_t connections_of_sandbox; // to one sandbox
    size_t strangers;              // that have not logged in; so many tunnels too
    size_t strangers_of_address;   // of those, from one machine, or tunnels of one owner
    uint32_t rate_of_address;      // connections a second that get a process; others wait
    uint64_t grace_ms;             // to log in
    uint64_t dead_after_ms;        // without an answer of a client's machine
    uint32_t tries;                // to log in, on one connection
    unsigned allows;               // by ssh_allow_parse
    int sftp_fd;                   // the program that answers to SFTP in sandboxes; taken
};

/* What clients may ask for that is off: words with commas between, "remote-forward,agent". NULL: nothing. */
int ssh_allow_parse(const char *words, unsigned *out, struct error *err);

/* Makes host keys where there are none, starts its thread and listens. */
int ssh_server_new(const struct ssh_settings *settings, struct ssh_server **out, struct error *err);
/* Ends all connections. Terminals live on in their sandboxes. */
void ssh_server_free(struct ssh_server *server);
DEFINE_AUTOPTR(ssh_server)

const struct ssh_host_key *
ssh_server_keys(const struct ssh_server *server); // SSH_HOST_KEYS of them
const char *
ssh_server_address(const struct ssh_server *server); // the first; NULL: it does not listen

/*
 * Takes a connection of somebody who is known already: on it the user of that sandbox needs no key. Any thread; does not wait. The connection ends where there are
 * too many.
 */
void ssh_server_adopt(struct ssh_server *server, int fd, const struct actor *actor,
                      const char *sandbox_id);

/* An API key or token has ended, or may less than before: those who came by it are looked at again. Any thread. */
void ssh_server_key_ended(struct ssh_server *server, const char *key_id);
