/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory all bodies of a server may take together, what is made of them included. Counted is what has arrived, not what
 * was announced. Nobody can take all of it: each key and each address without one has a share, those without a key have little
 * together, and large requests leave room for small ones.
 * Threads: any; a charge is one thread's at a time.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct gather_budget;

struct gather_budget *gather_budget_new(uint64_t maximum);
void gather_budget_free(struct gather_budget *budget); // lives on until all was given back
uint64_t gather_budget_used(struct gather_budget *budget);

enum gather_who {
    GATHER_UNCHECKED, // a request that is small and all there: its key will be looked at next
    GATHER_STRANGER,  // an address that has shown no key
    GATHER_KEY,
};
#define GATHER_SMALL (64u << 10) // what a request may take beside all large ones

/* What one request has taken; all zero: of no budget, nothing. */
struct gather_charge {
    struct gather_budget *budget;
    struct gather_share *share; // NULL: nobody's
    enum gather_who who;
    uint64_t bytes;
};

/* Nothing is taken yet. `id` tells keys, or addresses, apart. */
void gather_charge_open(struct gather_charge *charge, struct gather_budget *budget,
                        enum gather_who who, uint64_t id);
/* False, and nothing was taken: not now. */
bool gather_charge_add(struct gather_charge *charge, uint64_t bytes);
void gather_charge_give(struct gather_charge *charge, uint64_t bytes);
void gather_charge_clear(struct gather_charge *charge);
