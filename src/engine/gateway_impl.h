/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the gateway's files: what is known of one, and how its parts are made.
 * Threads: any; fields without a lock do not change once it is open.
 */
#pragma once
#include "base/lock.h"
#include "engine/gateway.h"
#include "engine/netlink.h"

#define GATEWAY_TABLE "burrow"
#define GATEWAY_UPLINK "uplink" // the gateway's end of the way to the host
#define GATEWAY_LOG_GROUP 1
#define GATEWAY_NOTE_GROUP 2

enum { GATEWAY_FIRST_UPLINK = 2, GATEWAY_FIRST_BOX = 16384, GATEWAY_MAX_UPLINKS = 8000 };

#define GATEWAY_IDLE_SOCKETS 8

struct gateway {
    struct lock lock; // guards these two; held for memory work only
    int idle[GATEWAY_IDLE_SOCKETS];
    unsigned n_idle;
    int ns_fd;
    uint32_t base; // the first of its addresses
    unsigned bits;
    unsigned number; // of its way to the host, on this machine
    char uplink[16]; // or ""
};

/* The host's end of the way to it, and the addresses of both. */
#define GATEWAY_LINK_TEXT 16
void gateway_link_name(const struct gateway *gateway, char name[GATEWAY_LINK_TEXT]);
uint32_t gateway_host_end(const struct gateway *gateway);
uint32_t gateway_own_end(const struct gateway *gateway);

#define GATEWAY_ADDRESS_TEXT 20
/* "10.213.0.1"; gives back `text`. */
const char *gateway_write_address(uint32_t address, char text[GATEWAY_ADDRESS_TEXT]);

/* A setting as a network; ERROR_INVALID says what is wrong with it. */
int gateway_check_addresses(const char *text, uint32_t *base, unsigned *bits, struct error *err);

/* The rules in the namespace; `gateway` has its addresses. */
int gateway_load_rules(struct gateway *gateway, struct error *err);
/* The host's rules for it, in a table of the name of its interface there. */
int gateway_load_host_rules(const struct gateway *gateway, struct error *err);
/* The way between it and the host, with the host's side of it: number, interface, table, forwarding. */
int gateway_connect(struct gateway *gateway, const char *alias, struct error *err);
void gateway_disconnect(const struct gateway *gateway);
/* The same of every way with this alias: of one that was not made whole. */
void gateway_disconnect_named(const char *alias);
/* Whether the host's end is there, with its rules. */
bool gateway_is_connected(const struct gateway *gateway);
/* Where the end is there and the rest is not: somebody may have flushed all rules, or set others. */
int gateway_reconnect(const struct gateway *gateway, struct error *err);

/* The host forwards for it; given back when the last gateway of the machine is gone. */
int forwarding_open(const struct gateway *gateway, struct error *err);
void forwarding_close(void);
/* There is a gateway on this machine. */
bool forwarding_is_needed(void);

/* A chain of others on the host that drops what is forwarded, in the place where iptables has it; whether it lets gateways through. */
bool forward_policy_drops(void);
bool forward_policy_is_open(void);
int forward_policy_open(struct error *err);
void forward_policy_close(void);

/* Runs the nft program on a script, in a network namespace (-1: the caller's). ERROR_UNAVAILABLE when it is not installed. */
int nft_run(int ns_fd, const char *script, struct error *err);

/* Messages to nftables: all or nothing. */
void batch_begin(struct messages *messages);
void batch_message(struct messages *messages, uint16_t type, uint16_t flags);
/* 0 or an error number. In a gateway, or (NULL) in the caller's own network. */
int batch_send(struct gateway *gateway, struct messages *messages);

/*
 * Asks netfilter in a gateway; 0 or an error number. By a socket that is kept for the next question: the kernel lets go of one only when everything that
 * any transaction before has removed is really gone, which takes milliseconds.
 */
int gateway_ask(struct gateway *gateway, struct messages *messages, on_message *fn, void *data);
