/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network of a sandbox as its owner wants it: whether there is one, and where it leads. Rules are texts ("*.example.com:443/tcp"), which
 * policy/policy.h reads.
 * Threads: plain values.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* What holds where no rule fits. */
enum network_default {
    NETWORK_UNSAID, // deny where something is allowed by a rule, or all is observed; allow else
    NETWORK_ALLOW,
    NETWORK_DENY,
    NETWORK_DEFAULTS,
};

struct network_wish {
    bool is_enabled;          // false: no interface at all
    const char *const *allow; // rules, NULL-terminated; NULL: none
    const char *const *deny;  // likewise; these win
    enum network_default otherwise;
    bool is_observed;   // what would be refused is let through, and noted
    int64_t rate_bytes; // a second, out of the sandbox; 0: the server's
    /* "HOST HEADER env:NAME", or "HOST HEADER sealed:HEX"; NULL: none. */
    const char *const *secrets;
};
