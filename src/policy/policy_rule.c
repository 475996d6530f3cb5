/* SPDX-License-Identifier: Apache-2.0 */
/* Rules as text: "*.example.com:443/tcp"; see policy.h. */
#include "base/auto.h"
#include "policy/policy_name.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name;
    enum policy_protocol protocol;
} protocols[] = {{"tcp", POLICY_TCP}, {"udp", POLICY_UDP}, {"icmp", POLICY_ICMP}};

const char *policy_protocol_name(enum policy_protocol protocol)
{
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (protocols[i].protocol == protocol)
            return protocols[i].name;
    }
    return "any";
}

/* Cuts "/tcp" off; what stands behind the last slash of a network is a number. */
static int take_protocol(char *text, struct policy_rule *rule, struct error *err)
{
    char *slash = strrchr(text, '/');

    rule->protocols = POLICY_ALL_PROTOCOLS;
    if (!slash || isdigit((unsigned char)slash[1]))
        return 0;
    for (size_t i = 0; i < ARRAY_SIZE(protocols); i++) {
        if (strcasecmp(slash + 1, protocols[i].name) == 0) {
            rule->protocols = protocols[i].protocol;
            *slash = '\0';
            return 0;
        }
    }
    return error_set(err, ERROR_INVALID, "there is no protocol '%.32s'; use tcp, udp or icmp",
                     slash + 1);
}

/* A port, with only digits in it; 0: none. */
static unsigned read_port(const char *text, size_t length)
{
    unsigned port = 0;

    if (length == 0 || length > 5)
        return 0;
    for (size_t i = 0; i < length; i++) {
        if (!isdigit((unsigned char)text[i]))
            return 0;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535 ? port : 0;
}

static int take_ports(char *text, struct policy_rule *rule, struct error *err)
{
    char *colon = strrchr(text, ':');

    rule->first_port = rule->last_port = 0;
    if (!colon || strcmp(text, "::1") == 0)
        return 0;
    if (strchr(text, ':') != colon)
        return error_set(err, ERROR_INVALID,
                         "'%.64s' looks like an address of IPv6, which sandboxes do not have; give "
                         "one of IPv4 or a name",
                         text);
    const char *dash = strchr(colon + 1, '-');
    size_t length = dash ? (size_t)(dash - colon - 1) : strlen(colon + 1);
    unsigned first = read_port(colon + 1, length);
    unsigned last = dash ? read_port(dash + 1, strlen(dash + 1)) : first;
    if (!first || !last || first > last)
        return error_set(err, ERROR_INVALID,
                         "'%.32s' is no port; give 1 to 65535, or a range like 8000-8010",
                         colon + 1);
    if (rule->protocols == POLICY_ICMP)
        return error_set(err, ERROR_INVALID, "icmp has no ports; leave ':%.16s' out", colon + 1);
    rule->first_port = (uint16_t)first;
    rule->last_port = (uint16_t)last;
    rule->protocols &= ~(unsigned)POLICY_ICMP;
    *colon = '\0';
    return 0;
}

/* Four decimal numbers without zeros in front, and nothing else: every other spelling is read differently somewhere. */
static bool read_address(const char *text, size_t length, uint32_t *out)
{
    uint32_t address = 0;
    unsigned parts = 0;

    for (size_t i = 0; i < length; parts++) {
        unsigned value = 0;
        size_t digits = 0;
        for (; i < length && isdigit((unsigned char)text[i]); i++, digits++)
            value = value * 10 + (unsigned)(text[i] - '0');
        bool has_zero_in_front = digits > 1 && text[i - digits] == '0';
        if (digits == 0 || digits > 3 || value > 255 || has_zero_in_front || parts == 4)
            return false;
        address = (address << 8) | value;
        if (i < length && text[i++] != '.')
            return false;
        if (i == length && parts < 3)
            return false;
    }
    *out = address;
    return parts == 4 && text[length - 1] != '.';
}

static int read_network(const char *text, struct policy_rule *rule, struct error *err)
{
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);

    rule->target = POLICY_NETWORK;
    rule->bits = 32;
    if (!read_address(text, length, &rule->address))
        return error_set(
            err, ERROR_INVALID,
            "'%.64s' is no address or network; write it like 192.0.2.7 or 192.0.2.0/24", text);
    if (slash) {
        size_t digits = strspn(slash + 1, "0123456789");
        rule->bits = (unsigned)strtoul(slash + 1, NULL, 10);
        if (digits == 0 || digits > 2 || slash[1 + digits] || rule->bits > 32)
            return error_set(err, ERROR_INVALID, "'%.64s': the length of a network is 0 to 32",
                             text);
    }
    uint32_t mask = rule->bits ? ~0U << (32 - rule->bits) : 0;
    uint32_t base = rule->address & mask;
    if (base != rule->address)
        return error_set(err, ERROR_INVALID,
                         "'%.64s' is in the middle of a network; write %u.%u.%u.%u/%u", text,
                         base >> 24, base >> 16 & 255, base >> 8 & 255, base & 255, rule->bits);
    if (rule->bits == 32 && rule->address == 0x7f000001)
        rule->target = POLICY_HOST;
    if (rule->bits == 0)
        rule->target = POLICY_ANY;
    return 0;
}

