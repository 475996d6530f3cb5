/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How many of a thing there may be, on the whole server and for one organisation. Private to the core.
 * Threads: any but loops.
 */
#pragma once
#include "core/settings.h"
#include "store/space_counts.h"

/* The time, or its ceiling (0: none) where it is longer or none at all (0). */
int64_t ceiling_time(int64_t ms, int64_t ceiling_ms);

/*
 * ERROR_INVALID, with the figure, when a time was asked for by name that is longer than its ceiling (0: none). None at all (0) and the default (less
 * than 0) are fine: they become the ceiling.
 */
int ceiling_check_time(const char *setting, int64_t ms, int64_t ceiling_ms, struct error *err);

/*
 * ERROR_FULL, with the setting to raise, when there are `most` of them, or `organisation_most` of the organisation's; 0: no limit. One member has at most half of
 * what there may be, so that others have some. Whoever asks at the same time may get one too many.
 */
int ceiling_check(struct store *store, enum store_kept kind, int64_t most,
                  int64_t organisation_most, const struct owner *owner, struct error *err);
