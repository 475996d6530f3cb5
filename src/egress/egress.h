/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's end of burrow-egress, the program through which boxes with a network resolve names and, where their policy has names or secrets, speak HTTP and TLS
 * (docs/internals/egress.md). The program outlives the server and keeps what it was last told; boxes that it was told nothing of are refused everything.
 * Threads: any but loops.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "base/error.h"
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct egress;

struct egress_settings {
    const char *data_dir;
    const char *program;   // path of burrow-egress; NULL: next to this program
    const char *addresses; // of boxes, as engine/gateway.h has it; NULL: the default
    const char *
        resolvers; // "192.0.2.53, 192.0.2.54:5353": asked for names; NULL: those of /etc/resolv.conf
    const char *
        proxy; // "http://proxy.example:3128": what is read here goes out through it; NULL: directly
};
/* Whether all of `resolvers` are addresses; ERROR_INVALID names the one that is none. NULL and "" are fine. */
int egress_check_resolvers(const char *resolvers, struct error *err);
/* Connects to the program of this data directory, and starts it where there is none. */
int egress_open(const struct egress_settings *settings, struct egress **out, struct error *err);
void egress_free(struct egress *egress); // the program stays
DEFINE_AUTOPTR(egress)

/* Ends the program of a data directory, and returns when it has; fine where there is none. */
int egress_stop(const char *data_dir, struct error *err);

/* A header that requests to a host get. Whoever is in the box never sees the value. */
struct egress_secret {
    const char *host;   // "api.example.com"
    const char *header; // "Authorization"
    const char *value;  // "Bearer …"
    const char *
        placeholder; // replaced by the value in that header, refused elsewhere; NULL: the header is always set
};
struct egress_box {
    unsigned slot;
    uint64_t generation;
    const char *policy; // of policy_write
    const struct egress_secret *secrets;
    size_t n_secrets;
};
/* Returns when it holds: connections and lookups that it no longer allows have ended. On an error what was told before stays. */
int egress_set(struct egress *egress, const struct egress_box *box, struct error *err);
/* Forgets a box. Unknown ones are fine. */
int egress_remove(struct egress *egress, unsigned slot, struct error *err);

enum egress_refusal_kind {
    EGRESS_DNS,        // a name was not resolved
    EGRESS_CONNECTION, // the kernel refused a packet
    EGRESS_TLS,        // a ClientHello
    EGRESS_HTTP,       // a request
    EGRESS_HOST,       // a service of the host
    EGRESS_SECRET,     // a placeholder was sent elsewhere
    EGRESS_RATE,       // more lookups or connections than a box may have
};
const char *egress_refusal_name(enum egress_refusal_kind kind); // "dns"
struct egress_refusal {
    uint32_t slot;
    uint32_t kind; // enum egress_refusal_kind
    uint64_t generation;
    uint32_t address; // in the machine's order; 0: none
    uint16_t port;
    uint16_t protocol; // enum policy_protocol; 0: a lookup
    uint32_t count;    // how many like it since the last record of it
    uint8_t would_deny;
    uint8_t tier; // enum policy_tier
    char name[POLICY_NAME_LENGTH];
    char rule[POLICY_RULE_TEXT];
    char reason[512];
    char remedy[512];
};
/* Readable when there is a refusal, or when the program has ended. Changes with egress_restore. */
int egress_fd(const struct egress *egress);
/* 1: there is one. 0: not now. -1: the program has ended: egress_restore. */
int egress_next_refusal(struct egress *egress, struct egress_refusal *out);
/* Starts the program again where it has ended, and tells it of all boxes that were set. Other calls do it too, where they notice. */
int egress_restore(struct egress *egress, struct error *err);

struct egress_counters {
    uint64_t lookups, refused_lookups;
    uint64_t connections, refused_connections; // of those that were read here
};
int egress_counters(struct egress *egress, unsigned slot, struct egress_counters *out,
                    struct error *err);

/* The certificate that signs those of hosts with a secret, as PEM: what clients inside have to trust. Made when it is first asked for. */
int egress_certificate(struct egress *egress, struct buffer *out, struct error *err);
