/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the owner of a sandbox wants of its network, from what was asked; and as a policy, with the operator's rules around it.
 * Threads: any but loops; network_default_allows: any.
 */
#pragma once
#include "core/network/network_change.h"
#include "policy/policy.h"

struct core_settings;

/* `wish` owns its strings; on failure it is as it was. Rules are written as policy.h writes them. ERROR_INVALID, noun "network.allow", "network.deny", "network.rateBytes" or
 * "network.secrets"; ERROR_DENIED, noun "network.enabled", where this server gives no network. */
int network_wish_change(const struct core_settings *settings, const struct network_change *change,
                        struct network_wish *wish, struct error *err);
void network_wish_copy(struct network_wish *to,
                       const struct network_wish *from); // `to` is written over
void network_wish_clear(struct network_wish *wish);
#define autowish __attribute__((cleanup(network_wish_clear))) struct network_wish

/* What holds where no rule fits. */
bool network_default_allows(const struct network_wish *wish);
/* The server's, or less. 0: none. */
int64_t network_rate(const struct core_settings *settings, const struct network_wish *wish);

/* With the operator's rules. */
int network_wish_policy(const struct core_settings *settings, const struct network_wish *wish,
                        struct policy *out, struct error *err);
/* Whether the operator's rules can be read. */
int network_settings_check(const struct core_settings *settings, struct error *err);
