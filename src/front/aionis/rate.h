/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who calls, for web/rate_limiter.h: by its address, which a proxy may tell.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "web/rate_limiter.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum rate_class { RATE_WRITE, RATE_READ };

/* Networks whose word about where a request came from counts. */
struct proxies;
/* "10.0.0.0/8, fd00::/8" */
int proxies_read(const char *text, struct proxies **out, struct error *err);
void proxies_free(struct proxies *proxies);
bool proxies_contain(const struct proxies *proxies, const struct in6_addr *address);

/* An address as text, and back; IPv4 is mapped. */
const char *rate_client_format(const struct in6_addr *address, char text[RATE_CLIENT]);
bool rate_client_parse(const char *text, struct in6_addr *out);
bool rate_is_loopback(const struct in6_addr *address);
