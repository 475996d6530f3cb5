/* SPDX-License-Identifier: Apache-2.0 */
/* Elements, chains and rules as messages to nf_tables; see gateway_nft.h. */
#include "engine/gateway_nft.h"

#include "engine/gateway_impl.h"

#include <endian.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

#define SOURCE_OFFSET 12 // in the header of version 4
#define TARGET_OFFSET 16
#define PORT_OFFSET 2

static void begin(struct messages *messages, uint16_t type, uint16_t flags)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};
    message_begin(messages, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, &header,
                  sizeof header);
}

static void put_bound(struct messages *messages, uint16_t type)
{
    const struct nfgenmsg header = {.version = NFNETLINK_V0,
                                    .res_id = htobe16(NFNL_SUBSYS_NFTABLES)};
    message_begin(messages, type, 0, &header, sizeof header);
}

void batch_begin(struct messages *messages)
{
    put_bound(messages, NFNL_MSG_BATCH_BEGIN);
}

void batch_message(struct messages *messages, uint16_t type, uint16_t flags)
{
    begin(messages, type, flags);
}

static int take_socket(struct gateway *gateway)
{
    {
        autolock(&gateway->lock);
        if (gateway->n_idle > 0)
            return gateway->idle[--gateway->n_idle];
    }
    return netlink_socket_in(gateway->ns_fd, AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER);
}

static void keep_socket(struct gateway *gateway, int *sock)
{
    autolock(&gateway->lock);
    if (gateway->n_idle < GATEWAY_IDLE_SOCKETS)
        gateway->idle[gateway->n_idle++] = take_fd(*sock);
}

int gateway_ask(struct gateway *gateway, struct messages *messages, on_message *fn, void *data)
{
    autofd sock = take_socket(gateway);
    if (sock < 0)
        return errno;
    int code = netlink_talk(sock, messages, fn, data);
    // More answers than one may wait where something was refused; of what is not there, it is the only one.
    if (code == 0 || code == ENOENT)
        keep_socket(gateway, &sock);
    return code;
}

/* The last message of the batch is the one whose answer is awaited; the end itself is never answered. */
int batch_send(struct gateway *gateway, struct messages *messages)
{
    struct nlmsghdr *last = (struct nlmsghdr *)(void *)(messages->data + messages->begun);
    uint32_t awaited = last->nlmsg_seq;

    last->nlmsg_flags |= NLM_F_ACK;
    put_bound(messages, NFNL_MSG_BATCH_END);
    messages->sequence = awaited;
    if (!gateway)
        return netlink_ask(-1, NETLINK_NETFILTER, messages, NULL, NULL);
    return gateway_ask(gateway, messages, NULL, NULL);
}

static void add_field(struct nft_key *key, const void *data, size_t length)
{
    memset(key->bytes + key->length, 0, 4);
    memcpy(key->bytes + key->length, data, length);
    key->length += 4;
}

struct nft_key nft_key_address(uint32_t address)
{
    struct nft_key key = {.length = 0};
    nft_key_add_address(&key, address);
    return key;
}

void nft_key_add_address(struct nft_key *key, uint32_t address)
{
    uint32_t value = htobe32(address);
    add_field(key, &value, sizeof value);
}

void nft_key_add_mark(struct nft_key *key, uint32_t mark)
{
    add_field(key, &mark, sizeof mark);
}

void nft_key_add_protocol(struct nft_key *key, uint8_t protocol)
{
    add_field(key, &protocol, sizeof protocol);
}

void nft_key_add_port(struct nft_key *key, uint16_t port)
{
    uint16_t value = htobe16(port);
    add_field(key, &value, sizeof value);
}

static void put_data(struct messages *messages, uint16_t attribute, const void *data, size_t length)
{
    size_t outer = message_open(messages, attribute);
    message_put(messages, NFTA_DATA_VALUE, data, length);
    message_close(messages, outer);
}

static void put_verdict(struct messages *messages, uint16_t attribute, int code, const char *chain)
{
    size_t outer = message_open(messages, attribute);
    size_t verdict = message_open(messages, NFTA_DATA_VERDICT);
    message_put_be32(messages, NFTA_VERDICT_CODE, (uint32_t)code);
    message_put_text(messages, NFTA_VERDICT_CHAIN, chain);
    message_close(messages, verdict);
    message_close(messages, outer);
}

