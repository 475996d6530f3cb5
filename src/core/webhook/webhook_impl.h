/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the webhook room share.
 * Threads: any but loops.
 */
#pragma once
#include "base/lock.h"
#include "core/settings.h"
#include "core/webhook/webhook.h"
#include "store/webhooks.h"

#include <stdatomic.h>

struct webhooks {
    const struct core_settings *settings;
    struct store *store;
    struct accounts *accounts;
    struct event_channel *events;
    atomic_uint changes;
    struct lock lock; // guards the two below
    void (*on_change)(void *data);
    void *on_change_data;
};

/* Something of a webhook is different: whoever sends looks again. */
void webhooks_changed(struct webhooks *webhooks);

void webhook_info_take(struct webhook_info *out, struct webhook_record *record);
void delivery_infos_take(struct delivery_infos *out, struct delivery_list *list);
