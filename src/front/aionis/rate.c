/* SPDX-License-Identifier: Apache-2.0 */
/* How often a client may call; see rate.h. */
#include "front/aionis/rate.h"

#include "base/clock.h"
#include "base/mem.h"
#include "base/lock.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 1024
#define SWEEP_EVERY 256 // takes

struct bucket {
    struct bucket *next;
    enum rate_class class;
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

static unsigned place_of(enum rate_class class, const char *client)
{
    unsigned hash = class;

    while (*client)
        hash = hash * 33 + (unsigned char)*client++;
    return hash % BUCKETS;
}

static struct bucket *find_bucket(struct rate_limiter *limiter, enum rate_class class,
                                  const char *client, uint64_t now)
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

int64_t rate_take(struct rate_limiter *limiter, enum rate_class class, const char *client)
{
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
        wait_ms = (int64_t)((1 - bucket->tokens) * 1000 / limiter->limits.of[class].per_second) + 1;
    return wait_ms;
}

// ---- who it is ----

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
