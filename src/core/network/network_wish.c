/* SPDX-License-Identifier: Apache-2.0 */
/* What the owner of a sandbox wants of its network; see network_wish.h. */
#include "core/network/network_wish.h"

#include "base/mem.h"
#include "base/strings.h"
#include "core/settings.h"
#include "egress/egress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void network_wish_clear(struct network_wish *wish)
{
    free((void *)wish->allow);
    free((void *)wish->deny);
    free((void *)wish->secrets);
    *wish = (struct network_wish){0};
}

void network_wish_copy(struct network_wish *to, const struct network_wish *from)
{
    *to = *from;
    to->allow = strings_copy(from->allow);
    to->deny = strings_copy(from->deny);
    to->secrets = strings_copy(from->secrets);
}

bool network_change_says(const struct network_change *change)
{
    return change &&
           (change->is_whole || change->has_enabled || change->allow || change->deny ||
            change->has_default || change->has_observe || change->has_rate || change->has_secrets);
}

static bool is_empty(const char *const *list)
{
    return !list || !*list;
}

bool network_default_allows(const struct network_wish *wish)
{
    if (wish->otherwise != NETWORK_UNSAID)
        return wish->otherwise == NETWORK_ALLOW;
    return is_empty(wish->allow) && !wish->is_observed;
}

int64_t network_rate(const struct core_settings *settings, const struct network_wish *wish)
{
    int64_t most = settings->network.rate_bytes;

    return wish->rate_bytes && (!most || wish->rate_bytes < most) ? wish->rate_bytes : most;
}

// ---- the operator's ----

typedef int add_item(struct policy *policy, const char *item, struct error *err);

/* Each of "a, b, c". */
static int each_item(const char *text, add_item *on_item, struct policy *policy, struct error *err)
{
    while (text && *text) {
        text += strspn(text, ", \t");
        size_t length = strcspn(text, ",");
        size_t shown = length;
        while (shown && strchr(" \t", text[shown - 1]))
            shown--;
        autofree char *item = xstrndup(text, shown);
        if (*item && on_item(policy, item, err) < 0)
            return -1;
        text += length;
    }
    return 0;
}

static int allow_always(struct policy *policy, const char *item, struct error *err)
{
    return policy_add(policy, POLICY_ALWAYS, true, item, err);
}

static int deny_always(struct policy *policy, const char *item, struct error *err)
{
    return policy_add(policy, POLICY_ALWAYS, false, item, err);
}

static int add_baseline(struct policy *policy, const char *item, struct error *err)
{
    static const char allow[] = "allow ", deny[] = "deny ";
    bool is_allow = strncmp(item, allow, sizeof allow - 1) == 0;

    if (!is_allow && strncmp(item, deny, sizeof deny - 1) != 0)
        return error_set(err, ERROR_INVALID,
                         "'%.100s' must begin with 'allow' or 'deny': write 'deny %.100s'", item,
                         item);
    const char *rule = item + (is_allow ? sizeof allow : sizeof deny) - 1;
    return policy_add(policy, POLICY_BASELINE, is_allow, rule + strspn(rule, " "), err);
}

/* What is denied always stands in front: an operator who says both means to be safe. */
static int add_operators(const struct core_settings *settings, struct policy *policy,
                         struct error *err)
{
    const struct network_settings *network = &settings->network;

    if (each_item(network->deny_always, deny_always, policy, err) < 0)
        return error_wrap(err, "network-deny-always");
    if (each_item(network->allow_always, allow_always, policy, err) < 0)
        return error_wrap(err, "network-allow-always");
    if (each_item(network->baseline, add_baseline, policy, err) < 0)
        return error_wrap(err, "network-baseline");
    return 0;
}

int network_settings_check(const struct core_settings *settings, struct error *err)
{
    autopolicy policy = {.mode = POLICY_RULES};

    if (egress_check_resolvers(settings->network.dns, err) < 0)
        return -1;
    return add_operators(settings, &policy, err);
}

// ---- with the owner's ----

static int add_rules(struct policy *policy, const char *const *rules, bool is_allow,
                     const char *noun, struct error *err)
{
    for (size_t i = 0; rules && rules[i]; i++) {
        if (policy_add(policy, POLICY_USER, is_allow, rules[i], err) < 0) {
            (void)error_wrap(err, "%s[%zu]", noun, i);
            return error_about(err, is_allow ? "network.allow" : "network.deny");
        }
    }
    return 0;
}