static void put_list(struct messages *messages, const char *set, const struct nft_key *key,
                     const struct nft_element *value, uint64_t timeout_ms)
{
    message_put_text(messages, NFTA_SET_ELEM_LIST_TABLE, GATEWAY_TABLE);
    message_put_text(messages, NFTA_SET_ELEM_LIST_SET, set);
    if (!key)
        return;
    size_t list = message_open(messages, NFTA_SET_ELEM_LIST_ELEMENTS);
    size_t element = message_open(messages, NFTA_LIST_ELEM);
    put_data(messages, NFTA_SET_ELEM_KEY, key->bytes, key->length);
    if (value && *value->chain)
        put_verdict(messages, NFTA_SET_ELEM_DATA, NFT_GOTO, value->chain);
    else if (value)
        put_data(messages, NFTA_SET_ELEM_DATA, &value->mark, sizeof value->mark);
    if (timeout_ms)
        message_put_be64(messages, NFTA_SET_ELEM_TIMEOUT, timeout_ms);
    message_close(messages, element);
    message_close(messages, list);
}

void nft_put_element(struct messages *messages, const char *set, const struct nft_key *key,
                     const struct nft_element *value, uint64_t timeout_ms)
{
    begin(messages, NFT_MSG_NEWSETELEM, NLM_F_CREATE);
    put_list(messages, set, key, value, timeout_ms);
}

void nft_remove_element(struct messages *messages, const char *set, const struct nft_key *key)
{
    begin(messages, NFT_MSG_DELSETELEM, 0);
    put_list(messages, set, key, NULL, 0);
}

static void read_value(const struct attribute *data, struct nft_element *out)
{
    struct attribute value[NFTA_DATA_VERDICT + 1];
    struct attribute verdict[NFTA_VERDICT_CHAIN + 1];

    attributes_find(data->data, data->length, value, NFTA_DATA_VERDICT + 1);
    out->mark = attribute_u32(&value[NFTA_DATA_VALUE]);
    attributes_find(value[NFTA_DATA_VERDICT].data, value[NFTA_DATA_VERDICT].length, verdict,
                    NFTA_VERDICT_CHAIN + 1);
    const struct attribute *chain = &verdict[NFTA_VERDICT_CHAIN];
    if (chain->data)
        (void)snprintf(out->chain, sizeof out->chain, "%.*s", (int)chain->length,
                       (const char *)chain->data);
}

static void read_counter(const struct attribute *expression, struct nft_element *out)
{
    struct attribute parts[NFTA_EXPR_DATA + 1];
    struct attribute counter[NFTA_COUNTER_PACKETS + 1];

    attributes_find(expression->data, expression->length, parts, NFTA_EXPR_DATA + 1);
    attributes_find(parts[NFTA_EXPR_DATA].data, parts[NFTA_EXPR_DATA].length, counter,
                    NFTA_COUNTER_PACKETS + 1);
    out->bytes = attribute_be64(&counter[NFTA_COUNTER_BYTES]);
    out->packets = attribute_be64(&counter[NFTA_COUNTER_PACKETS]);
}

static void read_element(const void *data, size_t length, struct nft_element *out)
{
    struct attribute parts[NFTA_SET_ELEM_EXPR + 1];
    struct attribute key[NFTA_DATA_VALUE + 1];

    *out = (struct nft_element){0};
    attributes_find(data, length, parts, NFTA_SET_ELEM_EXPR + 1);
    attributes_find(parts[NFTA_SET_ELEM_KEY].data, parts[NFTA_SET_ELEM_KEY].length, key,
                    NFTA_DATA_VALUE + 1);
    out->address = attribute_be32(&key[NFTA_DATA_VALUE]);
    if (parts[NFTA_SET_ELEM_DATA].data)
        read_value(&parts[NFTA_SET_ELEM_DATA], out);
    if (parts[NFTA_SET_ELEM_EXPR].data)
        read_counter(&parts[NFTA_SET_ELEM_EXPR], out);
}

struct reader {
    void (*fn)(const struct nft_element *element, void *data);
    void *data;
};

