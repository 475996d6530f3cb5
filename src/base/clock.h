/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What time it is: monotonic for measuring and deadlines, wall for people.
 * Threads: any.
 */
#pragma once
#include <stdint.h>

uint64_t clock_monotonic_us(void);
uint64_t clock_monotonic_ms(void);
uint64_t clock_wall_us(void); // since 1970, UTC
uint64_t clock_wall_ms(void);

/*
 * When the wall clock shows or showed `wall_ms`, on the monotonic clock: for deadlines, which a step of the wall clock must not move.
 * A moment before the machine started is negative.
 */
int64_t clock_monotonic_at(int64_t wall_ms);

/* RFC 3339 in UTC with milliseconds: "2026-01-02T03:04:05.678Z". Years past 9999 are cut to 9999.
 */
#define CLOCK_TEXT 25
const char *clock_format(uint64_t wall_ms, char text[CLOCK_TEXT]);

/* As HTTP's Date has it (RFC 9110): "Fri, 02 Jan 2026 03:04:05 GMT". */
#define CLOCK_HTTP_TEXT 30
const char *clock_format_http(uint64_t wall_ms, char text[CLOCK_HTTP_TEXT]);
