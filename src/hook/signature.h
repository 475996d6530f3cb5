/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What proves to a receiver that a delivery is from this server and new: HMAC-SHA256, with the webhook's secret, over the time in seconds, a dot and the body.
 * Threads: plain values.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* "t=1767323045,v1=<64 hex digits>" */
#define SIGNATURE_TEXT 96
const char *signature_make(const char *secret, int64_t seconds, const void *body, size_t length,
                           char out[SIGNATURE_TEXT]);
