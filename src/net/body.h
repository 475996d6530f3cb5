/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request's body as it comes in: the loop puts bytes in, one consumer on any thread takes them
 * out. When the consumer is behind, the client is not read from. No time limit of its own: who
 * reads decides how long to wait.
 * Threads: one per object; the consumer, beside the loop that puts bytes in.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct body;

/*
 * Takes up to `size` bytes. 0 is the end. Waits up to timeout_ms (-1: as long as it takes, 0: not
 * at all) for the first one, then ERROR_TIMEOUT. ERROR_GONE: the client went away before the end,
 * or the request has been answered; ERROR_LIMIT: more than was allowed; ERROR_INVALID: the chunks
 * are malformed. Do not wait on the loop.
 */
ssize_t body_read(struct body *body, void *data, size_t size, int timeout_ms, struct error *err);

/*
 * From then on calls fn(data) on the loop when there is something to read after there was nothing:
 * bytes, the end or an error. Once at once if there is already. NULL ends it: call that on the
 * loop, so that no call is under way.
 */
void body_watch(struct body *body, void (*fn)(void *data), void *data);

struct body *body_ref(struct body *body);
void body_free(struct body *body); // gives up one reference
DEFINE_AUTOPTR(body)
