/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of rules: their order, whether they can be held together, and as lines of text; see policy.h. */
#include "policy/policy.h"

#include "base/auto.h"
#include "base/mem.h"
#include "policy/policy_match.h"

#include <stdlib.h>
#include <string.h>

#define TEXT_MAX ((size_t)POLICY_MAX_RULES * (POLICY_RULE_TEXT + 32) + 256)

static const char *const modes[] = {
    [POLICY_OFF] = "off", [POLICY_OPEN] = "open", [POLICY_RULES] = "rules"};
static const struct {
    const char *word, *name;
} tiers[] = {
    [POLICY_ALWAYS] = {"always", "operator"},
    [POLICY_USER] = {"user", "user"},
    [POLICY_BASELINE] = {"baseline", "operator baseline"},
    [POLICY_DEFAULT] = {NULL, "default"},
    [POLICY_CLOSED] = {NULL, "closed"},
};

const char *policy_tier_name(enum policy_tier tier)
{
    return tiers[tier].name;
}

void policy_clear(struct policy *policy)
{
    free(policy->rules);
    *policy = (struct policy){0};
}

static int insert(struct policy *policy, const struct policy_rule *rule, struct error *err)
{
    size_t place = 0;

    if (policy->count >= POLICY_MAX_RULES)
        return error_set(err, ERROR_LIMIT, "a policy has at most %d rules", POLICY_MAX_RULES);
    while (place < policy->count && policy->rules[place].tier <= rule->tier)
        place++;
    policy->rules = xrealloc(policy->rules, policy->count + 1, sizeof *policy->rules);
    memmove(policy->rules + place + 1, policy->rules + place,
            (policy->count - place) * sizeof *policy->rules);
    policy->rules[place] = *rule;
    policy->count++;
    return 0;
}

int policy_add(struct policy *policy, enum policy_tier tier, bool is_allow, const char *text,
               struct error *err)
{
    struct policy_rule rule = {.tier = tier, .is_allow = is_allow};

    if (policy_parse_rule(text, &rule, err) < 0)
        return -1;
    return insert(policy, &rule, err);
}

static bool covers(const struct policy_rule *deny, const struct policy_rule *allow)
{
    if (deny->target == POLICY_ANY)
        return true;
    if (deny->target == POLICY_NAME && allow->target == POLICY_WILDCARD)
        return policy_is_below(deny->name, allow->name);
    return policy_rule_has_name(deny, allow->name) ||
           (deny->target == POLICY_WILDCARD && allow->target == POLICY_WILDCARD &&
            (strcmp(deny->name, allow->name) == 0 || policy_is_below(deny->name, allow->name)));
}

/* "Every port but 25" of a name cannot be said to the kernel, which is told addresses and ports that are open. */
int policy_check(const struct policy *policy, struct error *err)
{
    char deny_text[POLICY_RULE_TEXT], allow_text[POLICY_RULE_TEXT];

    for (size_t i = 0; i < policy->count; i++) {
        const struct policy_rule *allow = &policy->rules[i];
        bool is_name = allow->target == POLICY_NAME || allow->target == POLICY_WILDCARD;
        if (!allow->is_allow || !is_name || allow->first_port)
            continue;
        for (size_t j = 0; j < i; j++) {
            const struct policy_rule *deny = &policy->rules[j];
            if (deny->is_allow || !deny->first_port || !covers(deny, allow))
                continue;
            return error_set(
                err, ERROR_INVALID,
                "'deny %s' stands before 'allow %s', which has no ports: give it those "
                "that are meant",
                policy_rule_text(deny, deny_text), policy_rule_text(allow, allow_text));
        }
    }
    return 0;
}

int policy_write(const struct policy *policy, struct buffer *out, struct error *err)
{
    char text[POLICY_RULE_TEXT];

    if (buffer_addf(out, err, "policy 1\nmode %s\ndefault %s\nobserve %s\nsecrets %s\n",
                    modes[policy->mode], policy->is_default_allow ? "allow" : "deny",
                    policy->is_observing ? "yes" : "no", policy->has_secrets ? "yes" : "no") < 0)
        return -1;
    for (size_t i = 0; i < policy->count; i++) {
        const struct policy_rule *rule = &policy->rules[i];
        if (buffer_addf(out, err, "%s %s %s\n", tiers[rule->tier].word,
                        rule->is_allow ? "allow" : "deny", policy_rule_text(rule, text)) < 0)
            return -1;
    }
    return 0;
}

// ---- reading ----

static bool read_mode(struct policy *policy, const char *value)
{
    for (size_t i = 0; i < ARRAY_SIZE(modes); i++) {
        if (strcmp(value, modes[i]) == 0) {
            policy->mode = (enum policy_mode)i;
            return true;
        }
    }
    return false;
}

static bool read_choice(const char *value, const char *yes, const char *no, bool *out)
{
    *out = strcmp(value, yes) == 0;
    return *out || strcmp(value, no) == 0;
}

/* "allow example.com" */
static int read_rule(struct policy *policy, enum policy_tier tier, char *value, struct error *err)
{
    char *target = strchr(value, ' ');
    bool is_allow;

    if (!target)
        return error_set(err, ERROR_INVALID, "a rule without a target");
    *target++ = '\0';
    if (!read_choice(value, "allow", "deny", &is_allow))
        return error_set(err, ERROR_INVALID, "'%.32s' is neither allow nor deny", value);
    return policy_add(policy, tier, is_allow, target, err);
}

static int read_line(struct policy *policy, char *line, struct error *err)
{
    char *value = strchr(line, ' ');
    bool is_good = false;

    if (!value)
        return error_set(err, ERROR_INVALID, "the line '%.64s' is cut off", line);
    *value++ = '\0';
    for (int tier = POLICY_ALWAYS; tier <= POLICY_BASELINE; tier++) {
        if (strcmp(line, tiers[tier].word) == 0)
            return read_rule(policy, (enum policy_tier)tier, value, err);
    }
    if (strcmp(line, "policy") == 0)
        is_good = strcmp(value, "1") == 0;
    else if (strcmp(line, "mode") == 0)
        is_good = read_mode(policy, value);
    else if (strcmp(line, "default") == 0)
        is_good = read_choice(value, "allow", "deny", &policy->is_default_allow);
    else if (strcmp(line, "observe") == 0)
        is_good = read_choice(value, "yes", "no", &policy->is_observing);
    else if (strcmp(line, "secrets") == 0)
        is_good = read_choice(value, "yes", "no", &policy->has_secrets);
    if (!is_good)
        return error_set(err, ERROR_INVALID, "'%.32s %.32s' is not understood", line, value);
    return 0;
}

int policy_read(const char *text, struct policy *out, struct error *err)
{
    autopolicy policy = {0};

    if (strlen(text) > TEXT_MAX || strncmp(text, "policy ", 7) != 0)
        return error_set(err, ERROR_INVALID, "this is no policy");
    autofree char *copy = xstrdup(text);
    char *rest = copy;
    for (char *line; (line = strsep(&rest, "\n"));) {
        if (*line && read_line(&policy, line, err) < 0)
            return error_wrap(err, "read a policy");
    }
    *out = policy;
    policy = (struct policy){0};
    return 0;
}
