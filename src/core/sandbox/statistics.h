/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an organisation's sandboxes are doing and have used.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "model/usage.h"

struct sandboxes;

struct statistics {
    int64_t active, running, idle, creating; // sandboxes now
    struct usage_total used;                 // within the time asked for
};
/* to 0: until now. */
int statistics_get(struct sandboxes *sandboxes, const struct actor *actor, int64_t from, int64_t to,
                   struct statistics *out, struct error *err);
