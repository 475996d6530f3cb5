/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of durations: "30s", "1h30m", "7d", "250ms", "1.5s", "0". One or more numbers, decimals
 * allowed, each with its unit (ns us µs ms s m h d; a day is 24 hours). Strict as size.h is, and the only reader of durations there is.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdint.h>

#define DURATION_MAX_MS (100ULL * 365 * 24 * 3600 * 1000) // in nanoseconds it still fits 63 bits

/* Whole milliseconds, rounded up, so that only nothing is 0. */
int duration_parse(const char *text, const char *what, uint64_t *out_ms, struct error *err);

/* "1h30m", "250ms", "1m30s500ms"; "0s" for nothing. duration_parse reads it back. */
#define DURATION_TEXT 40
const char *duration_format(uint64_t ms, char text[DURATION_TEXT]);
