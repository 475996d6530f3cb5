/* SPDX-License-Identifier: Apache-2.0 */
/* One counter; one more than the bytes in use, as long as its owner has not let go. */
#include "net/gather.h"

#include "base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

struct gather_budget {
    uint64_t maximum;
    _Atomic uint64_t used; // plus one for the owner
};

struct gather_budget *gather_budget_new(uint64_t maximum)
{
    struct gather_budget *budget = xnew(struct gather_budget);
    budget->maximum = maximum;
    atomic_init(&budget->used, 1);
    return budget;
}

static void give(struct gather_budget *budget, uint64_t bytes)
{
    if (atomic_fetch_sub(&budget->used, bytes) == bytes)
        free(budget);
}

void gather_budget_free(struct gather_budget *budget)
{
    if (budget)
        give(budget, 1);
}

bool gather_budget_take(struct gather_budget *budget, uint64_t bytes)
{
    uint64_t used = atomic_load(&budget->used);

    do {
        if (bytes > budget->maximum || used - 1 > budget->maximum - bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&budget->used, &used, used + bytes));
    return true;
}

void gather_budget_give(struct gather_budget *budget, uint64_t bytes)
{
    if (budget && bytes)
        give(budget, bytes);
}

uint64_t gather_budget_used(struct gather_budget *budget)
{
    return atomic_load(&budget->used) - 1;
}
