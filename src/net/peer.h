/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is at the other end of a connection.
 * Threads: plain values.
 */
#pragma once
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct peer {
    bool is_local; // a Unix socket: uid and pid are the kernel's word
    uid_t uid;
    pid_t pid;
    uint16_t port;
    struct in6_addr address; // IPv4 is mapped into it
};

/* Asks the kernel about an accepted socket; all zero when it does not say. */
void peer_init(struct peer *peer, int fd);

/* What tells one client's machine from another: an IPv4 address, the first half of an IPv6 one, the user of a Unix socket. */
uint64_t peer_group(const struct peer *peer);
/* Whether it is this machine: programs, or a proxy with many clients behind it. */
bool peer_is_own(const struct peer *peer);

/* "192.0.2.7:4711", "[2001:db8::1]:80", "uid 0 pid 77". */
#define PEER_TEXT 64
const char *peer_format(const struct peer *peer, char text[PEER_TEXT]);
