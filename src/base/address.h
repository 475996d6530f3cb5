/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which network addresses are of the public Internet, and lists of networks that an operator names ("10.0.0.0/8, fd00::/8").
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * False for what is not reached over the public Internet or must not be, loopback, private, link-local (with the metadata services of clouds), shared,
 * multicast, reserved and documentation's; also where such an address stands inside one of version 6 (mapped, NAT64, 6to4). Other
 * families: false.
 */
bool address_is_public(const struct sockaddr *address);

struct network {
    struct in6_addr base; // of version 4: mapped
    unsigned bits;        // of these 128
};
struct networks {
    struct network *items;
    size_t count;
};

/* Addresses and networks with commas between; NULL and "" are none. ERROR_INVALID names the one that is none. */
int networks_read(const char *text, struct networks *out, struct error *err);
void networks_clear(struct networks *networks);
/* Whether it is in one of them; of an address of version 4 inside one of version 6, that counts. */
bool networks_have(const struct networks *networks, const struct sockaddr *address);

/*
 * Addresses with commas or spaces between, each perhaps with a port ("192.0.2.53", "192.0.2.53:5353", "2001:db8::53", "[::1]:5353") in place of this one, as
 * those of version 6. ERROR_INVALID names the one that is none, or says that there are more than `most`; *count of them were read.
 */
int addresses_read(const char *text, unsigned port, struct sockaddr_in6 *out, size_t most,
                   size_t *count, struct error *err);
/* One address without a port. */
bool address_read(const char *text, unsigned port, struct sockaddr_in6 *out);
