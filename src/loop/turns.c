/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tree of three levels: all, whoever asks, the things each asks about. Parties with something that waits stand in a ring of
 * their parent's, the longest since its last turn first. One that has nothing left is kept aside for the next.
 */
#include "loop/turns.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define BUCKETS 256u

struct item {
    struct turns_work work;
    struct item *next;
};

struct turns_party {
    struct turns_party *parent;
    struct turns_party *hash_next;      // also of the list of those kept aside
    struct turns_party *before, *after; // in the parent's ring, while anything of it waits
    struct turns_party *ring;           // the first of the children that wait; NULL: none
    struct item *first, *last;          // what waits; of a thing only
    uint64_t id;
    size_t waiting;
    unsigned running;
    unsigned children;
    bool is_heavy;
};

struct turns {
    struct turns_limits limits;
    struct turns_party all;
    struct turns_party *buckets[BUCKETS];
    struct turns_party *spare_parties;
    struct item *spare_items;
    unsigned heavy_running;
};

struct turns *turns_new(const struct turns_limits *limits)
{
    struct turns *turns = xnew(struct turns);

    turns->limits = *limits;
    return turns;
}

static void free_parties(struct turns_party *party)
{
    while (party) {
        struct turns_party *next = party->hash_next;
        for (struct item *item = party->first; item;) {
            struct item *after = item->next;
            free(item);
            item = after;
        }
        free(party);
        party = next;
    }
}

void turns_free(struct turns *turns)
{
    if (!turns)
        return;
    for (unsigned i = 0; i < BUCKETS; i++)
        free_parties(turns->buckets[i]);
    free_parties(turns->spare_parties);
    for (struct item *item = turns->spare_items; item;) {
        struct item *after = item->next;
        free(item);
        item = after;
    }
    free(turns);
}

// ---- parties ----

static struct turns_party **bucket_of(struct turns *turns, const struct turns_party *parent,
                                      uint64_t id)
{
    uint64_t mixed = (id ^ (uint64_t)(uintptr_t)parent) * 0x9e3779b97f4a7c15u;
    return &turns->buckets[mixed >> 56];
}

static struct turns_party *find(struct turns *turns, const struct turns_party *parent, uint64_t id,
                                bool is_heavy)
{
    struct turns_party *party = *bucket_of(turns, parent, id);

    while (party && (party->parent != parent || party->id != id || party->is_heavy != is_heavy))
        party = party->hash_next;
    return party;
}

static struct turns_party *find_or_add(struct turns *turns, struct turns_party *parent, uint64_t id,
                                       bool is_heavy)
{
    struct turns_party *party = find(turns, parent, id, is_heavy);

    if (party)
        return party;
    party = turns->spare_parties;
    if (party)
        turns->spare_parties = party->hash_next;
    else
        party = xnew(struct turns_party);
    struct turns_party **bucket = bucket_of(turns, parent, id);
    *party = (struct turns_party){
        .parent = parent, .hash_next = *bucket, .id = id, .is_heavy = is_heavy};
    *bucket = party;
    parent->children++;
    return party;
}

/* Puts those aside that have nothing any more, from here up. */
static void drop_if_unused(struct turns *turns, struct turns_party *party)
{
    while (party != &turns->all && !party->waiting && !party->running && !party->children) {
        struct turns_party *parent = party->parent;
        struct turns_party **at = bucket_of(turns, parent, party->id);
        while (*at != party)
            at = &(*at)->hash_next;
        *at = party->hash_next;
        party->hash_next = turns->spare_parties;
        turns->spare_parties = party;
        parent->children--;
        party = parent;
    }
}

// ---- rings ----

static void ring_add(struct turns_party *party)
{
    struct turns_party *first = party->parent->ring;

    if (!first) {
        party->parent->ring = party->before = party->after = party;
        return;
    }
    party->after = first;
    party->before = first->before;
    first->before->after = party;
    first->before = party;
}

