/* SPDX-License-Identifier: Apache-2.0 */
/* How often a client may call; see rate_limiter.h. */
#include "web/rate_limiter.h"

#include "base/clock.h"
#include "base/lock.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define SWEEP_EVERY 256 // takes

struct bucket {
    struct bucket *next;
    unsigned class;
    char client[RATE_CLIENT];
    double tokens;
    uint64_t filled_ms; // when it was last filled up
};

struct rate_limiter {
    struct rate_limits limits;
    struct lock lock; // guards all below
    struct bucket *buckets[BUCKETS];
    unsigned takes;
};

struct rate_limiter *rate_limiter_new(const struct rate_limits *limits)
{
    struct rate_limiter *limiter = xnew(struct rate_limiter);

    limiter->limits = *limits;
    lock_init(&limiter->lock, LOCK_FRONT);
    return limiter;
}

void rate_limiter_free(struct rate_limiter *limiter)
{
    if (!limiter)
        return;
    for (unsigned i = 0; i < BUCKETS; i++) {
        while (limiter->buckets[i]) {
            struct bucket *bucket = limiter->buckets[i];
            limiter->buckets[i] = bucket->next;
            free(bucket);
        }
    }
    lock_clear(&limiter->lock);
    free(limiter);
}

/* Drops what nobody has used for long. With the lock held, like all below. */
static void sweep(struct rate_limiter *limiter, uint64_t now)
{
    for (unsigned i = 0; i < BUCKETS; i++) {
        struct bucket **at = &limiter->buckets[i];
        while (*at) {
            struct bucket *bucket = *at;
            if (now - bucket->filled_ms < limiter->limits.ttl_ms) {
                at = &bucket->next;
                continue;
            }
            *at = bucket->next;
            free(bucket);
        }
    }
}

static unsigned place_of(unsigned class, const char *client)
{
    unsigned hash = class;

    while (*client)
        hash = hash * 33 + (unsigned char)*client++;
    return hash % BUCKETS;
}

static struct bucket *find_bucket(struct rate_limiter *limiter, unsigned class, const char *client,
                                  uint64_t now)
{
    struct bucket **first = &limiter->buckets[place_of(class, client)];

    for (struct bucket *bucket = *first; bucket; bucket = bucket->next) {
        if (bucket->class == class && strcmp(bucket->client, client) == 0)
            return bucket;
    }
    struct bucket *bucket = xnew(struct bucket);
    bucket->class = class;
    (void)snprintf(bucket->client, sizeof bucket->client, "%s", client);
    bucket->tokens = (double)limiter->limits.of[class].burst;
    bucket->filled_ms = now;
    bucket->next = *first;
    *first = bucket;
    return bucket;
}

static void fill_bucket(const struct rate_limiter *limiter, struct bucket *bucket, uint64_t now)
{
    double burst = (double)limiter->limits.of[bucket->class].burst;

    bucket->tokens +=
        (double)(now - bucket->filled_ms) / 1000 * limiter->limits.of[bucket->class].per_second;
    if (bucket->tokens > burst)
        bucket->tokens = burst;
    bucket->filled_ms = now;
}

int64_t rate_take(struct rate_limiter *limiter, unsigned class, const char *client)
{
    struct rate_state state;

    return rate_take_state(limiter, class, client, &state);
}

int64_t rate_take_state(struct rate_limiter *limiter, unsigned class, const char *client,
                        struct rate_state *out)
{
    double per_second = limiter->limits.of[class].per_second;
    uint64_t now = clock_monotonic_ms();
    int64_t wait_ms = 0;

    autolock(&limiter->lock);
    if (++limiter->takes % SWEEP_EVERY == 0)
        sweep(limiter, now);
    struct bucket *bucket = find_bucket(limiter, class, client, now);
    fill_bucket(limiter, bucket, now);
    if (bucket->tokens >= 1)
        bucket->tokens -= 1;
    else
        wait_ms = (int64_t)((1 - bucket->tokens) * 1000 / per_second) + 1;
    out->limit = limiter->limits.of[class].burst;
    out->remaining = (int64_t)bucket->tokens;
    out->full_ms = (int64_t)(((double)out->limit - bucket->tokens) * 1000 / per_second);
    return wait_ms;
}
