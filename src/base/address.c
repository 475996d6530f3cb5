/* SPDX-License-Identifier: Apache-2.0 */
/* Classes of network addresses; see address.h. */
#include "base/address.h"

#include "base/auto.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define V4_BITS 96 // of a mapped address, before those of version 4

/* IANA's registries of special addresses (RFC 6890 and its updates). */
static const struct {
    const char *base;
    unsigned bits;
} special_v4[] = {
    {"0.0.0.0", 8},        // this network
    {"10.0.0.0", 8},       // private
    {"100.64.0.0", 10},    // shared, of providers; metadata in some clouds
    {"127.0.0.0", 8},      // loopback
    {"168.63.129.16", 32}, // metadata of a cloud
    {"169.254.0.0", 16},   // link-local; metadata
    {"172.16.0.0", 12},    // private
    {"192.0.0.0", 24},     // of protocols
    {"192.0.2.0", 24},     // documentation
    {"192.88.99.0", 24},   // relays of 6to4
    {"192.168.0.0", 16},   // private
    {"198.18.0.0", 15},    // benchmarks
    {"198.51.100.0", 24},  // documentation
    {"203.0.113.0", 24},   // documentation
    {"224.0.0.0", 4},      // multicast
    {"240.0.0.0", 4},      // reserved, broadcast
};

/* Of those in 2000::/3; whatever is outside of that is not public. */
static const struct {
    const char *base;
    unsigned bits;
} special_v6[] = {
    {"2001::", 23},     // of protocols: Teredo, ORCHID …
    {"2001:db8::", 32}, // documentation
    {"3fff::", 20},     // documentation
};

static bool has_prefix(const struct in6_addr *address, const struct in6_addr *base, unsigned bits)
{
    unsigned bytes = bits / 8, rest = bits % 8;

    if (memcmp(address->s6_addr, base->s6_addr, bytes) != 0)
        return false;
    return rest == 0 || ((address->s6_addr[bytes] ^ base->s6_addr[bytes]) >> (8 - rest)) == 0;
}

static struct in6_addr map_v4(const void *four)
{
    struct in6_addr mapped = {.s6_addr = {[10] = 0xff, [11] = 0xff}};

    memcpy(&mapped.s6_addr[12], four, 4);
    return mapped;
}

static bool is_in_text(const struct in6_addr *address, const char *text, unsigned bits)
{
    struct in6_addr base;

    return inet_pton(AF_INET6, text, &base) == 1 && has_prefix(address, &base, bits);
}

/* As one of version 6; one of version 4, also inside of another, is mapped. False: neither. */
static bool normalize(const struct sockaddr *address, struct in6_addr *out)
{
    if (address->sa_family == AF_INET) {
        *out = map_v4(&((const struct sockaddr_in *)(const void *)address)->sin_addr);
        return true;
    }
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *six = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    if (is_in_text(six, "64:ff9b::", 96)) // NAT64
        *out = map_v4(&six->s6_addr[12]);
    else if (is_in_text(six, "2002::", 16)) // 6to4
        *out = map_v4(&six->s6_addr[2]);
    else
        *out = *six;
    return true;
}

static bool is_special_v4(const struct in6_addr *mapped)
{
    for (size_t i = 0; i < ARRAY_SIZE(special_v4); i++) {
        struct in_addr base;
        if (inet_pton(AF_INET, special_v4[i].base, &base) != 1)
            return true;
        struct in6_addr as_mapped = map_v4(&base);
        if (has_prefix(mapped, &as_mapped, V4_BITS + special_v4[i].bits))
            return true;
    }
    return false;
}

bool address_is_public(const struct sockaddr *address)
{
    struct in6_addr plain;

    if (!normalize(address, &plain))
        return false;
    if (IN6_IS_ADDR_V4MAPPED(&plain))
        return !is_special_v4(&plain);
    if (!is_in_text(&plain, "2000::", 3))
        return false;
    for (size_t i = 0; i < ARRAY_SIZE(special_v6); i++) {
        if (is_in_text(&plain, special_v6[i].base, special_v6[i].bits))
            return false;
    }
    return true;
}

