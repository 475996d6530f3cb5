/* SPDX-License-Identifier: Apache-2.0 */
/* Counters under one lock; see gather.h. */
#include "net/gather.h"

#include "base/lock.h"
#include "base/mem.h"

#include <stdlib.h>

#define BUCKETS 256

/* What one key or one address has. */
struct gather_share {
    struct gather_share *next; // in its bucket
    enum gather_who who;
    uint64_t id;
    uint64_t bytes;
    unsigned charges; // that are open
};

struct gather_budget {
    struct lock lock; // guards all below
    uint64_t maximum;
    uint64_t used;
    uint64_t large;     // of it, beyond GATHER_SMALL of each request
    uint64_t strangers; // of it, taken without a key
    unsigned holders;   // the owner and open charges
    struct gather_share *shares[BUCKETS];
};

/* Of the maximum, as parts of PARTS. A key's share holds the largest body beside the tree that is made of it. */
#define PARTS 64
static const unsigned share_parts[] = {
    [GATHER_UNCHECKED] = PARTS, [GATHER_STRANGER] = 1, [GATHER_KEY] = 32};
#define LARGE_PARTS 48   // all large ones together
#define STRANGER_PARTS 4 // all without a key together

static uint64_t part(const struct gather_budget *budget, unsigned parts)
{
    return budget->maximum / PARTS * parts;
}

struct gather_budget *gather_budget_new(uint64_t maximum)
{
    struct gather_budget *budget = xnew(struct gather_budget);

    budget->maximum = maximum;
    budget->holders = 1;
    lock_init(&budget->lock, LOCK_GATHER);
    return budget;
}

/* With the lock held; true: that was the last one. */
static bool let_go(struct gather_budget *budget)
{
    return --budget->holders == 0;
}

static void destroy(struct gather_budget *budget)
{
    lock_clear(&budget->lock);
    free(budget);
}

void gather_budget_free(struct gather_budget *budget)
{
    bool is_last = false;

    if (!budget)
        return;
    {
        autolock(&budget->lock);
        is_last = let_go(budget);
    }
    if (is_last)
        destroy(budget);
}

uint64_t gather_budget_used(struct gather_budget *budget)
{
    autolock(&budget->lock);
    return budget->used;
}

/* With the lock held; made if there is none. */
static struct gather_share *find_share(struct gather_budget *budget, enum gather_who who,
                                       uint64_t id)
{
    struct gather_share **bucket = &budget->shares[(id ^ id >> 32) % BUCKETS];

    for (struct gather_share *share = *bucket; share; share = share->next) {
        if (share->id == id && share->who == who)
            return share;
    }
    struct gather_share *share = xnew(struct gather_share);
    *share = (struct gather_share){.next = *bucket, .who = who, .id = id};
    return *bucket = share;
}

static void forget_share(struct gather_budget *budget, struct gather_share *share)
{
    struct gather_share **at = &budget->shares[(share->id ^ share->id >> 32) % BUCKETS];

    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    free(share);
}

void gather_charge_open(struct gather_charge *charge, struct gather_budget *budget,
                        enum gather_who who, uint64_t id)
{
    *charge = (struct gather_charge){.budget = budget, .who = who};
    autolock(&budget->lock);
    budget->holders++;
    if (who == GATHER_UNCHECKED)
        return;
    charge->share = find_share(budget, who, id);
    charge->share->charges++;
}

/* How much of so many bytes is beyond what a small request has. */
static uint64_t large_of(uint64_t bytes)
{
    return bytes > GATHER_SMALL ? bytes - GATHER_SMALL : 0;
}

/* With the lock held. */
static bool has_room(const struct gather_charge *charge, uint64_t bytes)
{
    const struct gather_budget *budget = charge->budget;
    uint64_t large = large_of(charge->bytes + bytes) - large_of(charge->bytes);

    if (bytes > budget->maximum || budget->used + bytes > budget->maximum)
        return false;
    if (charge->share && charge->share->bytes + bytes > part(budget, share_parts[charge->who]))
        return false;
    if (large && budget->large + large > part(budget, LARGE_PARTS))
        return false;
    return charge->who != GATHER_STRANGER ||
           budget->strangers + bytes <= part(budget, STRANGER_PARTS);
}

/* With the lock held. */
static void count(struct gather_charge *charge, uint64_t bytes_after)
{
    struct gather_budget *budget = charge->budget;
    uint64_t before = charge->bytes;

    budget->used += bytes_after - before;
    budget->large += large_of(bytes_after) - large_of(before);
    if (charge->share)
        charge->share->bytes += bytes_after - before;
    if (charge->who == GATHER_STRANGER)
        budget->strangers += bytes_after - before;
    charge->bytes = bytes_after;
}

bool gather_charge_add(struct gather_charge *charge, uint64_t bytes)
{
    if (!charge->budget)
        return true;
    autolock(&charge->budget->lock);
    bool is_taken = has_room(charge, bytes);
    if (is_taken)
        count(charge, charge->bytes + bytes);
    return is_taken;
}

void gather_charge_give(struct gather_charge *charge, uint64_t bytes)
{
    if (!charge->budget)
        return;
    autolock(&charge->budget->lock);
    count(charge, bytes < charge->bytes ? charge->bytes - bytes : 0);
}

void gather_charge_clear(struct gather_charge *charge)
{
    struct gather_budget *budget = charge->budget;
    bool is_last = false;

    if (!budget)
        return;
    {
        autolock(&budget->lock);
        count(charge, 0);
        if (charge->share && --charge->share->charges == 0)
            forget_share(budget, charge->share);
        is_last = let_go(budget);
    }
    *charge = (struct gather_charge){0};
    if (is_last)
        destroy(budget);
}
