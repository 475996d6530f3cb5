/* SPDX-License-Identifier: Apache-2.0 */
/* The one decision; see policy.h. */
#include "base/address.h"
#include "base/auto.h"
#include "policy/policy_match.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

bool policy_is_below(const char *name, const char *zone)
{
    size_t length = strlen(name), zone_length = strlen(zone);

    return length > zone_length + 1 && name[length - zone_length - 1] == '.' &&
           strcmp(name + length - zone_length, zone) == 0;
}

bool policy_rule_has_name(const struct policy_rule *rule, const char *name)
{
    if (rule->target == POLICY_NAME)
        return strcmp(rule->name, name) == 0;
    return rule->target == POLICY_WILDCARD && policy_is_below(name, rule->name);
}

bool policy_is_closed_address(uint32_t address)
{
    const struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(address)};

    return !address_is_public((const struct sockaddr *)&in);
}

static bool is_lookup(const struct policy_question *question)
{
    return question->protocol == 0;
}

static bool is_about_host(const struct policy_question *question)
{
    return question->name && policy_is_host(question->name);
}

/* A name is looked up for whatever a rule allows of it, and not where it is refused altogether. */
static bool has_service(const struct policy_rule *rule, const struct policy_question *question)
{
    if (is_lookup(question))
        return rule->is_allow || (!rule->first_port && rule->protocols == POLICY_ALL_PROTOCOLS) ||
               (rule->target == POLICY_HOST && !rule->first_port);
    if (!(rule->protocols & question->protocol))
        return false;
    return !rule->first_port ||
           (question->port >= rule->first_port && question->port <= rule->last_port);
}

static bool has_target(const struct policy_rule *rule, const struct policy_question *question)
{
    if (is_about_host(question)) // of the one resource there is one name: "*" is not meant
        return rule->target == POLICY_HOST || (rule->target == POLICY_ANY && !rule->is_allow);
    switch (rule->target) {
    case POLICY_NAME:
    case POLICY_WILDCARD:
        return question->name && policy_rule_has_name(rule, question->name);
    case POLICY_NETWORK:
        return question->address &&
               (question->address & (rule->bits ? ~0U << (32 - rule->bits) : 0)) == rule->address;
    case POLICY_HOST:
        return false;
    case POLICY_ANY:
        return true;
    }
    return false;
}

bool policy_rule_matches(const struct policy_rule *rule, const struct policy_question *question)
{
    return has_target(rule, question) && has_service(rule, question);
}

// ---- words ----

/* "'example.com' port 443 over tcp" */
static void say_what(const struct policy_question *question, char *out, size_t size)
{
    uint32_t a = question->address;
    char name[POLICY_NAME_LENGTH + 24], port[24] = "";

    if (question->name)
        (void)snprintf(name, sizeof name, "%s", question->name);
    else
        (void)snprintf(name, sizeof name, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255,
                       a & 255);
    if (question->port)
        (void)snprintf(port, sizeof port, " port %u", question->port);
    (void)snprintf(out, size, "'%s'%s%s%s", name, port, question->protocol ? " over " : "",
                   question->protocol ? policy_protocol_name(question->protocol) : "");
}

/* The rule that would allow it: "example.com:443". */
static void say_rule(const struct policy_question *question, char *out, size_t size)
{
    uint32_t a = question->address;
    char target[POLICY_NAME_LENGTH], port[16] = "";

    if (is_about_host(question))
        (void)snprintf(target, sizeof target, "host");
    else if (question->name)
        (void)snprintf(target, sizeof target, "%s", question->name);
    else
        (void)snprintf(target, sizeof target, "%u.%u.%u.%u", a >> 24, a >> 16 & 255, a >> 8 & 255,
                       a & 255);
    if (question->port)
        (void)snprintf(port, sizeof port, ":%u", question->port);
    (void)snprintf(out, size, "%s%s%s", target, port,
                   question->protocol == POLICY_ICMP  ? "/icmp"
                   : question->protocol == POLICY_UDP ? "/udp"
                                                      : "");
}

static void explain_rule(const struct policy_rule *rule, const char *what,
                         struct policy_verdict *out)
{
    char text[POLICY_RULE_TEXT], note[POLICY_NAME_LENGTH * 2 + 48] = "";

