/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of DNS (RFC 1035, 6891, 8914): questions of boxes, what is asked of other resolvers, and answers, all of them hostile. Nothing is followed that does not lead
 * backwards, and everything is bounded.
 * Threads: plain values.
 */
#pragma once
#include "policy/policy.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DNS_A = 1, DNS_CNAME = 5, DNS_AAAA = 28, DNS_OPT = 41, DNS_SVCB = 64, DNS_HTTPS = 65 };
enum {
    DNS_NO_ERROR = 0,
    DNS_FORMAT_ERROR = 1,
    DNS_SERVER_FAILURE = 2,
    DNS_NAME_ERROR = 3,
    DNS_NOT_IMPLEMENTED = 4,
    DNS_REFUSED = 5,
};
enum {
    DNS_BLOCKED = 15,
    DNS_PROHIBITED = 18,
    DNS_NOT_SUPPORTED = 21,
    DNS_NO_REACHABLE = 22
};                       // extended errors
#define DNS_MESSAGE 4096 // bytes of what is sent or taken over UDP and kept
#define DNS_PAYLOAD 1232 // what is sent over UDP at most, and asked for
#define DNS_PLAIN 512    // where nothing else is said
#define DNS_ADDRESSES 64 // taken of one answer
#define DNS_QUESTION 272 // bytes of one, at most

struct dns_question {
    uint16_t id;
    uint16_t flags;
    uint16_t type;
    uint16_t class;
    bool has_edns;
    size_t room;                     // how long an answer over UDP may be
    char name[POLICY_NAME_LENGTH];   // folded; "": no name that is asked for
    unsigned char raw[DNS_QUESTION]; // as it was asked, capitals and all
    size_t raw_length;
};
/* 0: it is one. -1: not even worth an answer. Else what to answer: DNS_FORMAT_ERROR or DNS_NOT_IMPLEMENTED. */
int dns_read_question(const unsigned char *message, size_t length, struct dns_question *out);

struct dns_reply {
    unsigned code;             // DNS_REFUSED …
    const uint32_t *addresses; // in the machine's order
    size_t count;
    uint32_t seconds;  // to live
    unsigned extended; // 0: none
    const char *text;  // with it; may be NULL
};
/* The bytes of the answer; cut off, and marked so, where it has no room. */
size_t dns_write_reply(const struct dns_question *question, const struct dns_reply *reply,
                       size_t room, unsigned char *out);

/* What is asked of another resolver: no options of the box's, and the name as it is compared. */
size_t dns_write_query(uint16_t id, const char *name, uint16_t type,
                       unsigned char out[DNS_MESSAGE]);

struct dns_answer {
    unsigned code;
    bool is_cut;
    uint32_t addresses[DNS_ADDRESSES];
    size_t count;
    uint32_t seconds; // the least of all that it is made of
    char target
        [POLICY_NAME_LENGTH]; // where the chain of names ends: to be asked for where there is no address; "": nowhere
};
/* Each further name of a chain, folded; false ends it. */
typedef bool (*dns_on_name)(void *data, const char *name);
/* Reads what came for a query; false where it is none for it. */
bool dns_read_answer(const unsigned char *message, size_t length, uint16_t id, const char *name,
                     dns_on_name on_name, void *data, struct dns_answer *out);
