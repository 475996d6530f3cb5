/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is told of webhooks and their deliveries.
 * Threads: plain values.
 */
#pragma once
#include "base/auto.h"
#include "model/owner.h"
#include "model/page.h"
#include "model/webhook.h"

#include <stdbool.h>
#include <stddef.h>

/* Owns what it points to. NULL is what was not given; times are milliseconds since 1970, 0 for never. */
struct webhook_info {
    const char *id;
    struct owner owner; // whose events it is told of: a filter
    const char *key_id;
    const char *name;
    const char *url;
    const char *secret;          // what deliveries are signed with: told once, to whoever made it
    const char *const *kinds;    // patterns (event_kind.h); NULL or none: all
    const char *sandbox_id;      // NULL: of all
    bool is_enabled;             //
    const char *disabled_reason; // why the server turned it off; NULL: it did not
    int64_t event_cursor;        // the number of the last event that was told, or need not be
    int64_t attempts;            // that failed since the last delivery
    int64_t failing_since;       // 0: it is not failing
    int64_t next_at;             // when it is tried again
    int64_t delivery_count;      //
    int64_t created_at, updated_at;
};
void webhook_info_clear(struct webhook_info *info);

struct webhook_infos {
    struct webhook_info *items;
    size_t count;
    struct page_mark next; // where the next page begins; see model/page.h
};
void webhook_infos_clear(struct webhook_infos *infos);

struct delivery_info {
    const char *id;
    int64_t event_number;
    const char *event_kind;
    enum delivery_state state;
    int64_t status;    // HTTP's, of the last attempt; 0: no answer came
    int64_t attempts;  //
    const char *error; // why the last attempt failed
    int64_t duration_ms;
    int64_t created_at, updated_at; // the first attempt, and the last
};
struct delivery_infos {
    struct delivery_info *items;
    size_t count;
    struct page_mark next;
};
void delivery_infos_clear(struct delivery_infos *infos);
