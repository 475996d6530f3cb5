/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory all gathered bodies of a server may take together.
 * Threads: any.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct gather_budget;

struct gather_budget *gather_budget_new(uint64_t maximum);
void gather_budget_free(struct gather_budget *budget); // lives on until all was given back

/* False: not now. */
bool gather_budget_take(struct gather_budget *budget, uint64_t bytes);
void gather_budget_give(struct gather_budget *budget, uint64_t bytes); // budget may be NULL

uint64_t gather_budget_used(struct gather_budget *budget);
