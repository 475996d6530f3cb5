/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a client may call: a bucket of tokens for each client and class of calls.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

enum rate_class { RATE_WRITE, RATE_READ, RATE_CLASSES };

struct rate_limits {
    struct {
        double per_second;
        int64_t burst;
    } of[RATE_CLASSES];
    uint64_t ttl_ms; // buckets that nobody takes from are dropped
};

struct rate_limiter;
struct rate_limiter *rate_limiter_new(const struct rate_limits *limits);
void rate_limiter_free(struct rate_limiter *limiter);

/* Takes a token; else how many ms it is until the next one. */
int64_t rate_take(struct rate_limiter *limiter, enum rate_class class, const char *client);

/* Networks whose word about where a request came from counts. */
struct proxies;
/* "10.0.0.0/8, fd00::/8" */
int proxies_read(const char *text, struct proxies **out, struct error *err);
void proxies_free(struct proxies *proxies);
bool proxies_contain(const struct proxies *proxies, const struct in6_addr *address);

/* An address as text, and back; IPv4 is mapped. */
#define RATE_CLIENT 64
const char *rate_client_format(const struct in6_addr *address, char text[RATE_CLIENT]);
bool rate_client_parse(const char *text, struct in6_addr *out);
bool rate_is_loopback(const struct in6_addr *address);
