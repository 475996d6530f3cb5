/* SPDX-License-Identifier: Apache-2.0 */
/* Shares of the memory for bodies. */
#include "net/gather.h"

#include "test.h"

#define MIB ((uint64_t)1 << 20)
#define ALL (512 * MIB)

/* Takes as much as there is, MiB by MiB; what it got. */
static uint64_t take_all(struct gather_charge *charge)
{
    while (gather_charge_add(charge, MIB))
        ;
    return charge->bytes;
}

TEST(a_key_has_half_and_the_next_one_what_large_requests_may_have)
{
    struct gather_budget *budget = gather_budget_new(ALL);
    struct gather_charge first, again, second, small;

    gather_charge_open(&first, budget, GATHER_KEY, 1);
    gather_charge_open(&again, budget, GATHER_KEY, 1);
    gather_charge_open(&second, budget, GATHER_KEY, 2);
    gather_charge_open(&small, budget, GATHER_KEY, 3);
    CHECK(take_all(&first) == ALL / 2);
    CHECK(!gather_charge_add(&again, 1)); // the same key by another request
    uint64_t rest = take_all(&second);
    CHECK(rest >= ALL / 4 - MIB && rest <= ALL / 4 + MIB);
    CHECK(gather_charge_add(&small, GATHER_SMALL)); // always passes
    CHECK(!gather_charge_add(&small, MIB));
    gather_charge_give(&first, 100 * MIB);
    CHECK(gather_charge_add(&again, 50 * MIB));
    gather_charge_clear(&first);
    gather_charge_clear(&again);
    gather_charge_clear(&second);
    gather_charge_clear(&small);
    CHECK_INT(gather_budget_used(budget), 0);
    gather_budget_free(budget);
}

TEST(strangers_have_little_each_and_together)
{
    enum { COUNT = 100 };
    struct gather_budget *budget = gather_budget_new(ALL);
    static struct gather_charge strangers[COUNT];
    struct gather_charge key;
    uint64_t taken = 0;

    for (unsigned i = 0; i < COUNT; i++) {
        gather_charge_open(&strangers[i], budget, GATHER_STRANGER, i);
        uint64_t own = take_all(&strangers[i]);
        CHECK(own <= ALL / 64);
        taken += own;
    }
    CHECK(taken == ALL / 16);
    gather_charge_open(&key, budget, GATHER_KEY, 1);
    CHECK(take_all(&key) == ALL / 2); // as if there were none of them
    for (unsigned i = 0; i < COUNT; i++)
        gather_charge_clear(&strangers[i]);
    gather_budget_free(budget); // lives on
    CHECK(gather_charge_add(&key, 0));
    gather_charge_clear(&key);
}

TEST(a_charge_of_no_budget_takes_nothing)
{
    struct gather_charge none = {0};

    CHECK(gather_charge_add(&none, ALL));
    gather_charge_give(&none, ALL);
    gather_charge_clear(&none);
    CHECK_INT(none.bytes, 0);
}