static bool read_bits(const char *text, unsigned most, unsigned *out)
{
    char *end;
    unsigned long bits = strtoul(text, &end, 10);

    if (end == text || *end || *text < '0' || *text > '9' || bits > most)
        return false;
    *out = (unsigned)bits;
    return true;
}

static bool read_one(char *text, struct network *out)
{
    char *slash = strchr(text, '/');
    struct in_addr four;

    if (slash)
        *slash++ = '\0';
    bool is_four = inet_pton(AF_INET, text, &four) == 1;
    unsigned most = is_four ? 32 : 128, bits = most;
    if ((!is_four && inet_pton(AF_INET6, text, &out->base) != 1) ||
        (slash && !read_bits(slash, most, &bits)))
        return false;
    if (is_four)
        out->base = map_v4(&four);
    out->bits = bits + (is_four ? V4_BITS : 0);
    return true;
}

int networks_read(const char *text, struct networks *out, struct error *err)
{
    struct networks found = {0};
    autofree char *copy = xstrdup(text ? text : "");
    char *rest = copy;

    for (char *word; (word = strsep(&rest, ", "));) {
        struct network network = {0};
        char shown[64];
        if (!*word)
            continue;
        (void)snprintf(shown, sizeof shown, "%s", word);
        if (!read_one(word, &network)) {
            networks_clear(&found);
            return error_set(err, ERROR_INVALID,
                             "'%s' is no network: name it as 10.0.0.0/8 or fd00::/8", shown);
        }
        found.items = xrealloc(found.items, found.count + 1, sizeof *found.items);
        found.items[found.count++] = network;
    }
    *out = found;
    return 0;
}

void networks_clear(struct networks *networks)
{
    free(networks->items);
    *networks = (struct networks){0};
}

bool networks_have(const struct networks *networks, const struct sockaddr *address)
{
    struct in6_addr plain;

    if (!normalize(address, &plain))
        return false;
    for (size_t i = 0; i < networks->count; i++) {
        if (has_prefix(&plain, &networks->items[i].base, networks->items[i].bits))
            return true;
    }
    return false;
}

// ---- addresses with ports ----

bool address_read(const char *text, unsigned port, struct sockaddr_in6 *out)
{
    char mapped[80];

    *out = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port)};
    if (inet_pton(AF_INET6, text, &out->sin6_addr) == 1)
        return true;
    (void)snprintf(mapped, sizeof mapped, "::ffff:%.40s", text);
    return strchr(text, '.') && inet_pton(AF_INET6, mapped, &out->sin6_addr) == 1;
}

static bool read_port(const char *text, unsigned *port)
{
    char *end = NULL;

    *port = (unsigned)strtoul(text, &end, 10);
    return strspn(text, "0123456789") == strlen(text) && strlen(text) <= 5 && *port > 0 &&
           *port < 65536;
}

/* Writes into the text. */
static bool read_with_port(char *text, unsigned port, struct sockaddr_in6 *out)
{
    char *colon = strrchr(text, ':');

    if (text[0] == '[') {
        char *end = strchr(text, ']');
        if (!end || (end[1] && (end[1] != ':' || !read_port(end + 2, &port))))
            return false;
        *end = '\0';
        text++;
    } else if (colon && strchr(text, ':') == colon) {
        *colon = '\0';
        if (!read_port(colon + 1, &port))
            return false;
    }
    return address_read(text, port, out);
}

int addresses_read(const char *text, unsigned port, struct sockaddr_in6 *out, size_t most,
                   size_t *count, struct error *err)
{
    autofree char *copy = xstrdup(text);
    char *rest = copy;

    *count = 0;
    for (char *word; (word = strsep(&rest, ", "));) {
        char whole[80];
        if (!*word)
            continue;
        (void)snprintf(whole, sizeof whole, "%.60s", word);
        if (*count == most)
            return error_set(err, ERROR_INVALID, "'%.200s' are more than %zu addresses", text,
                             most);
        if (!read_with_port(word, port, &out[*count]))
            return error_set(err, ERROR_INVALID,
                             "'%s' is no address; write such as 192.0.2.53, 192.0.2.53:5353 or "
                             "[2001:db8::53]:5353, with commas between several",
                             whole);
        ++*count;
    }
    return 0;
}
