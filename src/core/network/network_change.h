/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is asked for of a sandbox's network, at its creation or later.
 * Threads: plain values.
 */
#pragma once
#include "core/network/network_secret.h"
#include "model/network.h"

#include <stddef.h>

#define NETWORK_RULES_MOST 256 // of one list of a sandbox

/* All zero says nothing. */
struct network_change {
    bool is_whole; // what is not said becomes what it is in a new sandbox; else it stays
    bool has_enabled, is_enabled;
    const char *const *allow, *const *deny; // NULL-terminated; NULL: not said
    bool has_default, has_observe, has_rate, has_secrets;
    enum network_default otherwise;
    bool is_observed;
    int64_t rate_bytes;
    const struct network_secret *secrets;
    size_t n_secrets;
};
/* Whether anything is said. */
bool network_change_says(const struct network_change *change);
