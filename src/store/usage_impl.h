/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting for an organisation. Private to the store.
 * Threads: any but loops; a store_call is its thread's.
 */
#pragma once
#include "store/store_impl.h"
#include "store/usage.h"

/* Adds to the minute of `now`; project and member may be NULL. */
int usage_count(struct store_call *call, const struct owner *owner, int64_t now,
                const struct usage_total *more, struct error *err);

/* Adds to the day of `now` for a sandbox whose row is there; key_id NULL: of the key that made it. */
int usage_day_add(struct store_call *call, const char *sandbox_id, const char *key_id, int64_t now,
                  const struct usage_total *more, int64_t disk_bytes, struct error *err);
