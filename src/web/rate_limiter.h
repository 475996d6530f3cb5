/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How often a client may call: a bucket of tokens for each client and class of calls.
 * Threads: any.
 */
#pragma once
#include <stdint.h>

#define RATE_CLASSES 2
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
#define RATE_CLIENT 64 // bytes of a client's name that count
int64_t rate_take(struct rate_limiter *limiter, unsigned class, const char *client);

/* The same, and what is left. */
struct rate_state {
    int64_t limit;     // tokens of a full bucket
    int64_t remaining; // whole ones
    int64_t full_ms;   // until it is full again
};
int64_t rate_take_state(struct rate_limiter *limiter, unsigned class, const char *client,
                        struct rate_state *out);