static int read_name(const char *text, struct policy_rule *rule, struct error *err)
{
    const char *name = text;

    rule->target = POLICY_NAME;
    if (strncmp(text, "*.", 2) == 0) {
        rule->target = POLICY_WILDCARD;
        name += 2;
    }
    if (strchr(name, '*'))
        return error_set(err, ERROR_INVALID,
                         "'%.64s': a star stands for everything below a name, as in *.example.com, "
                         "and nowhere else",
                         text);
    if (!policy_name_to_ascii(name, strlen(name), rule->name))
        return error_set(err, ERROR_INVALID,
                         "'%.64s' is no name, address or network; write it like example.com, "
                         "*.example.com, 192.0.2.0/24 or host:8080",
                         text);
    if (rule->target == POLICY_NAME && policy_is_host(rule->name))
        rule->target = POLICY_HOST;
    return 0;
}

static bool is_numeric(const char *text)
{
    return text[strspn(text, "0123456789./")] == '\0';
}

int policy_parse_rule(const char *text, struct policy_rule *out, struct error *err)
{
    char copy[POLICY_RULE_TEXT];
    struct policy_rule rule = {.tier = out->tier, .is_allow = out->is_allow};

    if (!*text || strlen(text) >= sizeof copy)
        return error_set(err, ERROR_INVALID, "a rule has 1 to %d characters", POLICY_RULE_TEXT - 1);
    if (strstr(text, "://"))
        return error_set(err, ERROR_INVALID,
                         "'%.64s' is a URL; give the name in it, and a port: example.com:443",
                         text);
    (void)snprintf(copy, sizeof copy, "%s", text);
    if (take_protocol(copy, &rule, err) < 0 || take_ports(copy, &rule, err) < 0)
        return -1;
    if (strcmp(copy, "*") == 0)
        rule.target = POLICY_ANY;
    else if (strcmp(copy, "::1") == 0)
        rule.target = POLICY_HOST;
    else if (is_numeric(copy) ? read_network(copy, &rule, err) < 0
                              : read_name(copy, &rule, err) < 0)
        return -1;
    bool is_name = rule.target == POLICY_NAME || rule.target == POLICY_WILDCARD;
    if (is_name && rule.last_port - rule.first_port >= POLICY_MAX_NAME_PORTS)
        return error_set(err, ERROR_INVALID,
                         "'%.64s': a rule for a name has a range of at most %d ports; leave the "
                         "ports out, or give a network",
                         text, POLICY_MAX_NAME_PORTS);
    if (rule.target == POLICY_HOST) {
        rule.name[0] = '\0';
        if (!(rule.protocols & POLICY_TCP))
            return error_set(err, ERROR_INVALID,
                             "'%.64s': services of the host are reached over tcp alone", text);
        rule.protocols = POLICY_TCP;
    }
    *out = rule;
    return 0;
}

static void write_target(const struct policy_rule *rule, char *out, size_t size)
{
    uint32_t a = rule->address;
    char bits[8] = "";

    switch (rule->target) {
    case POLICY_NAME:
        (void)snprintf(out, size, "%s", rule->name);
        return;
    case POLICY_WILDCARD:
        (void)snprintf(out, size, "*.%s", rule->name);
        return;
    case POLICY_HOST:
        (void)snprintf(out, size, "host");
        return;
    case POLICY_ANY:
        (void)snprintf(out, size, "*");
        return;
    case POLICY_NETWORK:
        if (rule->bits < 32)
            (void)snprintf(bits, sizeof bits, "/%u", rule->bits);
        (void)snprintf(out, size, "%u.%u.%u.%u%s", a >> 24, a >> 16 & 255, a >> 8 & 255, a & 255,
                       bits);
        return;
    }
}

const char *policy_rule_text(const struct policy_rule *rule, char out[POLICY_RULE_TEXT])
{
    char target[POLICY_NAME_LENGTH + 8] = "", ports[16] = "";
    const char *protocol = "";

    write_target(rule, target, sizeof target);
    if (rule->first_port && rule->first_port == rule->last_port)
        (void)snprintf(ports, sizeof ports, ":%u", rule->first_port);
    else if (rule->first_port)
        (void)snprintf(ports, sizeof ports, ":%u-%u", rule->first_port, rule->last_port);
    if (rule->target != POLICY_HOST && __builtin_popcount(rule->protocols) == 1)
        protocol = policy_protocol_name((enum policy_protocol)rule->protocols);
    (void)snprintf(out, POLICY_RULE_TEXT, "%s%s%s%s", target, ports, *protocol ? "/" : "",
                   protocol);
    return out;
}
