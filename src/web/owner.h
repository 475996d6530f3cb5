/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whose turn a call takes in a lane: its key's, or where it has none its peer's; and within that, its sandbox's.
 * Threads: any.
 */
#pragma once
#include "loop/turns.h"
#include "web/call.h"
#include "web/router.h"

/* So that nobody can tell which keys would share a turn. */
uint64_t owner_new_seed(void);

/* Of a call whose route is known. A key that is not known to be good counts for its peer: else made-up keys would each have a turn. */
struct turns_owner owner_of_call(const struct call *call, const struct router_settings *settings,
                                 uint64_t seed);
