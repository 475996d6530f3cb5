/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses to listen on, as settings have them; see config.h. */
#include "serve/config.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOCALHOST "localhost"

bool config_split_address(const char *address, char host[CONFIG_ADDRESS], const char **port)
{
    const char *colon = strrchr(address, ':');
    size_t length = colon ? (size_t)(colon - address) : 0;

    if (!colon || length >= CONFIG_ADDRESS || !colon[1] ||
        colon[1 + strspn(colon + 1, "0123456789")])
        return false;
    bool has_brackets = length >= 2 && address[0] == '[' && address[length - 1] == ']';
    (void)snprintf(host, CONFIG_ADDRESS, "%.*s", (int)(length - 2 * has_brackets),
                   address + has_brackets);
    *port = colon + 1;
    unsigned char ignored[16];
    return !*host || inet_pton(has_brackets ? AF_INET6 : AF_INET, host, ignored) == 1;
}

bool config_find_address(const char *at, size_t index, char out[CONFIG_ADDRESS])
{
    for (;; at += strcspn(at, ",")) {
        at += strspn(at, ", ");
        if (!*at)
            return false;
        if (index-- == 0)
            break;
    }
    // A name that every machine has; others would need a resolver, and may have several addresses.
    const char *host = "";
    if (strncmp(at, LOCALHOST ":", sizeof LOCALHOST) == 0) {
        host = "127.0.0.1";
        at += sizeof LOCALHOST - 1;
    }
    (void)snprintf(out, CONFIG_ADDRESS, "%s%.*s", host, (int)strcspn(at, ", "), at);
    return true;
}

bool config_address(const struct config *config, size_t index, char out[CONFIG_ADDRESS])
{
    return config_find_address(config->listen, index, out);
}

bool config_ssh_address(const struct config *config, size_t index, char out[CONFIG_ADDRESS])
{
    return config->ssh_listen && config_find_address(config->ssh_listen, index, out);
}

bool config_is_loopback(const char *address)
{
    char host[CONFIG_ADDRESS];
    struct in6_addr six;
    const char *port;

    if (!config_split_address(address, host, &port))
        return false;
    return strncmp(host, "127.", 4) == 0 ||
           (inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six));
}
