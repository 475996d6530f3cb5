/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox in a body: at its creation, in a change, and alone. Memory is the call's.
 * Threads: plain values.
 */
#pragma once
#include "core/network/network_change.h"
#include "web/call.h"
#include "web/fields.h"

struct network_secret_body {
    const char *host, *header, *value;
};
struct network_body {
    const char **allow, **deny;
    const char *otherwise;
    int64_t rate_bytes;
    struct field_list secrets;
    bool is_enabled, is_observed;
    bool has_enabled, has_observe, has_rate, has_secrets;
};
extern const struct field network_body_fields[];

/* What of it is said, as the core wants it; NULL: nothing is. */
const struct network_change *network_body_change(struct call *call, const struct network_body *body,
                                                 bool is_whole);
