/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counting for an organisation. Private to the store.
 * Threads: any but loops; a store_call is its thread's.
 */
#pragma once
#include "store/store_impl.h"
#include "store/usage.h"

/* Adds to the minute of `now`; project may be NULL. */
int usage_count(struct store_call *call, const char *organisation, const char *project, int64_t now,
                const struct usage_total *more, struct error *err);
