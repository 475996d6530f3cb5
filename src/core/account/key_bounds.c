/* SPDX-License-Identifier: Apache-2.0 */
/* What a key can be; see key_bounds.h. */
#include "core/account/key_bounds.h"

#include "base/label.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "core/account/account_impl.h"
#include "core/account/account_info_impl.h"
#include "runtime/catalog.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NAME_MAXIMUM 200
#define RUNTIMES_MAXIMUM 64
#define RULES_MAXIMUM 64
#define SELECTOR_MOST 16 // names and values

static int deny(struct error *err, const char *why)
{
    return error_refuse(err, ERROR_DENIED, "key", "%s", why);
}

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            return false;
    return true;
}

static int check_name(const char *name, struct error *err)
{
    if (strlen(name) > NAME_MAXIMUM || !utf8_is_valid(name, strlen(name)) || !is_plain(name))
        return error_refuse(err, ERROR_INVALID, "key",
                            "a name has at most %d bytes of UTF-8, without control characters",
                            NAME_MAXIMUM);
    return 0;
}

static int check_member(const char *member, struct error *err)
{
    size_t length = strlen(member);

    if (length == 0 || length >= MEMBER_TEXT || !utf8_is_valid(member, length) || !is_plain(member))
        return error_refuse(
            err, ERROR_INVALID, "key",
            "an owner is a name of 1 to %d bytes of UTF-8, without control characters",
            MEMBER_TEXT - 1);
    return 0;
}

static int check_quota(const struct quota *quota, struct error *err)
{
    const int64_t *figures = (const int64_t *)quota;

    for (size_t i = 0; i < sizeof *quota / sizeof *figures; i++)
        if (figures[i] < 0)
            return error_refuse(err, ERROR_INVALID, "quota",
                                "a quota is 0, for none, or more: not %lld", (long long)figures[i]);
    return 0;
}

static int check_runtimes(const char *const *runtimes, struct error *err)
{
    size_t count = 0;

    for (; runtimes && runtimes[count]; count++)
        if (!*runtimes[count] || strlen(runtimes[count]) > NAME_MAXIMUM)
            return error_refuse(err, ERROR_INVALID, "key", "a runtime without a name");
    if (runtimes && (count == 0 || count > RUNTIMES_MAXIMUM))
        return error_refuse(err, ERROR_INVALID, "key",
                            "name 1 to %d runtimes, or leave them out for all", RUNTIMES_MAXIMUM);
    return 0;
}

static int check_rules(const char *const *rules, struct error *err)
{
    size_t count = 0;

    for (; rules && rules[count]; count++)
        if (!*rules[count] || strlen(rules[count]) > NAME_MAXIMUM)
            return error_refuse(err, ERROR_INVALID, "key", "a rule of networks without a text");
    if (count > RULES_MAXIMUM)
        return error_refuse(err, ERROR_INVALID, "key", "at most %d rules of networks",
                            RULES_MAXIMUM);
    return 0;
}

static int check_selector(const char *text, struct error *err)
{
    autoselector selector = {0};

    if (!text)
        return 0;
    if (strlen(text) >= SELECTOR_TEXT)
        return error_refuse(err, ERROR_INVALID, "labels", "a key's selector has at most %d bytes",
                            SELECTOR_TEXT - 1);
    if (label_selector_parse(text, &selector, err) < 0)
        return -1;
    size_t count =
        selector.count; // together with what a list is asked for there must be room in a statement
    for (size_t i = 0; i < selector.count; i++)
        count += selector.terms[i].n_values;
    return count <= SELECTOR_MOST
               ? 0
               : error_refuse(err, ERROR_INVALID, "labels",
                              "a key's selector has at most %d names and values", SELECTOR_MOST);
}

static int check_values(const struct key_record *record, struct error *err)
{
    if (check_name(record->name, err) < 0 || check_quota(&record->quota, err) < 0 ||
        check_runtimes(record->runtimes, err) < 0 || check_rules(record->network_allow, err) < 0)
        return -1;
    if (check_selector(record->selector, err) < 0)
        return -1;
    return record->member ? check_member(record->member, err) : 0;
}

static bool is_bounded(const struct actor *actor)
{
    static const struct quota none;
    return actor->has_rules || actor->tools || memcmp(&actor->quota, &none, sizeof none) != 0;
}

// Whether `actor` may give away these scopes to this member's key.
static int check_might(const struct actor *actor, unsigned scopes, const char *member,
                       struct error *err)
{
    const struct owner owner = {.organisation = actor->organisation, .member = member};
    unsigned beyond = scopes & ~actor->scopes;

    if (actor_refuse_token(actor, "make or change keys", err) < 0)
        return -1;
    if (beyond)
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key has not the scope '%s' and cannot give it to another",
                            scope_name(beyond & -beyond));
    if (is_bounded(actor))
        return deny(err, "your key has quotas or restrictions of its own: others that it makes "
                         "would have more than that together");
    if (!actor_sees(actor, &owner))
        return deny(err, "your key is its owner's and can make keys of that owner alone");
    return 0;
}

// No later than the key that asks.
static int check_expiry(struct accounts *accounts, const struct actor *actor, int64_t *expires_at,
                        struct error *err)
{
    autokey own = {0};

    if (!*actor->key_id)
        return 0;
    if (store_key_get(accounts->store, actor->key_id, &own, err) < 0)
        return -1;
    if (own.expires_at && !*expires_at)
        *expires_at = own.expires_at;
    if (own.expires_at && *expires_at > own.expires_at)
        return deny(err, "your key expires before that: a key it makes cannot outlive it");
    return 0;
}

