/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the server, the supervisor and the worker of burrow-egress say to each other, as frames (exchange.h). Texts stand behind the structs, each with its NUL.
 * Threads: plain values.
 */
#pragma once
#include "egress/egress.h"

#define EGRESS_ROOTS                                                                               \
    "SSL_CERT_FILE" // a file of certificates to trust instead of the machine's, as OpenSSL has it
#define EGRESS_SOCKET "egress.sock" // in the data directory
#define EGRESS_LOCK "egress.lock"
#define EGRESS_KEY "egress.key" // the authority, with its key: nobody but the supervisor reads it
#define EGRESS_MAX_PINS 512     // in one frame
#define EGRESS_MAX_SECRETS 64   // of one box
#define EGRESS_RESOLVERS 3      // that are asked for names
#define EGRESS_DNS_PORT 53

enum egress_message {
    // server to supervisor, answered by EGRESS_DONE or EGRESS_FAILED with the same serial
    EGRESS_SET =
        1, // struct egress_set_message; the policy; each secret's host, header, value, placeholder
    EGRESS_REMOVE,    // uint32_t slot
    EGRESS_COUNT,     // uint32_t slot; the answer is a struct egress_counters
    EGRESS_AUTHORITY, // the answer is PEM
    EGRESS_FOLLOW,    // refusals from now on
    EGRESS_STOP,      // ends it
    // supervisor to server
    EGRESS_DONE,
    EGRESS_FAILED,  // a sentence
    EGRESS_REFUSAL, // struct egress_refusal
    // worker to supervisor
    EGRESS_UNPIN,      // uint32_t slot: all of it, once its connections were reset
    EGRESS_PIN,        // struct egress_pin_message, then so many struct egress_pin
    EGRESS_DIAL_HOST,  // struct egress_dial_message: a service on the host's loopback
    EGRESS_DIAL_DNS,   // the same: a resolver, by its index in `port`
    EGRESS_DIAL_PROXY, // the same
    EGRESS_LEAF,       // a name: a certificate and key for it; the answer is PEM
    // supervisor to worker
    EGRESS_RESOLVER, // uint32_t: which; a socket
};

struct egress_set_message {
    uint32_t slot;
    uint32_t address; // the worker's; in the machine's order
    uint64_t generation;
    uint32_t policy_length; // with its NUL
    uint32_t n_secrets;
};
struct egress_pin_message {
    uint32_t slot;
    uint32_t seconds;
    uint32_t count;
};
struct egress_pin {
    uint32_t address;
    uint16_t protocols, port;
};
struct egress_dial_message {
    uint32_t slot;
    uint32_t port;
};
