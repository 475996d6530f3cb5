/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox: what it is, why something can or cannot be reached, what was refused. Changes are sandbox_modify's.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"
#include "core/account/actor.h"
#include "core/network/network_change.h"

struct sandboxes;
struct sandbox;

struct network_secret_info {
    char *host, *header;
    char *env; // the variable that has the value; NULL: it is kept here, sealed
};

/* Owns what it points to. */
struct network_info {
    struct network_wish wish; // without secrets
    struct network_secret_info *secrets;
    size_t n_secrets;
    bool is_default_allow;
    int64_t rate_bytes; // in force; 0: none
    int64_t generation; // how often it was changed
    bool is_active;     // there is a box that it is in force for
    int64_t egress_bytes, refused;
    char *allow_always, *deny_always, *baseline; // the operator's; NULL: none
};
void network_info_clear(struct network_info *info);

int sandbox_network_get(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                        struct network_info *out, struct error *err);

struct network_question {
    const char *host;     // a name or an address
    int64_t port;         // 0: is it resolved at all?
    const char *protocol; // "tcp", "udp", "icmp"
};
struct network_answer {
    bool is_allowed, would_deny;
    char tier[32];
    char rule[320]; // "": none
    char reason[512], remedy[512];
};
/* By the same function that decides for the sandbox's packets. ERROR_INVALID, noun "host" or "protocol". */
int sandbox_network_why(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                        const struct network_question *question, struct network_answer *out,
                        struct error *err);

struct network_seen_info {
    char *host, *protocol, *rule; // rule NULL: none
    int64_t port, attempts, first_at, last_at;
};
struct network_seen_infos {
    struct network_seen_info *items;
    size_t count;
};
void network_seen_infos_clear(struct network_seen_infos *infos);
/* What was refused, or with is_refused false what would have been while all was observed. */
int sandbox_network_seen(struct sandboxes *sandboxes, const struct actor *actor, const char *id,
                         bool is_refused, struct network_seen_infos *out, struct error *err);

/* What is noted while it is observed begins anew. */
void sandbox_network_forget(struct sandbox *sandbox);

/* Its box may go where its record says; one that is not new keeps its rate. The caller has the box. Private to the core. */
int sandbox_admit(struct sandbox *sandbox, bool is_new, struct error *err);
/* The same by another wish than that of its record, or in place of one that was in force. */
int sandbox_admit_as(struct sandbox *sandbox, const struct network_wish *wish, int64_t generation,
                     bool sets_rate, struct error *err);
/* Gives its box, which was started without, a way out through which nothing goes yet; names are asked for there. The caller has the box. Private to the core. */
int sandbox_join_network(struct sandbox *sandbox, struct error *err);
