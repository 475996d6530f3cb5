/* SPDX-License-Identifier: Apache-2.0 */
/* Interfaces, addresses and routes of a gateway: the wires of boxes and the way to the host; see gateway.h. */
#include "engine/gateway_wire.h"

#include "engine/gateway_impl.h"

#include <endian.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#define INNER_INDEX 2 // of the box's end: the first behind its loopback
#define NAME_TRIES 16

/*
 * Both ends have the same address and ask for none: a frame for the other end is then one for itself, so there is nothing to resolve, nothing to
 * forge, and no entry of the machine's table of neighbours, which is small, for each box.
 */
static const uint8_t wire_address[] = {0x02, 'b', 'u', 'r', 'r', 'w'};

/* One end of a pair: what the message is about, or what VETH_INFO_PEER holds. */
static struct ifinfomsg end_of(uint32_t index, bool is_up)
{
    return (struct ifinfomsg){.ifi_family = AF_UNSPEC,
                              .ifi_index = (int)index,
                              .ifi_flags = IFF_NOARP | (is_up ? IFF_UP : 0),
                              .ifi_change = IFF_NOARP | IFF_UP};
}

/* The end that was put elsewhere: only once both are there can it be up. */
static int raise_end(const struct wire_end *end)
{
    const struct ifinfomsg header = {
        .ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
    automessages messages = {0};

    message_begin(&messages, RTM_NEWLINK, NLM_F_ACK, &header, sizeof header);
    message_put_text(&messages, IFLA_IFNAME, end->name);
    return netlink_ask(end->ns_fd, NETLINK_ROUTE, &messages, NULL, NULL);
}

static void put_end(struct messages *messages, const struct wire_end *end)
{
    message_put_text(messages, IFLA_IFNAME, end->name);
    message_put(messages, IFLA_ADDRESS, wire_address, sizeof wire_address);
    if (end->ns_fd >= 0)
        message_put_u32(messages, IFLA_NET_NS_FD, (uint32_t)end->ns_fd);
}

/* Which cannot be said when it is made. */
static int set_alias(int ns_fd, const struct wire_end *end)
{
    const struct ifinfomsg header = {.ifi_family = AF_UNSPEC};
    automessages messages = {0};

    if (!end->alias)
        return 0;
    message_begin(&messages, RTM_NEWLINK, NLM_F_ACK, &header, sizeof header);
    message_put_text(&messages, IFLA_IFNAME, end->name);
    message_put(&messages, IFLA_IFALIAS, end->alias, strlen(end->alias));
    return netlink_ask(ns_fd, NETLINK_ROUTE, &messages, NULL, NULL);
}

int wire_make(int ns_fd, const struct wire_end *here, const struct wire_end *there)
{
    automessages messages = {0};
    struct ifinfomsg own = end_of(here->index, true);
    struct ifinfomsg other = end_of(there->index, false);

    message_begin(&messages, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK, &own, sizeof own);
    put_end(&messages, here);
    size_t info = message_open(&messages, IFLA_LINKINFO);
    message_put(&messages, IFLA_INFO_KIND, "veth", 4);
    size_t data = message_open(&messages, IFLA_INFO_DATA);
    size_t peer = messages.length;
    message_put(&messages, VETH_INFO_PEER | NLA_F_NESTED, &other, sizeof other);
    put_end(&messages, there);
    message_close(&messages, peer);
    message_close(&messages, data);
    message_close(&messages, info);
    int code = netlink_ask(ns_fd, NETLINK_ROUTE, &messages, NULL, NULL);
    if (code == 0)
        code = set_alias(ns_fd, here);
    return code ? code : raise_end(there);
}

void message_add_address(struct messages *messages, uint32_t index, uint32_t address, unsigned bits)
{
    struct ifaddrmsg header = {.ifa_family = AF_INET,
                               .ifa_prefixlen = (uint8_t)bits,
                               .ifa_scope = RT_SCOPE_UNIVERSE,
                               .ifa_index = index};

    message_begin(messages, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, &header,
                  sizeof header);
    message_put_be32(messages, IFA_LOCAL, address);
    message_put_be32(messages, IFA_ADDRESS, address);
}

void message_add_route(struct messages *messages, uint32_t index, uint32_t to, unsigned bits,
                       uint32_t via)
{
    struct rtmsg header = {.rtm_family = AF_INET,
                           .rtm_dst_len = (uint8_t)bits,
                           .rtm_table = RT_TABLE_MAIN,
                           .rtm_protocol = RTPROT_STATIC,
                           .rtm_scope = via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
                           .rtm_type = RTN_UNICAST,
                           .rtm_flags = via ? RTNH_F_ONLINK : 0};

    message_begin(messages, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE | NLM_F_ACK, &header,
                  sizeof header);
    if (bits > 0)
        message_put_be32(messages, RTA_DST, to);
    if (via)
        message_put_be32(messages, RTA_GATEWAY, via);
    message_put_u32(messages, RTA_OIF, index);
}

int gateway_wire(struct gateway *gateway, int network_fd, uint32_t *index, struct error *err)
{
    char name[GATEWAY_LINK_TEXT];
    int code = EEXIST;

    // A number of ours instead of the kernel's next one: then nobody has to ask which it was.
    for (unsigned tries = 0; (code == EEXIST || code == EBUSY) && tries < NAME_TRIES; tries++) {
        uint32_t number = 0;
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            return error_sys(err, "get random bytes");
        number = (number & 0x3fffffff) | 0x40000000;
        (void)snprintf(name, sizeof name, "b%08x", number);
        const struct wire_end here = {.name = name, .index = number, .ns_fd = -1};
        const struct wire_end there = {.name = "eth0", .index = INNER_INDEX, .ns_fd = network_fd};
        code = wire_make(gateway->ns_fd, &here, &there);
        *index = number;
    }
    return code ? error_sys_code(err, code, "make an interface for a sandbox") : 0;
}

int gateway_claim(struct gateway *gateway, int network_fd, uint32_t index, unsigned slot,
                  struct error *err)
{
    uint32_t address = gateway_box_address(gateway, slot);
    automessages inside = {0};
    automessages outside = {0};

    message_add_address(&inside, INNER_INDEX, address, 32);
    message_add_route(&inside, INNER_INDEX, 0, 0, gateway_address(gateway));
    int code = netlink_ask(network_fd, NETLINK_ROUTE, &inside, NULL, NULL);
    // A box before in this slot may still be on its way out of the kernel: its route becomes this one's.
    message_add_route(&outside, index, address, 32, 0);
    if (code == 0)
        code = netlink_ask(gateway->ns_fd, NETLINK_ROUTE, &outside, NULL, NULL);
    return code ? error_sys_code(err, code, "give a sandbox its address") : 0;
}

static void count_link(const struct nlmsghdr *message, void *data)
{
    unsigned *count = data;
    *count += message->nlmsg_type == RTM_NEWLINK;
}

struct lister {
    void (*fn)(const char *name, const char *alias, void *data);
    void *data;
};

static void list_link(const struct nlmsghdr *message, void *data)
{
    const struct lister *lister = data;
    const size_t header = NLMSG_LENGTH(sizeof(struct ifinfomsg));
    struct attribute parts[IFLA_IFALIAS + 1];
    char name[IFNAMSIZ];
    char alias[128];

    if (message->nlmsg_type != RTM_NEWLINK || message->nlmsg_len < header)
        return;
    attributes_find((const char *)message + header, message->nlmsg_len - header, parts,
                    IFLA_IFALIAS + 1);
    if (!parts[IFLA_IFNAME].data || !parts[IFLA_IFALIAS].data)
        return;
    (void)snprintf(name, sizeof name, "%.*s", (int)parts[IFLA_IFNAME].length,
                   (const char *)parts[IFLA_IFNAME].data);
    (void)snprintf(alias, sizeof alias, "%.*s", (int)parts[IFLA_IFALIAS].length,
                   (const char *)parts[IFLA_IFALIAS].data);
    lister->fn(name, alias, lister->data);
}

int wire_list(int ns_fd, void (*fn)(const char *name, const char *alias, void *data), void *data)
{
    struct lister lister = {fn, data};
    automessages messages = {0};
    struct ifinfomsg header = {.ifi_family = AF_UNSPEC};

    message_begin(&messages, RTM_GETLINK, NLM_F_DUMP, &header, sizeof header);
    return netlink_ask(ns_fd, NETLINK_ROUTE, &messages, list_link, &lister);
}

int wire_count(int ns_fd, unsigned *count)
{
    automessages messages = {0};
    struct ifinfomsg header = {.ifi_family = AF_UNSPEC};

    *count = 0;
    message_begin(&messages, RTM_GETLINK, NLM_F_DUMP, &header, sizeof header);
    return netlink_ask(ns_fd, NETLINK_ROUTE, &messages, count_link, count);
}

static void read_index(const struct nlmsghdr *message, void *data)
{
    struct ifinfomsg header;

    if (message->nlmsg_type == RTM_NEWLINK && message->nlmsg_len >= NLMSG_LENGTH(sizeof header)) {
        memcpy(&header, NLMSG_DATA(message), sizeof header);
        *(uint32_t *)data = (uint32_t)header.ifi_index;
    }
}

int wire_index(int ns_fd, const char *name, uint32_t *index)
{
    automessages messages = {0};
    struct ifinfomsg header = {.ifi_family = AF_UNSPEC};

    message_begin(&messages, RTM_GETLINK, NLM_F_ACK, &header, sizeof header);
    message_put_text(&messages, IFLA_IFNAME, name);
    return netlink_ask(ns_fd, NETLINK_ROUTE, &messages, read_index, index);
}

int wire_remove(int ns_fd, const char *name)
{
    automessages messages = {0};
    struct ifinfomsg header = {.ifi_family = AF_UNSPEC};

    message_begin(&messages, RTM_DELLINK, NLM_F_ACK, &header, sizeof header);
    message_put_text(&messages, IFLA_IFNAME, name);
    return netlink_ask(ns_fd, NETLINK_ROUTE, &messages, NULL, NULL);
}

#define BURST_LEAST 65536 // a packet as large as the kernel makes them fits

static void put_tbf(struct messages *messages, uint64_t rate)
{
    uint64_t burst = rate / 20 > BURST_LEAST ? rate / 20 : BURST_LEAST;
    struct tc_tbf_qopt options = {
        .limit = (uint32_t)(burst > INT32_MAX / 4 ? INT32_MAX / 4 : burst) * 2};

    options.rate.linklayer = TC_LINKLAYER_ETHERNET;
    options.rate.rate = rate > UINT32_MAX ? UINT32_MAX : (uint32_t)rate;
    message_put_text(messages, TCA_KIND, "tbf");
    size_t outer = message_open(messages, TCA_OPTIONS);
    message_put(messages, TCA_TBF_PARMS, &options, sizeof options);
    message_put(messages, TCA_TBF_RATE64, &rate, sizeof rate);
    message_put_u32(messages, TCA_TBF_BURST, (uint32_t)(burst > INT32_MAX ? INT32_MAX : burst));
    message_close(messages, outer);
}

int gateway_limit(int network_fd, uint64_t bytes_per_second, struct error *err)
{
    const struct tcmsg header = {
        .tcm_family = AF_UNSPEC, .tcm_ifindex = INNER_INDEX, .tcm_parent = TC_H_ROOT};
    automessages messages = {0};

    message_begin(&messages, bytes_per_second ? RTM_NEWQDISC : RTM_DELQDISC,
                  NLM_F_ACK | (bytes_per_second ? NLM_F_CREATE | NLM_F_REPLACE : 0), &header,
                  sizeof header);
    if (bytes_per_second)
        put_tbf(&messages, bytes_per_second);
    int code = netlink_ask(network_fd, NETLINK_ROUTE, &messages, NULL, NULL);
    if (!bytes_per_second && (code == ENOENT || code == EINVAL))
        return 0; // there was none
    if (code == ENOENT || code == EOPNOTSUPP)
        return error_set(err, ERROR_UNAVAILABLE,
                         "a rate of the network needs sch_tbf, which this kernel has not: load "
                         "the module sch_tbf, or ask for no rate");
    return code ? error_sys_code(err, code, "limit the rate of a sandbox's network") : 0;
}
