/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of sandboxes; see e2b_network.h. */
#include "front/e2b/e2b_network.h"

#include "core/core.h"
#include "core/network/network_change.h"
#include "core/sandbox/sandbox_modify.h"

#include <string.h>

#define RULES_MOST 1000

#define AT(member) offsetof(struct e2b_network_body, member)
const struct field e2b_network_fields[] = {
    {"allowOut", FIELD_TEXTS, AT(allow), .is_nullable = true, .maximum = RULES_MOST,
     .is_filled = true},
    {"denyOut", FIELD_TEXTS, AT(deny), .is_nullable = true, .maximum = RULES_MOST,
     .is_filled = true},
    {"allowPublicTraffic", FIELD_BOOL, AT(is_public), .is_nullable = true,
     .has_offset = AT(has_public)},
    {"maskRequestHost", FIELD_TEXT, AT(mask_host), .is_nullable = true, .maximum = 255},
    {"rules", FIELD_VALUE, AT(rules), .is_nullable = true},
    {"egressProxy", FIELD_VALUE, AT(proxy), .is_nullable = true},
    {"httpsPorts", FIELD_VALUE, AT(https_ports), .is_nullable = true},
    {"allow_internet_access", FIELD_BOOL, AT(internet), .is_nullable = true,
     .has_offset = AT(has_internet)},
    {0},
};
#undef AT

const char *e2b_network_keep(struct call *call, const struct data_value *network)
{
    autobuffer text = {.maximum = (size_t)1 << 20};
    struct json_writer json;
    struct error ignored = {0};

    json_writer_init(&json, &text);
    json_map_begin(&json);
    for (const struct data_value *member = network->first; member; member = member->next) {
        if (strcmp(member->key, "egressProxy") == 0) // it has a password
            continue;
        json_key(&json, member->key);
        json_value(&json, member);
    }
    json_map_end(&json);
    return json_writer_finish(&json, &ignored) < 0 ? NULL : call_print(call, "%s", text.data);
}

/* What cannot be had must not be passed over in silence. */
static int check(const struct e2b_network_body *network, struct error *err)
{
    const char *const letters =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_:[]${}";

    if (network->mask_host && network->mask_host[strspn(network->mask_host, letters)])
        return error_set(err, ERROR_INVALID,
                         "network.maskRequestHost: is a host, as in 'localhost:${PORT}'");
    if (network->rules && network->rules->count)
        return error_set(err, ERROR_INVALID,
                         "network.rules: requests are not changed on their way here; use allowOut "
                         "and denyOut");
    if (network->proxy && network->proxy->kind != VALUE_NULL)
        return error_set(err, ERROR_INVALID,
                         "network.egressProxy: is the operator's to set here (burrow serve)");
    return 0;
}

static bool is_everything(const char *text)
{
    return strcmp(text, "0.0.0.0/0") == 0 || strcmp(text, "0.0.0.0") == 0 || strcmp(text, "*") == 0;
}

/* Those that are not everything; *has_all: one is. */
static const char *const *list_of(struct call *call, const char *const *from, bool *has_all)
{
    size_t count = 0;

    while (from && from[count])
        count++;
    const char **list = call_alloc(call, (count + 1) * sizeof *list);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_everything(from[i]))
            *has_all = true;
        else
            list[kept++] = from[i];
    }
    return list;
}

/*
 * Theirs: what is allowed wins over what is denied, and all else is open. Ours: what is denied wins. So a list of what is allowed has a meaning
 * only where everything else is denied; the two together, where neither is everything, cannot be said.
 */
static int translate(struct call *call, bool internet, const struct e2b_network_body *network,
                     struct network_change *out, struct error *err)
{
    bool allows_all = false, denies_all = !internet;
    const char *const none[] = {NULL};
    const char *const *allow =
        list_of(call, network && network->allow ? network->allow : none, &allows_all);
    const char *const *deny =
        list_of(call, network && network->deny ? network->deny : none, &denies_all);

    if (network && check(network, err) < 0)
        return -1;
    bool is_closed = denies_all && !allow[0] && !allows_all;
    *out = (struct network_change){.is_whole = true,
                                   .has_enabled = true,
                                   .is_enabled = !is_closed,
                                   .has_default = true,
                                   .otherwise =
                                       denies_all && !allows_all ? NETWORK_DENY : NETWORK_ALLOW};
    if (is_closed)
        return 0;
    if (denies_all && !allows_all) {
        out->allow = allow; // what else is denied is denied anyway
    } else if (!allows_all) {
        if (allow[0] && deny[0])
            return error_set(err, ERROR_INVALID,
                             "network.allowOut: together with denyOut it must be denyOut "
                             "['0.0.0.0/0']: an exception from an exception cannot be made here");
        out->deny = deny;
    }
    return 0;
}

int e2b_network_ask(struct call *call, bool internet, const struct e2b_network_body *network,
                    struct sandbox_request *request, struct error *err)
{
    struct network_change *change = call_alloc(call, sizeof *change);

    if (translate(call, internet, network, change, err) < 0)
        return -1;
    request->network = change;
    return 0;
}

bool e2b_network_is_refused(const struct error *err)
{
    if (error_is_about(err, "network.enabled") || error_is_about(err, "network"))
        return true;
    return error_is(err, ERROR_DENIED) && strstr(err->text, "sandboxes with a network");
}

int e2b_network_change(struct call *call, const struct sandbox_info *info,
                       const struct e2b_network_body *network, struct error *err)
{
    struct network_change change;
    struct sandbox_changes changes = {.network = &change};
    autoclear(sandbox_info) now = {0};

    // One that was made without gets what is named and no more, until it is asked for.
    bool internet = network->has_internet ? network->internet : info->network.is_enabled;
    if (translate(call, internet, network, &change, err) < 0)
        return -1;
    if (!change.is_enabled) { // an interface does not go away: nothing is let through
        change.is_enabled = info->network.is_enabled;
    }
    return sandbox_modify(call->core->sandboxes, &call->actor, info->id, &changes, &now, err);
}
