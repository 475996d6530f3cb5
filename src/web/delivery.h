/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes whose makers never heard of them.
 * Threads: any.
 */
#pragma once
#include "web/call.h"

/*
 * Ends the sandbox when the answer to the call does not reach its client: without an Idempotency-Key a request that is sent again makes another one, and this one would stay
 * unused. Before the call is answered.
 */
void delivery_watch(struct call *call, const char *sandbox_id);
