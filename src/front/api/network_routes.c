/* SPDX-License-Identifier: Apache-2.0 */
/* The network of a sandbox: what it is, changes, why something can or cannot be reached, and what was refused. */
#include "core/sandbox/sandbox_modify.h"
#include "core/sandbox/sandbox_network.h"
#include "front/api/api.h"
#include "front/api/network_body.h"
#include "web/query.h"

#include <stdio.h>
#include <string.h>

static const char *const defaults[] = {"deny", "allow"};
static const char *const none[] = {NULL};

// ---- GET, PUT, PATCH /api/v1/sandboxes/{sandbox}/network ----

struct secret_answer {
    const char *host, *header, *env;
};
#define AT(member) offsetof(struct secret_answer, member)
static const struct answer_field secret_fields[] = {
    {"host", ANSWER_TEXT, AT(host), .is_needed = true},
    {"header", ANSWER_TEXT, AT(header), .is_needed = true},
    {"env", ANSWER_TEXT, AT(env), .help = "the operator's variable, without BURROW_SECRET_"},
    {0},
};
#undef AT

struct operator_answer {
    const char *allow_always, *deny_always, *baseline;
};
#define AT(member) offsetof(struct operator_answer, member)
static const struct answer_field operator_fields[] = {
    {"allowAlways", ANSWER_TEXT, AT(allow_always), .help = "before the sandbox's own rules"},
    {"denyAlways", ANSWER_TEXT, AT(deny_always), .help = "before those"},
    {"baseline", ANSWER_TEXT, AT(baseline), .help = "after the sandbox's own rules"},
    {0},
};
#undef AT

struct network_told {
    bool is_enabled, is_observed, is_active;
    const char *const *allow, *const *deny;
    unsigned otherwise;
    int64_t rate_bytes, generation, egress_bytes, refused;
    struct answer_list secrets;
    struct operator_answer operator;
};
#define AT(member) offsetof(struct network_told, member)
static const struct answer_field network_fields[] = {
    {"enabled", ANSWER_BOOL, AT(is_enabled), .is_needed = true},
    {"allow", ANSWER_TEXTS, AT(allow), .is_needed = true},
    {"deny", ANSWER_TEXTS, AT(deny), .is_needed = true, .help = "these win over 'allow'"},
    {"default", ANSWER_WORD, AT(otherwise), .is_needed = true, .words = defaults,
     .n_words = ARRAY_SIZE(defaults), .help = "where no rule fits"},
    {"observe", ANSWER_BOOL, AT(is_observed), .is_needed = true},
    {"rateBytes", ANSWER_INTEGER, AT(rate_bytes), .help = "a second; 0: no limit"},
    {"secrets", ANSWER_LIST, AT(secrets), .is_needed = true, .fields = secret_fields,
     .item_size = sizeof(struct secret_answer),
     .help = "without their values, which are never told"},
    {"generation", ANSWER_INTEGER, AT(generation), .help = "how often it was changed"},
    {"active", ANSWER_BOOL, AT(is_active), .is_needed = true,
     .help = "whether the sandbox runs with it now; else from when it does"},
    {"egressBytes", ANSWER_INTEGER, AT(egress_bytes)},
    {"refused", ANSWER_INTEGER, AT(refused), .help = "how often a way was refused"},
    {"operator", ANSWER_MAP, AT(operator), .is_needed = true, .fields = operator_fields,
     .help = "rules of the server, separated by commas"},
    {0},
};
#undef AT
static const struct route_answer network_answers[] = {{200, network_fields}, {0}};

static int answer_network(struct call *call, const char *id, struct error *err)
{
    autoclear(network_info) info = {0};

    if (sandbox_network_get(call->core->sandboxes, &call->actor, id, &info, err) < 0)
        return -1;
    struct secret_answer *secrets = call_alloc(call, (info.n_secrets + 1) * sizeof *secrets);
    for (size_t i = 0; i < info.n_secrets; i++)
        secrets[i] = (struct secret_answer){info.secrets[i].host, info.secrets[i].header,
                                            info.secrets[i].env};
    const struct network_told told = {
        .is_enabled = info.wish.is_enabled,
        .is_observed = info.wish.is_observed,
        .is_active = info.is_active,
        .allow = info.wish.allow ? info.wish.allow : none,
        .deny = info.wish.deny ? info.wish.deny : none,
        .otherwise = info.is_default_allow,
        .rate_bytes = info.rate_bytes,
        .generation = info.generation,
        .egress_bytes = info.egress_bytes,
        .refused = info.refused,
        .secrets = {secrets, info.n_secrets},
        .operator= {info.allow_always, info.deny_always, info.baseline},
    };
    return api_answer(call, 200, network_fields, &told);
}

static int get_network(struct call *call, struct error *err)
{
    const char *id;

    return api_sandbox(call, 0, &id, err) < 0 ? -1 : answer_network(call, id, err);
}

/* The core calls it as it stands in a sandbox's body: "network.allow". */
static int fail(struct error *err)
{
    static const char prefix[] = "network.";

    if (!err->field[0] && err->noun && strncmp(err->noun, prefix, sizeof prefix - 1) == 0)
        return error_field(err, err->noun + sizeof prefix - 1);
    return -1;
}

