/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Points in time as clients write them: ISO 8601, "2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05+02:00", "2026-01-02".
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdint.h>

/* Milliseconds since 1970. Without a zone it is UTC. ERROR_INVALID begins with `what`. */
int instant_parse(const char *text, const char *what, int64_t *out_ms, struct error *err);
