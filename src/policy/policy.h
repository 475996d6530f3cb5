/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a box may connect to: an ordered list of rules in three tiers, and the one function that decides by it. The resolver, the first flight of a connection,
 * the kernel's rules, `why`, the observe mode and the tests all ask here (docs/internals/egress.md).
 *
 * A rule is a target, ports and a protocol, "*.example.com:443/tcp". The first rule that matches decides: the operator's "always", then the user's, then the
 * operator's "baseline", then the default. What is closed (addresses that are not public, the host's own services) only an operator's rule opens;
 * a user's may close it again.
 *
 * Threads: plain values.
 */
#pragma once
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POLICY_NAME_LENGTH 254 // of a name, with its NUL
#define POLICY_RULE_TEXT 300   // of a rule, with its NUL
#define POLICY_MAX_RULES 1024
#define POLICY_MAX_NAME_PORTS                                                                      \
    64 // in the range of one rule for a name: each is an entry of its own in the kernel

enum policy_mode { POLICY_OFF, POLICY_OPEN, POLICY_RULES };
enum policy_tier { POLICY_ALWAYS, POLICY_USER, POLICY_BASELINE, POLICY_DEFAULT, POLICY_CLOSED };
enum policy_target {
    POLICY_NAME,     // "example.com"
    POLICY_WILDCARD, // "*.example.com": whatever is below example.com, and never itself
    POLICY_NETWORK,  // "192.0.2.0/24", "192.0.2.7"
    POLICY_HOST,     // "host": the services on the loopback of the machine that boxes run on
    POLICY_ANY,      // "*"
};
enum policy_protocol { POLICY_TCP = 1, POLICY_UDP = 2, POLICY_ICMP = 4 };
#define POLICY_ALL_PROTOCOLS (POLICY_TCP | POLICY_UDP | POLICY_ICMP)

struct policy_rule {
    enum policy_tier tier; // always, user or baseline
    bool is_allow;
    enum policy_target target;
    char name[POLICY_NAME_LENGTH]; // of a wildcard what stands behind "*."
    uint32_t address;              // of a network, in the machine's order
    unsigned bits;
    uint16_t first_port, last_port; // 0: all
    unsigned protocols;             // of enum policy_protocol
};

struct policy {
    enum policy_mode mode;
    bool is_default_allow; // of POLICY_RULES; POLICY_OPEN always is
    bool is_observing;     // nothing is refused but what is closed; verdicts say would_deny
    bool has_secrets;      // TCP to 80 and 443 goes to burrow-egress whatever the rules are
    struct policy_rule *rules;
    size_t count;
};
#define autopolicy __attribute__((cleanup(policy_clear), unused)) struct policy
void policy_clear(struct policy *policy);

/*
 * Reads a rule's target, ports and protocol; tier and is_allow are left as they are. ERROR_INVALID says what is wrong and what to write instead. Aliases of the
 * host ("localhost", "127.0.0.1", "host.docker.internal") become "host"; names that are not ASCII their form in DNS.
 */
int policy_parse_rule(const char *text, struct policy_rule *out, struct error *err);
/* "*.example.com:443/tcp" */
const char *policy_rule_text(const struct policy_rule *rule, char out[POLICY_RULE_TEXT]);

/* Adds a rule to the end of its tier. ERROR_INVALID, or ERROR_LIMIT where there are too many. */
int policy_add(struct policy *policy, enum policy_tier tier, bool is_allow, const char *text,
               struct error *err);
/* Whether what it says can be held; ERROR_INVALID names the two rules that cannot be together. */
int policy_check(const struct policy *policy, struct error *err);

/* As lines of text, which policy_read understands; for the store and for burrow-egress. */
int policy_write(const struct policy *policy, struct buffer *out, struct error *err);
int policy_read(const char *text, struct policy *out, struct error *err);

const char *policy_tier_name(enum policy_tier tier); // "operator", "user", "operator baseline", …
const char *policy_protocol_name(enum policy_protocol protocol); // "tcp"

/*
 * A name as it is compared: lower case, no dot at the end, only labels that DNS has. False for everything else: too long, empty labels, other
 * characters, and what looks like an address. May be the same memory.
 */
bool policy_fold_name(const char *name, size_t length, char out[POLICY_NAME_LENGTH]);
/* Whether it is one of the host's aliases; folded already. */
bool policy_is_host(const char *name);
/* Whether an address may only be reached where an operator's rule says so. */
bool policy_is_closed_address(uint32_t address);

struct policy_question {
    const char *name;              // folded; NULL: none is known
    uint32_t address;              // 0: not known
    uint16_t port;                 // 0: none, as of ICMP and of a lookup
    enum policy_protocol protocol; // 0: a lookup: is there anything that the name may be used for?
};

struct policy_verdict {
    bool is_allowed;
    bool would_deny; // allowed only because it is observed
    bool is_by_name; // the rule that allows it is one for a name: the address must be that name's
    enum policy_tier tier;       // whose rule; POLICY_DEFAULT, POLICY_CLOSED: no rule
    char rule[POLICY_RULE_TEXT]; // "allow *.example.com:443"; "": no rule
    char reason[512];            // a sentence: what decided
    char remedy[512];            // a sentence: what to do about a refusal; "" where there is none
};
void policy_decide(const struct policy *policy, const struct policy_question *question,
                   struct policy_verdict *out);

/*
 * What an address that a name has resolved to is opened for in the kernel. One with port 0 is for all ports of its protocols. False where nothing is, or where
 * what is cannot be said this way: then it stays closed.
 */
struct policy_pin {
    unsigned protocols;
    uint16_t port;
};
#define POLICY_MAX_PINS 256
size_t policy_pins(const struct policy *policy, const char *name, uint32_t address,
                   struct policy_pin out[POLICY_MAX_PINS]);

/* What the kernel has to hold of it. */
enum policy_class {
    POLICY_CLASS_OFF,
    POLICY_CLASS_OPEN,  // everything but what is closed
    POLICY_CLASS_RULES, // addresses and ports: the list below, then the default
    POLICY_CLASS_NAMES, // the same with pins in between; TCP to 80 and 443 goes to burrow-egress
};
struct policy_kernel_rule {
    bool is_allow;
    bool is_operators;   // opens what is closed; a user's "allow" must not
    bool is_after_pins;  // in the list behind where pins are looked up
    uint32_t address;    // in the machine's order
    unsigned bits;       // 0: every address
    uint16_t first_port; // 0: all
    uint16_t last_port;
    unsigned protocols;
};
struct policy_kernel {
    enum policy_class class;
    bool is_default_allow;
    bool is_observing;                // log instead of refusing, but for what is closed
    struct policy_kernel_rule *rules; // in order; the first that matches decides
    size_t count;
};
void policy_compile(const struct policy *policy, struct policy_kernel *out);
void policy_kernel_clear(struct policy_kernel *kernel);
