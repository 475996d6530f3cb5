/* SPDX-License-Identifier: Apache-2.0 */
/* The constant rules of a gateway, and those of the host for it; what changes with boxes is elements (gateway_box.c). */
#include "engine/gateway_impl.h"

#include "base/buffer.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

/*
 * Closed to boxes whatever their rules say, unless the operator opens them: what is not of the public Internet
 * (base/address.c, which policies ask).
 */
#define CLOSED                                                                                     \
    "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 168.63.129.16/32, 169.254.0.0/16, "        \
    "172.16.0.0/12, 192.0.0.0/24, 192.0.2.0/24, 192.88.99.0/24, 192.168.0.0/16, 198.18.0.0/15, "   \
    "198.51.100.0/24, 203.0.113.0/24, 224.0.0.0/3"

/*
 * @1 all addresses of ours, @2 the gateway's own.
 * A packet of a box: pre (turned to our resolver, first reader or the host's services?) → forward → judge → its class. 'bytes' and
 * 'refused' count by matching; 'bytes' has exactly the boxes that were admitted. Pins are found by the box's tag. A connection that was let
 * through has the box's mark; with another one all are judged again, by what the box sends next. What comes back by TCP passes until then, so that who waits for it answers, and is told.
 */
static const char script[] =
    "table ip " GATEWAY_TABLE " {\n"
    " map class { type ipv4_addr : mark; }\n" // enum class of gateway_box.c
    " map own { type ipv4_addr : verdict; }\n"
    " map tags { type ipv4_addr : mark; }\n"
    " map marks { type ipv4_addr : mark; }\n"
    " set current { typeof ip saddr . ct mark; }\n"
    " set bytes { type ipv4_addr; counter; }\n"
    " set refused { type ipv4_addr; counter; }\n"
    " set judged { type ipv4_addr; }\n"
    " set named { type ipv4_addr; }\n"
    " set closed { type ipv4_addr; flags interval; auto-merge; elements = { " CLOSED " }; }\n"
    " set pins { typeof ip saddr . meta mark . ip daddr . meta l4proto . th dport; flags timeout;"
    "  size 4194304; }\n"
    " set whole { typeof ip saddr . meta mark . ip daddr . meta l4proto; flags timeout;"
    "  size 4194304; }\n"
    " set told { type ipv4_addr; size 32768; flags dynamic,timeout; timeout 1m; }\n"
    " set flows { type ipv4_addr; size 32768; flags dynamic; }\n"
    " chain pass {\n"
    "  ct mark set ip saddr map @marks\n"
    "  ip saddr @bytes accept\n"
    "  accept\n"
    " }\n"
    " chain refuse {\n"
    "  ip saddr @refused\n"
    "  update @told { ip saddr limit rate 20/second burst 40 packets } log group 1 snaplen 96\n"
    "  meta l4proto tcp reject with tcp reset\n"
    "  reject with icmp type admin-prohibited\n"
    " }\n"
    " chain open {\n"
    "  ip daddr @closed goto refuse\n"
    "  goto pass\n"
    " }\n"
    " chain note {\n"
    "  ip daddr @closed goto refuse\n"
    "  update @told { ip saddr limit rate 20/second burst 40 packets } log group 2 snaplen 96\n"
    "  goto pass\n"
    " }\n"
    " chain names {\n"
    "  udp dport 443 return\n"
    "  meta mark set ip saddr map @tags\n"
    "  ip saddr . meta mark . ip daddr . meta l4proto . th dport @pins goto pass\n"
    "  meta l4proto { tcp, udp } th dport { 137, 853, 5353, 5355 } return\n"
    "  ip saddr . meta mark . ip daddr . meta l4proto @whole goto pass\n"
    " }\n"
    " chain named {\n"
    "  jump names\n"
    "  goto refuse\n"
    " }\n"
    " chain judge {\n"
    "  ct state established,related ip saddr . ct mark @current ip saddr @bytes accept\n"
    "  ct state invalid drop\n"
    "  ct state new add @flows { ip saddr ct count over 8192 } goto refuse\n"
    "  meta mark set 0\n"
    "  meta mark set ip saddr map @class\n"
    "  meta mark vmap { 1 : goto open, 2 : goto named }\n"
    "  ip saddr vmap @own\n"
    "  goto refuse\n"
    " }\n"
    " chain forward {\n"
    "  type filter hook forward priority filter; policy drop;\n"
    "  iifname \"" GATEWAY_UPLINK "\" ct state established meta l4proto tcp accept\n"
    "  iifname \"" GATEWAY_UPLINK "\" ct state established,related"
    "  ip daddr . ct mark @current accept\n"
    "  iifname \"" GATEWAY_UPLINK "\" drop\n"
    "  oifname != \"" GATEWAY_UPLINK "\" goto refuse\n"
    "  ip daddr @1 goto refuse\n"
    "  goto judge\n"
    " }\n"
    " chain input {\n"
    "  type filter hook input priority filter; policy drop;\n"
    "  iifname \"lo\" accept\n"
    "  iifname \"" GATEWAY_UPLINK "\" ct state established,related accept\n"
    "  iifname \"" GATEWAY_UPLINK "\" drop\n"
    "  ip daddr != @2 goto refuse\n"
    "  ct state new ct mark set ip saddr map @marks\n"
    "  udp dport 53 ip saddr @bytes accept\n"
    "  tcp dport 53 ip saddr @bytes accept\n"
    "  ct status dnat tcp dport { 1080, 1081 } ip saddr @bytes accept\n"
    "  goto refuse\n"
    " }\n"
    " chain output {\n"
    "  type filter hook output priority filter; policy accept;\n"
    "  oifname \"" GATEWAY_UPLINK "\" ip daddr @1 reject with icmp type admin-prohibited\n"
    " }\n"
    " chain pre {\n"
    "  type nat hook prerouting priority dstnat; policy accept;\n"
    "  iifname \"" GATEWAY_UPLINK "\" accept\n"
    "  ip daddr @2 meta l4proto { tcp, udp } th dport 53 accept\n"
    "  ip daddr @2 meta l4proto tcp dnat to @2:1081\n"
    "  ip saddr @judged udp dport 53 dnat to @2:53\n"
    "  ip saddr @judged tcp dport 53 dnat to @2:53\n"
    "  ip saddr @named tcp dport { 80, 443 } dnat to @2:1080\n"
    " }\n"
    " chain post {\n"
    "  type nat hook postrouting priority srcnat; policy accept;\n"
    "  oifname \"" GATEWAY_UPLINK "\" masquerade\n"
    " }\n"
    "}\n";