int network_wish_policy(const struct core_settings *settings, const struct network_wish *wish,
                        struct policy *out, struct error *err)
{
    autopolicy policy = {.mode = wish->is_enabled ? POLICY_RULES : POLICY_OFF,
                         .is_default_allow = network_default_allows(wish),
                         .is_observing = wish->is_observed};

    if (add_rules(&policy, wish->deny, false, "network.deny", err) < 0 ||
        add_rules(&policy, wish->allow, true, "network.allow", err) < 0 ||
        add_operators(settings, &policy, err) < 0)
        return -1;
    if (policy_check(&policy, err) < 0)
        return error_about(err, "network.allow");
    if (wish->is_enabled && policy.count == 0 && policy.is_default_allow && !policy.is_observing)
        policy.mode = POLICY_OPEN;
    *out = policy;
    policy = (struct policy){0};
    return 0;
}

// ---- changes ----

/* As they are written everywhere. */
static int read_rules(const char *const *rules, const char *noun, const char *const **out,
                      struct error *err)
{
    autostrings read = {0};
    char text[POLICY_RULE_TEXT];

    for (size_t i = 0; rules[i]; i++) {
        struct policy_rule rule = {0};
        if (i == NETWORK_RULES_MOST)
            return error_set(err, ERROR_INVALID, "%s: at most %d rules", noun, NETWORK_RULES_MOST);
        if (policy_parse_rule(rules[i], &rule, err) < 0)
            return error_wrap(err, "%s[%zu]", noun, i);
        strings_add(&read, policy_rule_text(&rule, text));
    }
    free((void *)*out);
    *out = read.count ? strings_copy((const char *const *)read.items) : NULL;
    return 0;
}

static int seal_all(const struct core_settings *settings, const struct network_change *change,
                    struct network_wish *wish, struct error *err)
{
    autostrings sealed = {0};

    if (change->n_secrets > NETWORK_SECRETS_MOST)
        return error_refuse(err, ERROR_INVALID, "network.secrets", "network.secrets: at most %d",
                            NETWORK_SECRETS_MOST);
    for (size_t i = 0; i < change->n_secrets; i++) {
        autofree char *text = NULL;
        if (network_secret_seal(settings->data_dir, &change->secrets[i], &text, err) < 0)
            return -1;
        strings_add(&sealed, text);
    }
    free((void *)wish->secrets);
    wish->secrets = sealed.count ? strings_copy((const char *const *)sealed.items) : NULL;
    return 0;
}

static void change_plain(const struct network_change *change, struct network_wish *wish)
{
    bool was_enabled = wish->is_enabled;

    if (change->is_whole) {
        network_wish_clear(wish);
        wish->is_enabled = was_enabled;
    }
    if (change->has_enabled)
        wish->is_enabled = change->is_enabled;
    if (change->has_default)
        wish->otherwise = change->otherwise;
    if (change->has_observe)
        wish->is_observed = change->is_observed;
    if (change->has_rate)
        wish->rate_bytes = change->rate_bytes;
}

static int check_allowed(const struct core_settings *settings, const struct network_wish *wish,
                         struct error *err)
{
    if (!wish->is_enabled || settings->network.is_allowed)
        return 0;
    return error_refuse(err, ERROR_DENIED, "network.enabled",
                        "network.enabled: this server gives sandboxes no network; its operator can "
                        "change that with the setting 'network'");
}

int network_wish_change(const struct core_settings *settings, const struct network_change *change,
                        struct network_wish *wish, struct error *err)
{
    autopolicy checked = {0};
    autowish next = {0};

    network_wish_copy(&next, wish);
    change_plain(change, &next);
    if (check_allowed(settings, &next, err) < 0)
        return -1;
    if (change->allow && read_rules(change->allow, "network.allow", &next.allow, err) < 0)
        return error_about(err, "network.allow");
    if (change->deny && read_rules(change->deny, "network.deny", &next.deny, err) < 0)
        return error_about(err, "network.deny");
    if ((change->has_secrets && seal_all(settings, change, &next, err) < 0) ||
        network_wish_policy(settings, &next, &checked, err) < 0)
        return -1;
    network_wish_clear(wish);
    *wish = next;
    next = (struct network_wish){0};
    return 0;
}
