/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One webhook as the sender has it: how far it has looked, and what it is told next.
 * Threads: one per object.
 */
#pragma once
#include "base/buffer.h"
#include "core/webhook/webhook_delivery.h"

struct event_channel;

struct target {
    struct webhook_info hook;
    struct actor actor; // whom it is told as, as of the last look
    int64_t place;      // up to which it has looked; at least hook.event_cursor
    int64_t passed_at;  // when that was recorded last
    bool is_kept;       // while reading again which there are
    // What is being sent:
    uint64_t post_id; // 0: nothing
    int64_t event_number;
    char event_kind[64];
    int64_t started_at;
};

/* What to make of an event, of which it gets the number and kind by itself. */
typedef int (*target_render)(const struct event_info *event, struct buffer *out, struct error *err);

/*
 * Looks for the next event that it is to be told of, and that target->actor may see, a bounded number of them. 1: `out` has it, as JSON. 0: none so far. *is_more: it has not looked at
 * all there are.
 */
int target_next(struct target *target, struct event_channel *events, struct webhooks *webhooks,
                target_render render, struct buffer *out, bool *is_more, struct error *err);

void target_clear(struct target *target);
