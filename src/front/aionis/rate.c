/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls how often; see rate.h. */
#include "front/aionis/rate.h"

#include "base/mem.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *rate_client_format(const struct in6_addr *address, char text[RATE_CLIENT])
{
    bool is_four = IN6_IS_ADDR_V4MAPPED(address);
    const char *done =
        inet_ntop(is_four ? AF_INET : AF_INET6,
                  is_four ? &address->s6_addr[12] : &address->s6_addr[0], text, RATE_CLIENT);
    return done ? done : "";
}

bool rate_client_parse(const char *text, struct in6_addr *out)
{
    struct in_addr four;

    if (inet_pton(AF_INET6, text, out) == 1)
        return true;
    if (inet_pton(AF_INET, text, &four) != 1)
        return false;
    *out = (struct in6_addr){.s6_addr = {[10] = 0xff, [11] = 0xff}};
    memcpy(&out->s6_addr[12], &four, sizeof four);
    return true;
}

bool rate_is_loopback(const struct in6_addr *address)
{
    return IN6_IS_ADDR_LOOPBACK(address) ||
           (IN6_IS_ADDR_V4MAPPED(address) && address->s6_addr[12] == 127);
}

struct network {
    struct in6_addr address;
    unsigned bits;
};

struct proxies {
    size_t count;
    struct network *networks;
};

static bool read_network(const char *text, struct network *out)
{
    char address[RATE_CLIENT];
    const char *slash = strchr(text, '/');
    size_t length = slash ? (size_t)(slash - text) : strlen(text);

    if (length >= sizeof address)
        return false;
    (void)snprintf(address, sizeof address, "%.*s", (int)length, text);
    if (!rate_client_parse(address, &out->address))
        return false;
    bool is_four = !strchr(address, ':');
    unsigned most = is_four ? 32 : 128;
    if (slash && (!slash[1] || slash[1 + strspn(slash + 1, "0123456789")] || strlen(slash + 1) > 3))
        return false;
    unsigned bits = slash ? (unsigned)atoi(slash + 1) : most;
    out->bits = bits + (is_four ? 96 : 0);
    return bits <= most;
}

int proxies_read(const char *text, struct proxies **out, struct error *err)
{
    struct proxies *proxies = xnew(struct proxies);

    for (const char *at = text; *at; at += strcspn(at, ",")) {
        char one[RATE_CLIENT];
        at += strspn(at, ", \t");
        size_t length = strcspn(at, ", \t");
        if (length == 0)
            continue;
        (void)snprintf(one, sizeof one, "%.*s", (int)length, at);
        proxies->networks =
            xrealloc(proxies->networks, proxies->count + 1, sizeof *proxies->networks);
        if (length >= sizeof one || !read_network(one, &proxies->networks[proxies->count])) {
            proxies_free(proxies);
            return error_set(err, ERROR_INVALID,
                             "'%.60s' is no network: write 10.0.0.0/8 or fd00::/8", one);
        }
        proxies->count++;
    }
    *out = proxies;
    return 0;
}

void proxies_free(struct proxies *proxies)
{
    if (!proxies)
        return;
    free(proxies->networks);
    free(proxies);
}

static bool is_within(const struct network *network, const struct in6_addr *address)
{
    unsigned whole = network->bits / 8, rest = network->bits % 8;

    if (memcmp(&network->address, address, whole) != 0)
        return false;
    return rest == 0 ||
           (network->address.s6_addr[whole] ^ address->s6_addr[whole]) >> (8 - rest) == 0;
}

bool proxies_contain(const struct proxies *proxies, const struct in6_addr *address)
{
    for (size_t i = 0; proxies && i < proxies->count; i++) {
        if (is_within(&proxies->networks[i], address))
            return true;
    }
    return false;
}
