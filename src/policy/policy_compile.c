/* SPDX-License-Identifier: Apache-2.0 */
/* What of a policy the kernel holds: addresses and ports as a list, and pins for names; see policy.h. */
#include "base/auto.h"
#include "base/mem.h"
#include "policy/policy_match.h"

#include <stdlib.h>

static bool is_name_rule(const struct policy_rule *rule)
{
    return rule->target == POLICY_NAME || rule->target == POLICY_WILDCARD;
}

/* A last "deny *" or "allow *" is a default. */
static bool is_default(const struct policy_rule *rule)
{
    return rule->target == POLICY_ANY && !rule->first_port &&
           rule->protocols == POLICY_ALL_PROTOCOLS;
}

static void add_rule(struct policy_kernel *out, const struct policy_rule *rule, bool is_after)
{
    out->rules[out->count++] = (struct policy_kernel_rule){
        .is_allow = rule->is_allow,
        .is_operators = rule->tier != POLICY_USER && rule->target == POLICY_NETWORK,
        .is_after_pins = is_after,
        .address = rule->target == POLICY_ANY ? 0 : rule->address,
        .bits = rule->target == POLICY_ANY ? 0 : rule->bits,
        .first_port = rule->first_port,
        .last_port = rule->last_port,
        .protocols = rule->protocols,
    };
}

void policy_compile(const struct policy *policy, struct policy_kernel *out)
{
    bool has_names = false;
    bool is_decided = false; // nothing further is reached, but for what is closed

    *out = (struct policy_kernel){
        .class = POLICY_CLASS_OFF,
        .is_default_allow = policy->mode == POLICY_OPEN || policy->is_default_allow,
        .is_observing = policy->is_observing,
    };
    if (policy->mode == POLICY_OFF)
        return;
    out->rules = xcalloc(policy->count + 1, sizeof *out->rules);
    for (size_t i = 0; i < policy->count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        bool opens_closed = rule->target == POLICY_NETWORK && rule->tier != POLICY_USER;
        if (rule->target == POLICY_HOST || (is_decided && !opens_closed))
            continue;
        if (is_name_rule(rule)) {
            has_names = true;
        } else if (is_default(rule)) {
            out->is_default_allow = rule->is_allow;
            is_decided = true;
            if (!rule->is_allow)
                break;
        } else {
            add_rule(out, rule, has_names);
        }
    }
    // What is observed is read as under names: that is where most of it says its name.
    if (has_names || policy->is_observing || policy->has_secrets)
        out->class = POLICY_CLASS_NAMES;
    else if (out->count || !out->is_default_allow)
        out->class = POLICY_CLASS_RULES;
    else
        out->class = POLICY_CLASS_OPEN;
}

void policy_kernel_clear(struct policy_kernel *kernel)
{
    free(kernel->rules);
    *kernel = (struct policy_kernel){0};
}

// ---- pins ----

static bool is_open(const struct policy *policy, const char *name, uint32_t address, uint16_t port,
                    enum policy_protocol protocol)
{
    struct policy_verdict verdict;

    policy_decide(policy,
                  &(struct policy_question){
                      .name = name, .address = address, .port = port, .protocol = protocol},
                  &verdict);
    return verdict.is_allowed && !verdict.would_deny;
}

/* Those of a rule's protocols in which this port is open; what an earlier rule refuses is left out. */
static unsigned open_protocols(const struct policy *policy, const struct policy_rule *rule,
                               const char *name, uint32_t address, uint16_t port)
{
    unsigned found = 0;

    for (unsigned protocol = POLICY_TCP; protocol <= POLICY_ICMP; protocol <<= 1) {
        if ((rule->protocols & protocol) &&
            is_open(policy, name, address, port, (enum policy_protocol)protocol))
            found |= protocol;
    }
    return found;
}

/* Whether an earlier rule refuses some ports of what this one opens altogether: then no pin can say it. */
static bool has_holes(const struct policy *policy, size_t index, const char *name, uint32_t address)
{
    for (size_t i = 0; i < index; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        const struct policy_question question = {
            .name = name,
            .address = address,
            .port = rule->first_port,
            .protocol = rule->protocols & POLICY_TCP ? POLICY_TCP : POLICY_UDP,
        };
        if (!rule->is_allow && rule->first_port && policy_rule_matches(rule, &question))
            return true;
    }
    return false;
}

static size_t add_pin(struct policy_pin *out, size_t count, unsigned protocols, uint16_t port)
{
    if (protocols && count < POLICY_MAX_PINS)
        out[count++] = (struct policy_pin){.protocols = protocols, .port = port};
    return count;
}

size_t policy_pins(const struct policy *policy, const char *name, uint32_t address,
                   struct policy_pin out[POLICY_MAX_PINS])
{
    size_t count = 0;

    for (size_t i = 0; i < policy->count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        if (!rule->is_allow || !policy_rule_has_name(rule, name))
            continue;
        if (!rule->first_port) {
            if (!has_holes(policy, i, name, address))
                count =
                    add_pin(out, count, open_protocols(policy, rule, name, address, UINT16_MAX), 0);
            continue;
        }
        for (uint32_t port = rule->first_port; port <= rule->last_port; port++)
            count = add_pin(out, count, open_protocols(policy, rule, name, address, (uint16_t)port),
                            (uint16_t)port);
    }
    return count;
}