static void read_elements(const struct nlmsghdr *message, void *data)
{
    const struct reader *reader = data;
    struct attribute parts[NFTA_SET_ELEM_LIST_ELEMENTS + 1];
    const size_t header = NLMSG_LENGTH(sizeof(struct nfgenmsg));
    struct nft_element element;

    if (message->nlmsg_len < header)
        return;
    attributes_find((const char *)message + header, message->nlmsg_len - header, parts,
                    NFTA_SET_ELEM_LIST_ELEMENTS + 1);
    const char *at = parts[NFTA_SET_ELEM_LIST_ELEMENTS].data;
    size_t left = parts[NFTA_SET_ELEM_LIST_ELEMENTS].length;
    while (at && left >= NLA_HDRLEN) {
        struct nlattr one;
        memcpy(&one, at, sizeof one);
        if (one.nla_len < NLA_HDRLEN || one.nla_len > left)
            return;
        read_element(at + NLA_HDRLEN, one.nla_len - NLA_HDRLEN, &element);
        reader->fn(&element, reader->data);
        size_t step = NLA_ALIGN((size_t)one.nla_len);
        step = step < left ? step : left;
        at += step;
        left -= step;
    }
}

static void keep(const struct nft_element *element, void *data)
{
    *(struct nft_element *)data = *element;
}

int nft_find(struct gateway *gateway, const char *set, const struct nft_key *key,
             struct nft_element *out)
{
    struct reader reader = {keep, out};
    automessages messages = {0};

    begin(&messages, NFT_MSG_GETSETELEM, NLM_F_ACK);
    put_list(&messages, set, key, NULL, 0);
    return gateway_ask(gateway, &messages, read_elements, &reader);
}

int nft_list(struct gateway *gateway, const char *set,
             void (*fn)(const struct nft_element *element, void *data), void *data)
{
    struct reader reader = {fn, data};
    automessages messages = {0};

    begin(&messages, NFT_MSG_GETSETELEM, NLM_F_DUMP);
    put_list(&messages, set, NULL, NULL, 0);
    return gateway_ask(gateway, &messages, read_elements, &reader);
}

