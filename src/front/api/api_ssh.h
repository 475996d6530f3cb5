/* SPDX-License-Identifier: Apache-2.0 */
/*
 * SSH as this front knows it: who takes connections, and what clients are to know of it. What is behind it is wired by the server.
 * Threads: any.
 */
#pragma once
#include "core/account/actor.h"
#include "web/call.h"
#include "web/upgrade.h"

struct api_ssh {
    /* Takes the socket: a connection of this actor, for this sandbox. Does not wait. NULL: there is no SSH. */
    void (*adopt)(void *data, int fd, const struct actor *actor, const char *sandbox_id);
    void *data;
    const char *host_keys[3];    // lines of known_hosts without the host, ended by NULL
    const char *fingerprints[3]; // of them
    const char *address;         // where it listens; NULL: nowhere
};

/* Answers the call, later, with 101: bytes of binary messages go to a connection of SSH, and back. */
int api_ssh_tunnel(struct call *call, const struct api_ssh *ssh, const struct upgrade *upgrade,
                   const char *sandbox_id, struct error *err);
