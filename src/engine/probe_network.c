/* SPDX-License-Identifier: Apache-2.0 */
/* Probes of what sandboxes with network need; those without need none of it. */
#include "engine/probe_impl.h"

#include "base/fd.h"
#include "engine/gateway_impl.h"
#include "engine/gateway_wire.h"

#include <fcntl.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define NO_NETWORK "sandboxes with network cannot be had; those without are as good as ever"

static void try_rules(const struct probe *probe, const struct probe_context *context,
                      struct probe_result *result)
{
    struct gateway gateway = {.ns_fd = -1};
    struct error err = {0};

    if (unshare(CLONE_NEWNET) < 0)
        probe_say(result, PROBE_DEGRADED, NO_NETWORK, "see namespace-net", "no namespace: %s",
                  strerror(errno));
    else if (gateway_check_addresses(GATEWAY_ADDRESSES, &gateway.base, &gateway.bits, &err) < 0 ||
             gateway_load_rules(&gateway, &err) < 0)
        probe_say(
            result, PROBE_DEGRADED, NO_NETWORK,
            "load the modules nf_tables, nft_ct, nft_nat, nft_masq, nft_reject_ipv4, nft_limit, "
            "nft_connlimit, nft_log and nfnetlink_log",
            "%.300s", err.text);
    else
        probe_fine(result, "the rules of a gateway can be set");
}

void probe_nftables(const struct probe *probe, const struct probe_context *context,
                    struct probe_result *result)
{
    if (!probe_has_program("nft"))
        probe_say(result, PROBE_DEGRADED, NO_NETWORK, "install the package nftables",
                  "the program nft is not installed");
    else
        probe_in_child(try_rules, probe, context, result);
}

static void try_forwarding(const struct probe *probe, const struct probe_context *context,
                           struct probe_result *result)
{
    const struct wire_end here = {.name = "here", .ns_fd = -1};
    const struct wire_end there = {.name = "there", .ns_fd = -1};
    struct error err = {0};
    int code = 0;

    if (unshare(CLONE_NEWNET) < 0)
        probe_say(result, PROBE_DEGRADED, NO_NETWORK, "see namespace-net", "no namespace: %s",
                  strerror(errno));
    else if ((code = wire_make(-1, &here, &there)) != 0)
        probe_say(result, PROBE_DEGRADED, NO_NETWORK, "load the module veth",
                  "no pair of interfaces: %s", strerror(code));
    else if (fd_write_knob(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward", "1", &err) < 0)
        probe_say(result, PROBE_DEGRADED, NO_NETWORK,
                  "run burrow where /proc/sys can be written: in a container, with more rights",
                  "%.300s", err.text);
    else
        probe_fine(result, "interfaces and forwarding can be had");
}

void probe_forwarding(const struct probe *probe, const struct probe_context *context,
                      struct probe_result *result)
{
    probe_in_child(try_forwarding, probe, context, result);
}

void probe_forward_policy(const struct probe *probe, const struct probe_context *context,
                          struct probe_result *result)
{
    if (!forward_policy_drops())
        probe_fine(result, "no chain FORWARD of iptables drops what passes");
    else if (probe_has_program("nft"))
        probe_fine(result, "the chain FORWARD of iptables drops what passes, as Docker sets it; "
                           "burrow adds two rules for its own interfaces");
    else
        probe_say(result, PROBE_DEGRADED, NO_NETWORK, "install the package nftables",
                  "the chain FORWARD of iptables drops what passes, as Docker sets it");
}

/* A route of the host that is about our addresses, and not one of ours. */
static bool find_collision(uint32_t base, unsigned bits, char *text, size_t size)
{
    autofile routes = fopen("/proc/thread-self/net/route", "re");
    const uint32_t own_mask = ~(UINT32_MAX >> bits);
    char line[256];

    while (routes && fgets(line, sizeof line, routes)) {
        char name[IFNAMSIZ];
        char address[GATEWAY_ADDRESS_TEXT];
        unsigned to = 0;
        unsigned mask = 0;
        if (sscanf(line, "%15s %x %*x %*x %*d %*d %*d %x", name, &to, &mask) != 3 || mask == 0 ||
            strncmp(name, "burrow", 6) == 0)
            continue;
        to = __builtin_bswap32(to);
        mask = __builtin_bswap32(mask);
        if (((to ^ base) & mask & own_mask) != 0)
            continue;
        (void)snprintf(text, size, "%s/%d by %s", gateway_write_address(to, address),
                       __builtin_popcount(mask), name);
        return true;
    }
    return false;
}

void probe_addresses(const struct probe *probe, const struct probe_context *context,
                     struct probe_result *result)
{
    struct gateway wanted = {.ns_fd = -1};
    struct error err = {0};
    autoptr(gateway) gateway = NULL;
    char own[GATEWAY_ADDRESS_TEXT];
    char other[64];

    (void)gateway_check_addresses(GATEWAY_ADDRESSES, &wanted.base, &wanted.bits, &err);
    if (gateway_find(context->data_dir, &gateway, &err) == 0)
        wanted = (struct gateway){.ns_fd = -1, .base = gateway->base, .bits = gateway->bits};
    (void)gateway_write_address(wanted.base, own);
    if (find_collision(wanted.base, wanted.bits, other, sizeof other))
        probe_say(result, PROBE_DEGRADED,
                  "that network may be out of this machine's reach, in part",
                  "name other addresses with the setting network-addresses",
                  "%s/%u, for sandboxes, overlaps with the route to %s", own, wanted.bits, other);
    else
        probe_fine(result, "%s/%u is used by nobody else", own, wanted.bits);
}
