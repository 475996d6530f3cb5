/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of others that drops what the host forwards, as Docker sets one up: found, opened for gateways, given back; see gateway_impl.h. */
#include "base/mem.h"
#include "engine/gateway_impl.h"

#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>
#include <sys/socket.h>

#define TABLE "filter" // of iptables
#define CHAIN "FORWARD"
#define MARK "burrow" // the comment of our rules there

struct chain {
    uint32_t policy;
    uint64_t ours[8]; // handles of our rules
    unsigned count;
};

static void read_policy(const struct nlmsghdr *message, void *data)
{
    struct chain *chain = data;
    struct attribute parts[NFTA_CHAIN_POLICY + 1];
    const size_t header = NLMSG_LENGTH(sizeof(struct nfgenmsg));

    if (message->nlmsg_len < header)
        return;
    attributes_find((const char *)message + header, message->nlmsg_len - header, parts,
                    NFTA_CHAIN_POLICY + 1);
    if (parts[NFTA_CHAIN_POLICY].data)
        chain->policy = attribute_be32(&parts[NFTA_CHAIN_POLICY]);
}

static void read_rule(const struct nlmsghdr *message, void *data)
{
    struct chain *chain = data;
    struct attribute parts[NFTA_RULE_USERDATA + 1];
    const size_t header = NLMSG_LENGTH(sizeof(struct nfgenmsg));

    if (message->nlmsg_len < header)
        return;
    attributes_find((const char *)message + header, message->nlmsg_len - header, parts,
                    NFTA_RULE_USERDATA + 1);
    const struct attribute *comment = &parts[NFTA_RULE_USERDATA];
    const struct attribute *in = &parts[NFTA_RULE_CHAIN];
    if (comment->data && memmem(comment->data, comment->length, MARK, strlen(MARK)) && in->data &&
        strncmp(in->data, CHAIN, in->length) == 0 && chain->count < ARRAY_SIZE(chain->ours))
        chain->ours[chain->count++] = attribute_be64(&parts[NFTA_RULE_HANDLE]);
}

static void ask_about(struct messages *messages, uint16_t type, uint16_t flags)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};
    message_begin(messages, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &header,
                  sizeof header);
}

static void look(struct chain *chain)
{
    automessages policy = {0};
    automessages rules = {0};

    *chain = (struct chain){.policy = NF_ACCEPT};
    ask_about(&policy, NFT_MSG_GETCHAIN, NLM_F_ACK);
    message_put_text(&policy, NFTA_CHAIN_TABLE, TABLE);
    message_put_text(&policy, NFTA_CHAIN_NAME, CHAIN);
    if (netlink_ask(-1, NETLINK_NETFILTER, &policy, read_policy, chain) != 0)
        return; // there is none
    ask_about(&rules, NFT_MSG_GETRULE, NLM_F_DUMP);
    message_put_text(&rules, NFTA_RULE_TABLE, TABLE);
    message_put_text(&rules, NFTA_RULE_CHAIN, CHAIN);
    (void)netlink_ask(-1, NETLINK_NETFILTER, &rules, read_rule, chain);
}

bool forward_policy_drops(void)
{
    struct chain chain;
    look(&chain);
    return chain.policy == NF_DROP;
}

bool forward_policy_is_open(void)
{
    struct chain chain;
    look(&chain);
    return chain.policy != NF_DROP || chain.count > 0;
}

/* Only what iptables could have made itself: it gives up a table in which there is anything else. What may come in is for the gateway's own table to say. */
int forward_policy_open(struct error *err)
{
    if (forward_policy_is_open())
        return 0;
    return nft_run(
        -1,
        "insert rule ip " TABLE " " CHAIN " iifname \"burrow*\" accept comment \"" MARK "\"\n"
        "insert rule ip " TABLE " " CHAIN " oifname \"burrow*\" accept comment \"" MARK "\"\n",
        err);
}

void forward_policy_close(void)
{
    struct chain chain;
    automessages messages = {0};

    look(&chain);
    if (chain.count == 0)
        return;
    batch_begin(&messages);
    for (unsigned i = 0; i < chain.count; i++) {
        batch_message(&messages, NFT_MSG_DELRULE, 0);
        message_put_text(&messages, NFTA_RULE_TABLE, TABLE);
        message_put_text(&messages, NFTA_RULE_CHAIN, CHAIN);
        message_put_be64(&messages, NFTA_RULE_HANDLE, chain.ours[i]);
    }
    (void)batch_send(NULL, &messages); // best effort
}