    (void)snprintf(out->rule, sizeof out->rule, "%s %.290s", rule->is_allow ? "allow" : "deny",
                   policy_rule_text(rule, text));
    if (rule->target == POLICY_WILDCARD)
        (void)snprintf(note, sizeof note,
                       ", which covers every name below %.100s and not %.100s itself", rule->name,
                       rule->name);
    (void)snprintf(out->reason, sizeof out->reason, "%.150s is %s by the rule '%.120s' (%s)%.200s",
                   what, rule->is_allow ? "allowed" : "refused", out->rule,
                   policy_tier_name(rule->tier), note);
    if (rule->is_allow)
        return;
    if (rule->tier == POLICY_USER)
        (void)snprintf(out->remedy, sizeof out->remedy,
                       "remove the rule '%.200s' from the network policy of the sandbox",
                       out->rule);
    else
        (void)snprintf(out->remedy, sizeof out->remedy,
                       "the rule '%.200s' is the operator's: ask the operator of this server",
                       out->rule);
}

static void explain_default(const struct policy_question *question, bool is_allowed,
                            const char *what, struct policy_verdict *out)
{
    char rule[POLICY_RULE_TEXT];

    out->tier = POLICY_DEFAULT;
    out->is_allowed = is_allowed;
    if (is_allowed) {
        (void)snprintf(out->reason, sizeof out->reason,
                       "%.200s is allowed because no rule refuses it", what);
        return;
    }
    say_rule(question, rule, sizeof rule);
    (void)snprintf(out->reason, sizeof out->reason, "%.200s is refused because no rule allows it",
                   what);
    (void)snprintf(out->remedy, sizeof out->remedy,
                   "allow '%.250s' in the sandbox's network policy", rule);
}

static void explain_closed(const struct policy_question *question, const char *what,
                           struct policy_verdict *out)
{
    char rule[POLICY_RULE_TEXT];

    out->tier = POLICY_CLOSED;
    out->is_allowed = false;
    say_rule(question, rule, sizeof rule);
    if (is_about_host(question))
        (void)snprintf(out->reason, sizeof out->reason,
                       "%.200s is a service of the machine that sandboxes run on, which is closed",
                       what);
    else
        (void)snprintf(out->reason, sizeof out->reason,
                       "%.200s leads to an address that is not public, which is closed", what);
    (void)snprintf(out->remedy, sizeof out->remedy,
                   "only the operator of this server can open it, with the rule '%.200s'", rule);
}

static void explain_off(const char *what, struct policy_verdict *out)
{
    out->tier = POLICY_DEFAULT;
    (void)snprintf(out->reason, sizeof out->reason,
                   "%.200s is refused because the sandbox has no network", what);
    (void)snprintf(out->remedy, sizeof out->remedy,
                   "create the sandbox with a network, or give it one in its network policy");
}

// ---- the decision ----

static bool is_closed(const struct policy_question *question)
{
    return is_about_host(question) ||
           (question->address && policy_is_closed_address(question->address));
}

/*
 * Where it is closed, a user's "allow" opens nothing, and neither does a name, of whoever it is; an operator's network, host or zone does: "operator may open a
 * zone".
 */
static bool counts(const struct policy_rule *rule, bool closed)
{
    if (!closed || !rule->is_allow)
        return true;
    return rule->tier != POLICY_USER && rule->target != POLICY_ANY;
}

static const struct policy_rule *find_rule(const struct policy *policy,
                                           const struct policy_question *question, bool closed)
{
    for (size_t i = 0; i < policy->count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        if (counts(rule, closed) && policy_rule_matches(rule, question))
            return rule;
    }
    return NULL;
}

static void decide(const struct policy *policy, const struct policy_question *question,
                   struct policy_verdict *out)
{
    bool closed = is_closed(question);
    char what[POLICY_NAME_LENGTH + 64];

    say_what(question, what, sizeof what);
    if (policy->mode == POLICY_OFF) {
        explain_off(what, out);
        return;
    }
    const struct policy_rule *rule = find_rule(policy, question, closed);
    if (rule) {
        out->tier = rule->tier;
        out->is_allowed = rule->is_allow;
        out->is_by_name =
            rule->is_allow && (rule->target == POLICY_NAME || rule->target == POLICY_WILDCARD);
        explain_rule(rule, what, out);
    } else if (closed) {
        explain_closed(question, what, out);
    } else {
        explain_default(question, policy->mode == POLICY_OPEN || policy->is_default_allow, what,
                        out);
    }
}

void policy_decide(const struct policy *policy, const struct policy_question *question,
                   struct policy_verdict *out)
{
    *out = (struct policy_verdict){0};
    decide(policy, question, out);
    if (out->is_allowed || !policy->is_observing || policy->mode == POLICY_OFF ||
        is_closed(question))
        return;
    out->is_allowed = true;
    out->would_deny = true;
}
