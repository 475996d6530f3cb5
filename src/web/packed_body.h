/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bodies with Content-Encoding gzip, as they come.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct packed_body;

/* At most `maximum` bytes come out, each piece to `fn`, whose -1 ends it. */
typedef int (*packed_body_bytes)(void *data, const void *bytes, size_t length, struct error *err);
struct packed_body *packed_body_new(uint64_t maximum, packed_body_bytes fn, void *data);
void packed_body_free(struct packed_body *packed_body);
DEFINE_AUTOPTR(packed_body)

/* ERROR_INVALID for what is no gzip, ERROR_TOO_LARGE past the maximum. Not to be used after a failure. */
int packed_body_feed(struct packed_body *packed_body, const void *bytes, size_t length,
                     struct error *err);
/* The body has ended: ERROR_INVALID when it is cut off. */
int packed_body_finish(struct packed_body *packed_body, struct error *err);