static int change(struct call *call, bool is_whole, struct error *err)
{
    struct network_body body = {0};
    struct sandbox_changes changes = {0};
    autoclear(sandbox_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        fields_read(call->body, network_body_fields, &body, err) < 0)
        return -1;
    changes.network = network_body_change(call, &body, is_whole);
    if (changes.network &&
        sandbox_modify(call->core->sandboxes, &call->actor, id, &changes, &info, err) < 0)
        return fail(err);
    return answer_network(call, id, err);
}

static int put_network(struct call *call, struct error *err)
{
    return change(call, true, err);
}

static int patch_network(struct call *call, struct error *err)
{
    return change(call, false, err);
}

// ---- GET /api/v1/sandboxes/{sandbox}/network/why ----

static const struct parameter why_parameters[] = {
    {"host", PARAMETER_TEXT, NULL, "a name, or an address of version 4; needed"},
    {"port", PARAMETER_INTEGER, NULL, "not said: whether the name is resolved at all", .minimum = 0,
     .maximum = 65535},
    {"protocol", PARAMETER_TEXT, NULL, "tcp, udp or icmp; default: tcp"},
    {0},
};
struct why_answer {
    bool is_allowed, would_deny;
    const char *rule, *tier, *reason, *remedy;
};
#define AT(member) offsetof(struct why_answer, member)
static const struct answer_field why_fields[] = {
    {"allowed", ANSWER_BOOL, AT(is_allowed), .is_needed = true},
    {"wouldDeny", ANSWER_BOOL, AT(would_deny), .is_needed = true,
     .help = "it is allowed only because all is observed"},
    {"rule", ANSWER_TEXT, AT(rule), .help = "that decides; not there: no rule does"},
    {"tier", ANSWER_TEXT, AT(tier), .is_needed = true, .help = "whose rule"},
    {"reason", ANSWER_TEXT, AT(reason), .is_needed = true},
    {"remedy", ANSWER_TEXT, AT(remedy), .help = "what to do about a refusal"},
    {0},
};
#undef AT
static const struct route_answer why_answers[] = {{200, why_fields}, {0}};

static int fail_why(struct error *err)
{
    if (error_is_about(err, "host"))
        return error_field(err, "host");
    return error_is_about(err, "protocol") ? error_field(err, "protocol") : -1;
}

static int get_why(struct call *call, struct error *err)
{
    const struct network_question question = {
        .host = query_text(call->query, "host"),
        .port = query_integer(call->query, "port", 0),
        .protocol = query_text(call->query, "protocol"),
    };
    struct network_answer found = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0)
        return -1;
    if (!question.host) {
        (void)error_set(err, ERROR_INVALID, "host: is needed: whether the sandbox may go where?");
        return error_field(err, "host");
    }
    if (sandbox_network_why(call->core->sandboxes, &call->actor, id, &question, &found, err) < 0)
        return fail_why(err);
    const struct why_answer answer = {
        .is_allowed = found.is_allowed,
        .would_deny = found.would_deny,
        .rule = found.rule[0] ? found.rule : NULL,
        .tier = found.tier,
        .reason = found.reason,
        .remedy = found.remedy[0] ? found.remedy : NULL,
    };
    return api_answer(call, 200, why_fields, &answer);
}

// ---- GET /api/v1/sandboxes/{sandbox}/network/observed ----

struct seen_answer {
    const char *host, *protocol, *rule;
    int64_t port, attempts, first_at, last_at;
    bool has_port;
};
#define AT(member) offsetof(struct seen_answer, member)
static const struct answer_field seen_fields[] = {
    {"host", ANSWER_TEXT, AT(host), .is_needed = true, .help = "its name, or its address"},
    {"port", ANSWER_INTEGER, AT(port), .has_offset = AT(has_port),
     .help = "not there: only its name was asked for"},
    {"protocol", ANSWER_TEXT, AT(protocol), .is_needed = true},
    {"rule", ANSWER_TEXT, AT(rule), .help = "that refuses it; not there: no rule allows it"},
    {"attempts", ANSWER_INTEGER, AT(attempts)},
    {"firstAt", ANSWER_TIME, AT(first_at), .is_needed = true},
    {"lastAt", ANSWER_TIME, AT(last_at), .is_needed = true},
    {0},
};
#undef AT

struct policy_told {
    const char *const *allow, *const *deny;
    unsigned otherwise;
};
#define AT(member) offsetof(struct policy_told, member)
static const struct answer_field policy_fields[] = {
    {"allow", ANSWER_TEXTS, AT(allow), .is_needed = true},
    {"deny", ANSWER_TEXTS, AT(deny), .is_needed = true},
    {"default", ANSWER_WORD, AT(otherwise), .is_needed = true, .words = defaults,
     .n_words = ARRAY_SIZE(defaults)},
    {0},
};
#undef AT

