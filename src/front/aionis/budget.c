/* SPDX-License-Identifier: Apache-2.0 */
/* How much a tenant may run; see budget.h. */
#include "front/aionis/budget.h"

#include "base/auto.h"
#include "base/mem.h"
#include "base/lock.h"
#include "core/execution/execution.h"
#include "data/json.h"

#include <pthread.h>
#include <string.h>

struct tenant {
    char *name;
    struct budget budget;
};

/* Of a tenant that has a budget. */
struct entering {
    struct entering *next;
    char *tenant;
    int64_t count;
};

struct budgets {
    struct tenant *tenants;
    size_t count;
    struct lock lock; // guards `entering`
    struct entering *entering;
};

static int read_cap(const struct data_value *policy, const char *name, int64_t *out,
                    struct error *err)
{
    const struct data_value *value = value_get(policy, name);

    if (!value || value->kind == VALUE_NULL)
        return 0;
    if (value->kind != VALUE_NUMBER || value->length > 15 ||
        value->text[strspn(value->text, "0123456789")])
        return error_set(err, ERROR_INVALID,
                         "the budget of '%.64s': %s must be a whole number of at least 0",
                         policy->key, name);
    *out = strtoll(value->text, NULL, 10);
    return 0;
}

static int read_policy(const struct data_value *policy, struct tenant *out, struct error *err)
{
    if (policy->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "the budget of '%.64s' must be an object",
                         policy->key);
    if (read_cap(policy, "daily_run_cap", &out->budget.runs, err) < 0 ||
        read_cap(policy, "daily_timeout_cap", &out->budget.timeouts, err) < 0 ||
        read_cap(policy, "daily_failure_cap", &out->budget.failures, err) < 0)
        return -1;
    out->name = xstrdup(policy->key);
    out->budget.is_default = strcmp(policy->key, "*") == 0;
    return 0;
}

int budgets_read(const char *text, struct budgets **out, struct error *err)
{
    static const struct json_limits limits = {.takes_last = true};
    autoptr(data_document) document = NULL;

    if (json_read("", text, strlen(text), &limits, &document, err) < 0)
        return error_wrap(err, "the budgets are not JSON");
    if (document->root->kind != VALUE_MAP)
        return error_set(err, ERROR_INVALID, "the budgets must be a JSON object of tenants");
    struct budgets *budgets = xnew(struct budgets);
    lock_init(&budgets->lock, LOCK_FRONT);
    budgets->tenants = xcalloc(document->root->count + 1, sizeof *budgets->tenants);
    for (const struct data_value *policy = document->root->first; policy; policy = policy->next) {
        if (read_policy(policy, &budgets->tenants[budgets->count], err) < 0) {
            budgets_free(budgets);
            return -1;
        }
        budgets->count++;
    }
    *out = budgets;
    return 0;
}

void budgets_free(struct budgets *budgets)
{
    if (!budgets)
        return;
    for (size_t i = 0; i < budgets->count; i++)
        free(budgets->tenants[i].name);
    free(budgets->tenants);
    while (budgets->entering) {
        struct entering *entering = budgets->entering;
        budgets->entering = entering->next;
        free(entering->tenant);
        free(entering);
    }
    lock_clear(&budgets->lock);
    free(budgets);
}

size_t budgets_tenants(const struct budgets *budgets)
{
    return budgets->count;
}

const struct budget *budgets_find(const struct budgets *budgets, const char *tenant)
{
    const struct budget *standard = NULL;

    for (size_t i = 0; i < budgets->count; i++) {
        if (budgets->tenants[i].budget.is_default)
            standard = &budgets->tenants[i].budget;
        else if (strcmp(budgets->tenants[i].name, tenant) == 0)
            return &budgets->tenants[i].budget;
    }
    return standard;
}

bool budget_is_used_up(const struct budget *budget, const struct execution_outcomes *outcomes,
                       struct budget_excess *excess)
{
    int64_t failed = outcomes->total - outcomes->succeeded - outcomes->cancelled - outcomes->open;
    const struct budget_excess all[] = {
        {"run", "total_runs", outcomes->total, budget->runs},
        {"timeout", "timeout_runs", outcomes->timed_out + outcomes->lost, budget->timeouts},
        {"failure", "failed_runs", failed, budget->failures},
    };

    for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
        if (all[i].cap > 0 && all[i].used >= all[i].cap) {
            *excess = all[i];
            return true;
        }
    }
    return false;
}

/* With the lock held. */
static struct entering *find_entering(struct budgets *budgets, const char *tenant)
{
    struct entering *entering = budgets->entering;

    while (entering && strcmp(entering->tenant, tenant) != 0)
        entering = entering->next;
    return entering;
}

int64_t budgets_enter(struct budgets *budgets, const char *tenant)
{
    autolock(&budgets->lock);
    struct entering *entering = find_entering(budgets, tenant);
    if (!entering) {
        entering = xnew(struct entering);
        entering->tenant = xstrdup(tenant);
        entering->next = budgets->entering;
        budgets->entering = entering;
    }
    int64_t before = entering->count++;
    return before;
}

void budgets_leave(struct budgets *budgets, const char *tenant)
{
    autolock(&budgets->lock);
    for (struct entering **at = &budgets->entering; *at; at = &(*at)->next) {
        struct entering *entering = *at;
        if (strcmp(entering->tenant, tenant) != 0)
            continue;
        if (--entering->count == 0) {
            *at = entering->next;
            free(entering->tenant);
            free(entering);
        }
        break;
    }
}
