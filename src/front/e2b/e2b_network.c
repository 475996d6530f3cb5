/* SPDX-License-Identifier: Apache-2.0 */
/* Networks of sandboxes; see e2b_network.h. */
#include "front/e2b/e2b_network.h"

#include "front/e2b/e2b_template.h"

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
    if (network->rules && network->rules->count)
        return error_set(err, ERROR_INVALID,
                         "network.rules: requests are not changed on their way here; use allowOut "
                         "and denyOut");
    if (network->proxy && network->proxy->kind != VALUE_NULL)
        return error_set(err, ERROR_INVALID,
                         "network.egressProxy: is the operator's to set here (burrow serve)");
    return 0;
}

int e2b_network_ask(struct call *call, bool internet, const struct e2b_network_body *network,
                    struct sandbox_request *request, struct error *err)
{
    (void)call;
    (void)internet;
    (void)request;
    return network ? check(network, err) : 0;
}

int e2b_network_change(struct call *call, const char *sandbox_id,
                       const struct e2b_network_body *network, struct error *err)
{
    (void)call;
    (void)sandbox_id;
    return check(network, err);
}
