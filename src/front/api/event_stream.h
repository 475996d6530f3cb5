/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Following events over a response: what came since a number, then what comes, until the client goes or the server stops.
 * Threads: any.
 */
#pragma once
#include "web/call.h"
#include "web/event_format.h"

/* Which events are wanted, beside those that the caller may see. */
struct event_wish {
    const char *sandbox_id;   // NULL: of all, and of none
    const char *const *kinds; // patterns, ended by NULL; NULL: all
    int64_t after;            // only higher numbers
};

/*
 * Answers 200 and goes on by itself; everything of the wish is copied. The client gets each event once, in order. One that is slow is further behind, and no
 * more is kept for it than a response keeps. Behind what the server has forgotten, the answer is cut.
 */
void event_stream_start(struct call *call, enum event_format format, const struct event_wish *wish);