struct observed_answer {
    struct answer_list items, refused;
    struct policy_told policy;
};
#define AT(member) offsetof(struct observed_answer, member)
static const struct answer_field observed_fields[] = {
    {"items", ANSWER_LIST, AT(items), .is_needed = true, .fields = seen_fields,
     .item_size = sizeof(struct seen_answer),
     .help = "what was let through while it was observed and would be refused; most attempts "
             "first"},
    {"refused", ANSWER_LIST, AT(refused), .is_needed = true, .fields = seen_fields,
     .item_size = sizeof(struct seen_answer), .help = "what was refused"},
    {"policy", ANSWER_MAP, AT(policy), .is_needed = true, .fields = policy_fields,
     .help = "that would allow all that was seen, as PUT network takes it"},
    {0},
};
#undef AT
static const struct route_answer observed_answers[] = {{200, observed_fields}, {0}};

static struct answer_list list_seen(struct call *call, const struct network_seen_infos *infos)
{
    struct seen_answer *items = call_alloc(call, (infos->count + 1) * sizeof *items);

    for (size_t i = 0; i < infos->count; i++) {
        const struct network_seen_info *info = &infos->items[i];
        items[i] = (struct seen_answer){
            .host = info->host,
            .protocol = info->protocol,
            .rule = info->rule,
            .port = info->port,
            .has_port = info->port != 0,
            .attempts = info->attempts,
            .first_at = info->first_at,
            .last_at = info->last_at,
        };
    }
    return (struct answer_list){items, infos->count};
}

static bool has_rule(const char *const *rules, const char *rule)
{
    for (; *rules; rules++) {
        if (strcmp(*rules, rule) == 0)
            return true;
    }
    return false;
}

/* A name that was also connected to needs no rule of its own for the question. */
static bool is_only_asked(const struct network_seen_infos *seen, size_t at)
{
    if (seen->items[at].port != 0)
        return false;
    for (size_t i = 0; i < seen->count; i++) {
        if (seen->items[i].port != 0 && strcmp(seen->items[i].host, seen->items[at].host) == 0)
            return true;
    }
    return false;
}

/* Its own rules, and one for each place that it went to. */
static const char *const *ready_rules(struct call *call, const struct network_seen_infos *seen,
                                      const char *const *now)
{
    size_t count = 0;

    while (now && now[count])
        count++;
    const char **rules = call_alloc(call, (count + seen->count + 1) * sizeof *rules);
    for (size_t i = 0; i < count; i++)
        rules[i] = call_print(call, "%s", now[i]);
    rules[count] = NULL;
    for (size_t i = 0; i < seen->count && count < NETWORK_RULES_MOST; i++) {
        const struct network_seen_info *info = &seen->items[i];
        const char *rule =
            info->port ? call_print(call, "%s:%d/%s", info->host, (int)info->port, info->protocol)
                       : info->host;
        if (is_only_asked(seen, i) || has_rule(rules, rule))
            continue;
        rules[count++] = rule;
        rules[count] = NULL;
    }
    return rules;
}

static int get_observed(struct call *call, struct error *err)
{
    struct sandboxes *sandboxes = call->core->sandboxes;
    autoclear(network_seen_infos) observed = {0};
    autoclear(network_seen_infos) refused = {0};
    autoclear(network_info) info = {0};
    const char *id;

    if (api_sandbox(call, 0, &id, err) < 0 ||
        sandbox_network_seen(sandboxes, &call->actor, id, false, &observed, err) < 0 ||
        sandbox_network_seen(sandboxes, &call->actor, id, true, &refused, err) < 0 ||
        sandbox_network_get(sandboxes, &call->actor, id, &info, err) < 0)
        return -1;
    const struct observed_answer answer = {
        .items = list_seen(call, &observed),
        .refused = list_seen(call, &refused),
        .policy = {.allow = ready_rules(call, &observed, info.wish.allow),
                   .deny = info.wish.deny ? info.wish.deny : none,
                   .otherwise = info.is_default_allow},
    };
    return api_answer(call, 200, observed_fields, &answer);
}

#define ONE API_TOP "/sandboxes/{sandbox}/network"

const struct route api_network_routes[] = {
    {"GET", ONE, ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, get_network,
     .summary = "where a sandbox may go", .answers = network_answers, .needs = SCOPE_READ},
    {"PUT", ONE, ROUTE_SLOW, ACCESS_KEY, BODY_JSON, put_network,
     .summary = "replaces where a sandbox may go; answers once it is in force, and connections "
                "that are no longer allowed are cut",
     .fields = network_body_fields, .answers = network_answers, .needs = SCOPE_RUN},
    {"PATCH", ONE, ROUTE_SLOW, ACCESS_KEY, BODY_JSON, patch_network,
     .summary = "the same for what is said; the rest stays", .fields = network_body_fields,
     .answers = network_answers, .needs = SCOPE_RUN},
    {"GET", ONE "/why", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, get_why,
     .summary = "whether a sandbox may go somewhere, and which rule says so",
     .query = why_parameters, .answers = why_answers, .needs = SCOPE_READ},
    {"GET", ONE "/observed", ROUTE_CONTROL, ACCESS_KEY, BODY_NONE, get_observed,
     .summary = "where a sandbox wanted to go that no rule allows, and a policy that would",
     .answers = observed_answers, .needs = SCOPE_READ},
    {0},
};