static void ring_remove(struct turns_party *party)
{
    struct turns_party *parent = party->parent;

    if (party->after == party) {
        parent->ring = NULL;
        return;
    }
    party->before->after = party->after;
    party->after->before = party->before;
    if (parent->ring == party)
        parent->ring = party->after;
}

// ---- turns ----

static struct item *item_new(struct turns *turns, struct turns_work work)
{
    struct item *item = turns->spare_items;

    if (item)
        turns->spare_items = item->next;
    else
        item = xnew(struct item);
    *item = (struct item){.work = work};
    return item;
}

enum turns_added turns_add(struct turns *turns, const struct turns_owner *owner,
                           struct turns_work work)
{
    const struct turns_limits *limits = &turns->limits;

    if (limits->queue && turns->all.waiting >= limits->queue)
        return TURNS_FULL;
    struct turns_party *who = find_or_add(turns, &turns->all, owner->who, false);
    if (limits->queue_per_who && who->waiting >= limits->queue_per_who)
        return TURNS_FULL_FOR_WHO; // it has something that waits, so it is not to be dropped
    struct turns_party *what = find_or_add(turns, who, owner->what, owner->is_heavy);
    struct item *item = item_new(turns, work);
    if (what->last)
        what->last->next = item;
    else
        what->first = item;
    what->last = item;
    if (who->waiting == 0)
        ring_add(who);
    if (what->waiting == 0)
        ring_add(what);
    what->waiting++;
    who->waiting++;
    turns->all.waiting++;
    return TURNS_ADDED;
}

static bool has_room(unsigned limit, unsigned running)
{
    return limit == 0 || running < limit;
}

static bool may_run(const struct turns *turns, const struct turns_party *what)
{
    if (what->is_heavy)
        return what->running == 0 && has_room(turns->limits.heavy, turns->heavy_running);
    return what->id == 0 || has_room(turns->limits.per_what, what->running);
}

/* Of one asker's: the thing with the least running that may run; NULL: none. */
static struct turns_party *choose_what(const struct turns *turns, const struct turns_party *who)
{
    struct turns_party *best = NULL, *what = who->ring;

    if (!what || !has_room(turns->limits.per_who, who->running))
        return NULL;
    do {
        if (may_run(turns, what) && (!best || what->running < best->running))
            best = what;
        what = what->after;
    } while (what != who->ring && !(best && best->running == 0));
    return best;
}

static struct turns_party *choose(const struct turns *turns)
{
    struct turns_party *best = NULL, *who = turns->all.ring;

    if (!who)
        return NULL;
    do {
        if (!best || who->running < best->parent->running) {
            struct turns_party *what = choose_what(turns, who);
            best = what ? what : best;
        }
        who = who->after;
    } while (who != turns->all.ring && !(best && best->parent->running == 0));
    return best;
}

/* It has had its turn: to the end of the ring, or out of it. */
static void take_turn(struct turns_party *party)
{
    ring_remove(party);
    if (--party->waiting > 0)
        ring_add(party);
    party->running++;
}

struct turns_party *turns_next(struct turns *turns, struct turns_work *out)
{
    struct turns_party *what = choose(turns);

    if (!what)
        return NULL;
    struct item *item = what->first;
    *out = item->work;
    what->first = item->next;
    if (!what->first)
        what->last = NULL;
    item->next = turns->spare_items;
    turns->spare_items = item;
    take_turn(what);
    take_turn(what->parent);
    turns->all.waiting--;
    turns->all.running++;
    turns->heavy_running += what->is_heavy;
    return what;
}

void turns_done(struct turns *turns, struct turns_party *what)
{
    assert(what->running > 0 && turns->all.running > 0);
    what->running--;
    what->parent->running--;
    turns->all.running--;
    turns->heavy_running -= what->is_heavy;
    drop_if_unused(turns, what);
}

size_t turns_waiting(const struct turns *turns)
{
    return turns->all.waiting;
}

size_t turns_running(const struct turns *turns)
{
    return turns->all.running;
}