void nft_put_chain(struct messages *messages, const char *chain)
{
    begin(messages, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
    message_put_text(messages, NFTA_CHAIN_TABLE, GATEWAY_TABLE);
    message_put_text(messages, NFTA_CHAIN_NAME, chain);
}

void nft_remove_chain(struct messages *messages, const char *chain)
{
    begin(messages, NFT_MSG_DELCHAIN, 0);
    message_put_text(messages, NFTA_CHAIN_TABLE, GATEWAY_TABLE);
    message_put_text(messages, NFTA_CHAIN_NAME, chain);
}

/* An expression of a rule, until close_expression. */
struct expression {
    size_t element, data;
};

static struct expression open_expression(struct messages *messages, const char *name)
{
    struct expression opened = {message_open(messages, NFTA_LIST_ELEM), 0};
    message_put_text(messages, NFTA_EXPR_NAME, name);
    opened.data = message_open(messages, NFTA_EXPR_DATA);
    return opened;
}

static void close_expression(struct messages *messages, struct expression opened)
{
    message_close(messages, opened.data);
    message_close(messages, opened.element);
}

static void load_payload(struct messages *messages, uint32_t base, uint32_t offset, uint32_t length)
{
    struct expression payload = open_expression(messages, "payload");
    message_put_be32(messages, NFTA_PAYLOAD_DREG, NFT_REG_1);
    message_put_be32(messages, NFTA_PAYLOAD_BASE, base);
    message_put_be32(messages, NFTA_PAYLOAD_OFFSET, offset);
    message_put_be32(messages, NFTA_PAYLOAD_LEN, length);
    close_expression(messages, payload);
}

static void compare(struct messages *messages, const void *data, size_t length)
{
    struct expression cmp = open_expression(messages, "cmp");
    message_put_be32(messages, NFTA_CMP_SREG, NFT_REG_1);
    message_put_be32(messages, NFTA_CMP_OP, NFT_CMP_EQ);
    put_data(messages, NFTA_CMP_DATA, data, length);
    close_expression(messages, cmp);
}

static void match_address(struct messages *messages, uint32_t address, unsigned bits)
{
    uint32_t mask = htobe32(bits >= 32 ? UINT32_MAX : ~(UINT32_MAX >> bits));
    uint32_t wanted = htobe32(address) & mask;
    const uint32_t none = 0;

    load_payload(messages, NFT_PAYLOAD_NETWORK_HEADER, TARGET_OFFSET, 4);
    struct expression bitwise = open_expression(messages, "bitwise");
    message_put_be32(messages, NFTA_BITWISE_SREG, NFT_REG_1);
    message_put_be32(messages, NFTA_BITWISE_DREG, NFT_REG_1);
    message_put_be32(messages, NFTA_BITWISE_LEN, 4);
    put_data(messages, NFTA_BITWISE_MASK, &mask, sizeof mask);
    put_data(messages, NFTA_BITWISE_XOR, &none, sizeof none);
    close_expression(messages, bitwise);
    compare(messages, &wanted, sizeof wanted);
}

static void match_protocol(struct messages *messages, uint8_t protocol)
{
    struct expression meta = open_expression(messages, "meta");
    message_put_be32(messages, NFTA_META_DREG, NFT_REG_1);
    message_put_be32(messages, NFTA_META_KEY, NFT_META_L4PROTO);
    close_expression(messages, meta);
    compare(messages, &protocol, sizeof protocol);
}

static void match_ports(struct messages *messages, uint16_t first, uint16_t last)
{
    uint16_t from = htobe16(first);
    uint16_t to = htobe16(last);

    load_payload(messages, NFT_PAYLOAD_TRANSPORT_HEADER, PORT_OFFSET, 2);
    if (first == last) {
        compare(messages, &from, sizeof from);
        return;
    }
    struct expression range = open_expression(messages, "range");
    message_put_be32(messages, NFTA_RANGE_SREG, NFT_REG_1);
    message_put_be32(messages, NFTA_RANGE_OP, NFT_RANGE_EQ);
    put_data(messages, NFTA_RANGE_FROM_DATA, &from, sizeof from);
    put_data(messages, NFTA_RANGE_TO_DATA, &to, sizeof to);
    close_expression(messages, range);
}

static void decide(struct messages *messages, int code, const char *chain)
{
    struct expression immediate = open_expression(messages, "immediate");
    message_put_be32(messages, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
    put_verdict(messages, NFTA_IMMEDIATE_DATA, code, chain);
    close_expression(messages, immediate);
}

static size_t begin_rule(struct messages *messages, const char *chain)
{
    begin(messages, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
    message_put_text(messages, NFTA_RULE_TABLE, GATEWAY_TABLE);
    message_put_text(messages, NFTA_RULE_CHAIN, chain);
    return message_open(messages, NFTA_RULE_EXPRESSIONS);
}

static void put_one(struct messages *messages, const char *chain,
                    const struct policy_kernel_rule *rule, uint8_t protocol, const char *target)
{
    size_t expressions = begin_rule(messages, chain);

    if (rule->bits > 0)
        match_address(messages, rule->address, rule->bits);
    if (protocol)
        match_protocol(messages, protocol);
    if (rule->first_port && protocol != IPPROTO_ICMP)
        match_ports(messages, rule->first_port, rule->last_port);
    decide(messages, NFT_GOTO, target);
    message_close(messages, expressions);
}

void nft_put_rule(struct messages *messages, const char *chain,
                  const struct policy_kernel_rule *rule, const char *target)
{
    const unsigned all = POLICY_TCP | POLICY_UDP | POLICY_ICMP;
    const bool has_ports = rule->first_port != 0;

    if ((rule->protocols & all) == all && !has_ports) {
        put_one(messages, chain, rule, 0, target);
        return;
    }
    if (rule->protocols & POLICY_TCP)
        put_one(messages, chain, rule, IPPROTO_TCP, target);
    if (rule->protocols & POLICY_UDP)
        put_one(messages, chain, rule, IPPROTO_UDP, target);
    if (rule->protocols & POLICY_ICMP && !has_ports)
        put_one(messages, chain, rule, IPPROTO_ICMP, target);
}

void nft_put_jump(struct messages *messages, const char *chain, const char *target)
{
    size_t expressions = begin_rule(messages, chain);
    decide(messages, NFT_JUMP, target);
    message_close(messages, expressions);
}

void nft_put_goto(struct messages *messages, const char *chain, const char *target)
{
    size_t expressions = begin_rule(messages, chain);
    decide(messages, NFT_GOTO, target);
    message_close(messages, expressions);
}
