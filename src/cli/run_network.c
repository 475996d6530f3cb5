/* SPDX-License-Identifier: Apache-2.0 */
/* What the box of `burrow run` may connect to; see run_network.h. */
#include "cli/run_network.h"

#include "base/buffer.h"
#include "base/clock.h"
#include "egress/egress.h"
#include "engine/gateway.h"

/* Whoever runs this is root of the machine: what is closed to users of a server is theirs to open, by its own address. */
static enum policy_tier tier_of(const struct policy_rule *rule)
{
    bool is_closed = rule->target == POLICY_HOST ||
                     (rule->target == POLICY_NETWORK && policy_is_closed_address(rule->address));
    return is_closed ? POLICY_ALWAYS : POLICY_USER;
}

static int add_rules(struct policy *policy, const struct option_list *list, bool is_allow,
                     struct error *err)
{
    for (size_t i = 0; i < list->count; i++) {
        struct policy_rule rule = {0};
        if (policy_parse_rule(list->items[i], &rule, err) < 0 ||
            policy_add(policy, is_allow ? tier_of(&rule) : POLICY_USER, is_allow, list->items[i],
                       err) < 0)
            return error_wrap(err, "--%s '%.200s'", is_allow ? "allow" : "deny", list->items[i]);
    }
    return 0;
}

int run_network_read(struct run_options *options, struct run_network *network, struct error *err)
{
    struct policy *policy = &network->policy;

    if (egress_check_resolvers(options->network_dns, err) < 0)
        return -1;
    options->has_network |= options->allow.count + options->deny.count > 0;
    if (!options->has_network)
        return 0;
    policy->mode = options->allow.count + options->deny.count > 0 ? POLICY_RULES : POLICY_OPEN;
    policy->is_default_allow = options->allow.count == 0;
    // The first that fits decides: what is refused is refused whatever else allows it.
    if (add_rules(policy, &options->deny, false, err) < 0 ||
        add_rules(policy, &options->allow, true, err) < 0)
        return -1;
    return policy_check(policy, err);
}

static int tell_egress(struct run_network *network, const struct run_options *options,
                       uint32_t generation, struct error *err)
{
    const struct egress_settings settings = {.data_dir = options->data_dir,
                                             .resolvers = options->network_dns};
    struct egress_box told = {.slot = network->slot, .generation = generation};
    autobuffer text = {0};

    if (policy_write(&network->policy, &text, err) < 0)
        return -1;
    told.policy = text.data;
    if (egress_open(&settings, &network->egress, err) < 0)
        return -1;
    return egress_set(network->egress, &told, err);
}

int run_network_open(struct run_network *network, const struct run_options *options,
                     struct engine *engine, struct box *box, struct error *err)
{
    struct policy_kernel kernel = {0};
    struct gateway *gateway = NULL;
    uint32_t generation = (uint32_t)clock_monotonic_us();

    network->slot = box_slot(box);
    if (options->network_rate > 0 && box_set_network_rate(box, options->network_rate, err) < 0)
        return -1;
    if (engine_gateway(engine, &gateway, err) < 0 ||
        tell_egress(network, options, generation, err) < 0)
        return -1;
    policy_compile(&network->policy, &kernel);
    int result = gateway_admit(gateway, network->slot, &kernel, generation, err);
    policy_kernel_clear(&kernel);
    return result;
}

void run_network_clear(struct run_network *network)
{
    struct error ignored = {0};

    if (network->egress)
        (void)egress_remove(network->egress, network->slot,
                            &ignored); // it refuses who it does not know
    egress_free(network->egress);
    network->egress = NULL;
    policy_clear(&network->policy);
}
