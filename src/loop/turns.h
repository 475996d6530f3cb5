/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn it is: work that waits for a thread, and how much of it runs, counted for each who asks and for each thing it is
 * about. Whoever has the least running comes next, then whoever has waited for longest; so one who asks for a thousand things
 * delays another by one of them. Nothing here runs anything.
 * Threads: one per object; its owner locks.
 */
#pragma once
#include "base/auto.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whose work it is. All zero: nobody's in particular. */
struct turns_owner {
    uint64_t who;  // a hash of the key it came with
    uint64_t what; // a hash of the thing it is about; 0: none, and then `per_what` does not count
    bool is_heavy; // keeps a processor busy for long: one at a time for each thing, `heavy` in all
};

/* How much at once; 0: any number. */
struct turns_limits {
    unsigned per_who;
    unsigned per_what;
    unsigned heavy;
    size_t queue; // that waits, beside what runs
    size_t queue_per_who;
};

struct turns_work {
    void (*fn)(void *data);
    void *data;
};

enum turns_added { TURNS_ADDED, TURNS_FULL, TURNS_FULL_FOR_WHO };

struct turns;
struct turns_party;

struct turns *turns_new(const struct turns_limits *limits);
void turns_free(struct turns *turns); // what waits is forgotten
DEFINE_AUTOPTR(turns)

/* In the order it came, among all of the same owner. */
enum turns_added turns_add(struct turns *turns, const struct turns_owner *owner,
                           struct turns_work work);

/* Takes what comes next, which counts as running until turns_done(*party). NULL: nothing may run now, though some may wait. */
struct turns_party *turns_next(struct turns *turns, struct turns_work *out);
void turns_done(struct turns *turns, struct turns_party *party);

size_t turns_waiting(const struct turns *turns);
size_t turns_running(const struct turns *turns);