static unsigned scopes_wanted(const struct key_request *request, const char *member)
{
    unsigned usual = SCOPES_USUAL | (member ? 0 : SCOPE_ORGANISATION);
    unsigned scopes = request->scopes                        ? request->scopes
                      : request->maker && !request->is_admin ? usual & request->maker->scopes
                                                             : usual;
    return scopes | (request->is_admin ? SCOPE_ADMIN : 0);
}

static int check_whose(unsigned scopes, const char *member, struct error *err)
{
    if (member || (scopes & SCOPE_ORGANISATION))
        return 0;
    return error_refuse(err, ERROR_INVALID, "key",
                        "a key without an owner sees nothing: name its owner, or give it the scope "
                        "'organisation'");
}

int key_bounds_settle(struct accounts *accounts, const struct key_request *request,
                      struct key_record *record, char scopes[SCOPES_TEXT],
                      char tools[MCP_TOOLS_TEXT], struct error *err)
{
    const struct actor *maker = request->maker;
    const char *own = maker && *maker->member ? maker->member : NULL;

    record->name = request->name ? request->name : "";
    record->member = request->member ? request->member : own;
    record->made_by = maker && *maker->key_id ? maker->key_id : NULL;
    record->runtimes = request->runtimes;
    record->has_no_network = request->has_no_network;
    record->network_allow = request->network_allow;
    record->selector = request->selector;
    record->tools = request->tools ? mcp_tools_write(request->tools, tools) : NULL;
    record->quota = request->quota;
    record->expires_at = request->expires_at;
    unsigned wanted = scopes_wanted(request, record->member);
    (void)scopes_write(wanted, scopes);
    if (check_values(record, err) < 0 || check_whose(wanted, record->member, err) < 0)
        return -1;
    if (!maker)
        return 0;
    if (check_might(maker, wanted, record->member, err) < 0)
        return -1;
    return check_expiry(accounts, maker, &record->expires_at, err);
}

static void apply(const struct key_change *change, struct key_record *record)
{
    if (change->has_name)
        record->name = change->name;
    if (change->has_runtimes)
        record->runtimes = change->runtimes;
    if (change->has_network)
        record->has_no_network = change->has_no_network;
    if (change->has_network_allow)
        record->network_allow = change->network_allow;
    if (change->has_selector)
        record->selector = change->selector;
    if (change->has_quota)
        record->quota = change->quota;
    if (change->has_expiry)
        record->expires_at = change->expires_at;
}

int key_bounds_change(struct accounts *accounts, const struct actor *actor,
                      const struct key_change *change, struct key_record *record,
                      char scopes[SCOPES_TEXT], char tools[MCP_TOOLS_TEXT], struct error *err)
{
    unsigned before = scopes_read(record->scopes);
    unsigned wanted = change->has_scopes ? change->scopes : before;

    apply(change, record);
    if (change->has_tools)
        record->tools = change->tools ? mcp_tools_write(change->tools, tools) : NULL;
    record->scopes = scopes_write(wanted, scopes);
    if (check_values(record, err) < 0 || check_whose(wanted, record->member, err) < 0 ||
        check_might(actor, before | wanted, record->member, err) < 0)
        return -1;
    return change->has_expiry ? check_expiry(accounts, actor, &record->expires_at, err) : 0;
}

static bool allows(const char *const *allowed, const char *runtime)
{
    autofree char *wanted = runtime_full_name(runtime);

    for (; *allowed; allowed++) {
        autofree char *name = runtime_full_name(*allowed);
        if (strcmp(name, wanted) == 0)
            return true;
    }
    return false;
}

bool actor_selects(const struct actor *actor, const char *const *labels)
{
    autoselector selector = {0};
    struct error ignored = {0};

    if (!*actor->selector)
        return true;
    return label_selector_parse(actor->selector, &selector, &ignored) == 0 &&
           label_selector_matches(&selector, labels);
}

int actor_need_labels(const struct actor *actor, const char *const *labels, struct error *err)
{
    if (actor_selects(actor, labels))
        return 0;
    return error_refuse(err, ERROR_DENIED, "key",
                        "your key is for sandboxes with the labels '%s' alone: give it those",
                        actor->selector);
}

static bool is_rule_among(const char *const *rules, const char *rule)
{
    for (; *rules; rules++) {
        if (strcasecmp(*rules, rule) == 0)
            return true;
    }
    return false;
}

/* A network that leads to nothing but what the key's list says. */
static int check_network(const struct key_record *key, const struct key_wish *wish,
                         struct error *err)
{
    const char *const *allow = wish->network->allow;

    if (key->has_no_network)
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key is not for sandboxes with a network");
    if (!key->network_allow)
        return 0;
    if (wish->is_open || wish->network->is_observed)
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key is for networks that lead to some places alone: name them "
                            "with network.allow, and let default be deny and observe false");
    for (; allow && *allow; allow++) {
        if (!is_rule_among(key->network_allow, *allow))
            return error_refuse(err, ERROR_DENIED, "key",
                                "your key is not for networks that lead to '%.100s'", *allow);
    }
    return 0;
}

int key_rules_check(struct accounts *accounts, const struct actor *actor,
                    const struct key_wish *wish, struct error *err)
{
    const char *runtime = wish->runtime;
    autokey key = {0};

    if (!actor->has_rules)
        return 0;
    if (actor_need_labels(actor, wish->labels, err) < 0)
        return -1;
    if (store_key_get(accounts->store, actor->key_id, &key, err) < 0)
        return -1;
    if (key.runtimes && !allows(key.runtimes, runtime))
        return error_refuse(err, ERROR_DENIED, "key",
                            "your key is not for sandboxes of runtime '%.80s'", runtime);
    return wish->network && wish->network->is_enabled ? check_network(&key, wish, err) : 0;
}
