/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to the gateway's files: elements, chains and rules of its table, as messages of one batch. What is asked at once gives 0
 * or an error number.
 * Threads: any.
 */
#pragma once
#include "engine/netlink.h"
#include "policy/policy.h"

#include <linux/netfilter/nf_tables.h>

struct gateway;

/* What an element is found by: fields of four bytes, as the kernel compares them. */
struct nft_key {
    uint8_t bytes[20];
    size_t length;
};

struct nft_key nft_key_address(uint32_t address);
void nft_key_add_address(struct nft_key *key, uint32_t address);
void nft_key_add_mark(struct nft_key *key, uint32_t mark);
void nft_key_add_protocol(struct nft_key *key, uint8_t protocol);
void nft_key_add_port(struct nft_key *key, uint16_t port);

/* What an element has; to put one in: a chain to go to, or a mark. */
struct nft_element {
    uint32_t address; // its key's first field
    char chain[NFT_NAME_MAXLEN];
    uint32_t mark;
    uint64_t bytes, packets;
};

/* `value` NULL: of a set. Again: only its time begins anew. timeout_ms 0: it stays. */
void nft_put_element(struct messages *messages, const char *set, const struct nft_key *key,
                     const struct nft_element *value, uint64_t timeout_ms);
void nft_remove_element(struct messages *messages, const char *set, const struct nft_key *key);
/* ENOENT: there is none. */
int nft_find(struct gateway *gateway, const char *set, const struct nft_key *key,
             struct nft_element *out);
int nft_list(struct gateway *gateway, const char *set,
             void (*fn)(const struct nft_element *element, void *data), void *data);

void nft_put_chain(struct messages *messages, const char *chain);
void nft_remove_chain(struct messages *messages, const char *chain);
/* At the end of a chain: what fits the rule goes to the chain `target`. */
void nft_put_rule(struct messages *messages, const char *chain,
                  const struct policy_kernel_rule *rule, const char *target);
void nft_put_jump(struct messages *messages, const char *chain, const char *target);
void nft_put_goto(struct messages *messages, const char *chain, const char *target);
