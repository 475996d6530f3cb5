/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where sandboxes may connect to, as E2B's clients say it.
 * Threads: any.
 */
#pragma once
#include "core/create.h"
#include "front/e2b/e2b_impl.h"

struct e2b_network_body {
    const char **allow, **deny;
    bool is_public, has_public; // who may reach its ports
    const char *mask_host;
    const struct data_value *rules, *proxy, *https_ports;
    bool internet, has_internet; // of PUT /network
};
extern const struct field e2b_network_fields[];

/* As it was given, for telling it again. */
const char *e2b_network_keep(struct call *call, const struct data_value *network);

/* What a new sandbox is asked for; network NULL: nothing was said. ERROR_INVALID. */
int e2b_network_ask(struct call *call, bool internet, const struct e2b_network_body *network,
                    struct sandbox_request *request, struct error *err);
/* Whether a create failed because its key, the operator or the machine gives no network. */
bool e2b_network_is_refused(const struct error *err);
/* Of one that lives: all of it anew; blocks. */
int e2b_network_change(struct call *call, const struct sandbox_info *info,
                       const struct e2b_network_body *network, struct error *err);
