/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much a tenant may run in a window of time.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct execution_outcomes;
struct budgets;

/* JSON: {"tenant": {"daily_run_cap": 10, "daily_timeout_cap": …, "daily_failure_cap": …}, "*": …}; ERROR_INVALID. */
int budgets_read(const char *text, struct budgets **out, struct error *err);
void budgets_free(struct budgets *budgets);
size_t budgets_tenants(
    const struct budgets *budgets); // that have a policy of their own, the default one counted

/* What applies to a tenant; NULL: nothing. */
struct budget {
    int64_t runs, timeouts, failures; // 0: no cap
    bool is_default;                  // of all tenants without one
};
const struct budget *budgets_find(const struct budgets *budgets, const char *tenant);

/* What is used up, if anything. */
struct budget_excess {
    const char *code;   // "run", "timeout", "failure"
    const char *metric; // "total_runs" …
    int64_t used, cap;
};
bool budget_is_used_up(const struct budget *budget, const struct execution_outcomes *outcomes,
                       struct budget_excess *excess);

/*
 * Runs of a tenant that are about to be recorded, so that callers at once do not all take the last one. How many there were
 * before this one.
 */
int64_t budgets_enter(struct budgets *budgets, const char *tenant);
void budgets_leave(struct budgets *budgets, const char *tenant);
