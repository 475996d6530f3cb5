/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What whoever sends to webhooks needs: which there are, what each is told next, and what became of it.
 * Threads: any but loops; webhook_wants and webhook_backoff_ms: plain values.
 */
#pragma once
#include "core/event/event_info.h"
#include "core/webhook/webhook.h"

#include <stdint.h>

/* All that are enabled, and a number that is another when any of them may be different. */
int webhooks_enabled(struct webhooks *webhooks, struct webhook_infos *out, unsigned *version,
                     struct error *err);
unsigned webhooks_version(struct webhooks *webhooks);
/* Calls fn(data) when it becomes another; it must be quick. NULL: nobody any more; when that returns, fn is not running. */
void webhooks_on_change(struct webhooks *webhooks, void (*fn)(void *data), void *data);

/*
 * Who it is told as, now: its key. *is_off: that has ended or sees nothing any more, so the webhook was turned off, with an event, and `hook` says so.
 */
int webhook_admit(struct webhooks *webhooks, struct webhook_info *hook, struct actor *out,
                  bool *is_off, struct error *err);

/* Whether it is to be told of this one, as far as it says itself. */
bool webhook_wants(const struct webhook_info *hook, const struct event_info *event);

/* What became of one attempt. */
struct delivery_attempt {
    int64_t event_number;
    const char *event_kind;
    bool is_delivered;
    bool is_final;     // the receiver says that it wants no more
    int64_t status;    // HTTP's; 0: no answer came
    const char *error; // why it failed; NULL
    int64_t started_at, duration_ms;
};

/* Records it, and what follows from it: `hook` is as it is from now on. After a day of failures it is turned off, with an event. */
int webhook_settle(struct webhooks *webhooks, struct webhook_info *hook,
                   const struct delivery_attempt *attempt, struct error *err);
/* It has looked up to this number and there was nothing for it, or what there was is forgotten (`is_lost`). */
int webhook_pass(struct webhooks *webhooks, struct webhook_info *hook, int64_t cursor, bool is_lost,
                 struct error *err);

/* How long to wait after so many failures, from 1 on: a second, twice as long each time, an hour at most; any part of its second half by `chance`. */
int64_t webhook_backoff_ms(int64_t attempts, uint32_t chance);
#define WEBHOOK_GIVE_UP_MS ((int64_t)24 * 3600 * 1000)

/* The delivery's id: the same for each attempt of one event. */
#define DELIVERY_ID (ID_TEXT + 24)
const char *delivery_id(const struct webhook_info *hook, char text[DELIVERY_ID]);