/* Puts texts in for '@1' … '@9'. */
static int fill_in(const char *text, const char *const *values, struct buffer *out,
                   struct error *err)
{
    while (*text) {
        size_t plain = strcspn(text, "@");
        if (text[plain] == '@' && (text[plain + 1] < '1' || text[plain + 1] > '9'))
            plain++; // the name of a set
        if (buffer_add(out, text, plain, err) < 0)
            return -1;
        text += plain;
        if (*text != '@' || text[1] < '1' || text[1] > '9')
            continue;
        const char *value = values[text[1] - '1'];
        if (buffer_add(out, value, strlen(value), err) < 0)
            return -1;
        text += 2;
    }
    return buffer_add(out, "", 1, err);
}

int gateway_load_rules(struct gateway *gateway, struct error *err)
{
    char address[GATEWAY_ADDRESS_TEXT];
    char own[GATEWAY_ADDRESS_TEXT];
    char all[GATEWAY_ADDRESS_TEXT + 8];
    const char *const values[] = {all, own};
    autobuffer text = {.maximum = 65536};

    (void)snprintf(all, sizeof all, "%s/%u", gateway_write_address(gateway->base, address),
                   gateway->bits);
    (void)gateway_write_address(gateway_address(gateway), own);
    if (fill_in(script, values, &text, err) < 0)
        return -1;
    return nft_run(gateway->ns_fd, text.data, err);
}

/* @1 the interface, @2 the address behind it, @3 a rule for the host's own interface, or empty. */
static const char host_script[] = "table ip @1\n" // one that was left by another is not added to
                                  "delete table ip @1\n"
                                  "table ip @1 {\n"
                                  " chain out {\n"
                                  "  ip saddr != @2 drop\n"
                                  "  oifname \"burrow*\" drop\n"
                                  "  @3\n"
                                  "  accept\n"
                                  " }\n"
                                  " chain forward {\n"
                                  "  type filter hook forward priority filter; policy accept;\n"
                                  "  iifname \"@1\" goto out\n"
                                  "  oifname \"@1\" ct state established,related accept\n"
                                  "  oifname \"@1\" drop\n"
                                  " }\n"
                                  " chain input {\n"
                                  "  type filter hook input priority filter; policy accept;\n"
                                  "  iifname \"@1\" meta l4proto tcp reject with tcp reset\n"
                                  "  iifname \"@1\" reject with icmp type admin-prohibited\n"
                                  " }\n"
                                  " chain post {\n"
                                  "  type nat hook postrouting priority srcnat; policy accept;\n"
                                  "  ip saddr @2 masquerade\n"
                                  " }\n"
                                  "}\n";

int gateway_load_host_rules(const struct gateway *gateway, struct error *err)
{
    char name[GATEWAY_LINK_TEXT];
    char address[GATEWAY_ADDRESS_TEXT];
    char only[64] = "";
    const char *const values[] = {name, address, only};
    autobuffer text = {.maximum = 65536};

    gateway_link_name(gateway, name);
    (void)gateway_write_address(gateway_own_end(gateway), address);
    if (*gateway->uplink)
        (void)snprintf(only, sizeof only, "oifname != \"%s\" reject with icmp type net-unreachable",
                       gateway->uplink);
    if (fill_in(host_script, values, &text, err) < 0)
        return -1;
    return nft_run(-1, text.data, err);
}
