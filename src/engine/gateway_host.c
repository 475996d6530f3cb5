/* SPDX-License-Identifier: Apache-2.0 */
/* The way between a gateway and the host: a pair of interfaces, the host's forwarding and rules; see gateway_impl.h. */
#include "base/fd.h"
#include "engine/gateway_impl.h"
#include "engine/gateway_wire.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

void gateway_link_name(const struct gateway *gateway, char name[GATEWAY_LINK_TEXT])
{
    (void)snprintf(name, GATEWAY_LINK_TEXT, "burrow%u", gateway->number);
}

uint32_t gateway_host_end(const struct gateway *gateway)
{
    return gateway->base + GATEWAY_FIRST_UPLINK + 2 * gateway->number;
}

uint32_t gateway_own_end(const struct gateway *gateway)
{
    return gateway_host_end(gateway) + 1;
}

static bool has_table(const char *name)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};
    automessages messages = {0};

    message_begin(&messages, NFNL_SUBSYS_NFTABLES << 8 | NFT_MSG_GETTABLE, NLM_F_ACK, &header,
                  sizeof header);
    message_put_text(&messages, NFTA_TABLE_NAME, name);
    return netlink_ask(-1, NETLINK_NETFILTER, &messages, NULL, NULL) == 0;
}

bool gateway_is_connected(const struct gateway *gateway)
{
    char name[GATEWAY_LINK_TEXT];
    gateway_link_name(gateway, name);
    return if_nametoindex(name) != 0 && has_table(name) && forward_policy_is_open();
}

int gateway_reconnect(const struct gateway *gateway, struct error *err)
{
    char name[GATEWAY_LINK_TEXT];
    gateway_link_name(gateway, name);
    if (!has_table(name) && gateway_load_host_rules(gateway, err) < 0)
        return -1;
    return forwarding_open(gateway, err);
}

/* The first number that no gateway of this machine has. */
static int make_pair(struct gateway *gateway, const char *alias, struct error *err)
{
    char name[GATEWAY_LINK_TEXT];
    int code = EEXIST;

    for (gateway->number = 0; gateway->number < GATEWAY_MAX_UPLINKS; gateway->number++) {
        gateway_link_name(gateway, name);
        const struct wire_end here = {.name = name, .ns_fd = -1, .alias = alias};
        const struct wire_end there = {.name = GATEWAY_UPLINK, .ns_fd = gateway->ns_fd};
        code = if_nametoindex(name) ? EEXIST : wire_make(-1, &here, &there);
        if (code != EEXIST)
            break;
    }
    if (code == EOPNOTSUPP)
        return error_set(err, ERROR_UNAVAILABLE,
                         "a sandbox with network needs veth interfaces, which this kernel has not: "
                         "load the module veth");
    return code ? error_sys_code(err, code, "make an interface between sandboxes and the host") : 0;
}

static int set_addresses(struct gateway *gateway, struct error *err)
{
    char name[GATEWAY_LINK_TEXT];
    automessages host = {0};
    automessages own = {0};

    gateway_link_name(gateway, name);
    uint32_t index = if_nametoindex(name);
    message_add_address(&host, index, gateway_host_end(gateway), 31);
    int code = netlink_ask(-1, NETLINK_ROUTE, &host, NULL, NULL);
    if (code == 0)
        code = wire_index(gateway->ns_fd, GATEWAY_UPLINK, &index);
    message_add_address(&own, index, gateway_own_end(gateway), 31);
    message_add_route(&own, index, 0, 0, gateway_host_end(gateway));
    if (code == 0)
        code = netlink_ask(gateway->ns_fd, NETLINK_ROUTE, &own, NULL, NULL);
    return code ? error_sys_code(err, code, "connect the network of sandboxes with the host") : 0;
}

int gateway_connect(struct gateway *gateway, const char *alias, struct error *err)
{
    if (make_pair(gateway, alias, err) < 0)
        return -1;
    if (set_addresses(gateway, err) < 0 || gateway_load_host_rules(gateway, err) < 0 ||
        forwarding_open(gateway, err) < 0) {
        gateway_disconnect(gateway);
        return -1;
    }
    return 0;
}

/* The table of this name on the host; none is fine. */
static void remove_table(const char *name)
{
    automessages messages = {0};

    batch_begin(&messages);
    batch_message(&messages, NFT_MSG_DELTABLE, 0);
    message_put_text(&messages, NFTA_TABLE_NAME, name);
    (void)batch_send(NULL, &messages);
}

void gateway_disconnect(const struct gateway *gateway)
{
    char name[GATEWAY_LINK_TEXT];

    gateway_link_name(gateway, name);
    (void)wire_remove(-1, name); // and with it the end in the gateway
    remove_table(name);
    if (!forwarding_is_needed())
        forward_policy_close();
    forwarding_close();
}

struct wanted {
    const char *alias;
    unsigned numbers[16];
    unsigned count;
};

static void find_alias(const char *name, const char *alias, void *data)
{
    struct wanted *wanted = data;
    unsigned number = 0;

    if (strcmp(alias, wanted->alias) == 0 && sscanf(name, "burrow%u", &number) == 1 &&
        wanted->count < ARRAY_SIZE(wanted->numbers))
        wanted->numbers[wanted->count++] = number;
}

void gateway_disconnect_named(const char *alias)
{
    struct wanted wanted = {.alias = alias};

    (void)wire_list(-1, find_alias, &wanted);
    for (unsigned i = 0; i < wanted.count; i++) {
        const struct gateway one = {.ns_fd = -1, .number = wanted.numbers[i]};
        gateway_disconnect(&one);
    }
}
