/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The grammar of sizes and of processor shares, as people write them in options and request bodies.
 * Strict: the whole text is the value, or the call fails with ERROR_INVALID and a sentence that
 * starts with `what` ("memory '12Q' is not a size: ..."). Nothing is allocated.
 * Threads: plain values.
 */
#pragma once
#include "base/error.h"

#include <stdint.h>

/*
 * A number, decimals allowed, with k (or K) M G T P E (powers of 1000) or Ki Mi Gi Ti Pi Ei (of 1024), or plain bytes. "1.5Gi", "512M",
 * "4096". A part of a byte counts as a whole one. "64m", "64MB" and "64MiB" mean different things to different programs: they are
 * refused, with the two spellings that can be meant.
 */
int size_parse(const char *text, const char *what, uint64_t *out_bytes, struct error *err);

/* Thousandths of a processor: "500m", "2", "0.5", "1.25". */
int cpu_parse(const char *text, const char *what, uint32_t *out_millis, struct error *err);

/* The shortest exact spelling: 268435456 is "256Mi", 1000 is "1000". */
#define SIZE_TEXT 24
const char *size_format(uint64_t bytes, char text[SIZE_TEXT]);
