/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client attached to an execution by a WebSocket: what the execution writes goes to the client, as parts of the spool that cost no memory
 * however far the client is behind; what the client sends goes to its input, and while that is full the client is not read from. Any number of
 * clients may be attached to one execution, each with its own place in the output. Costs memory and no thread.
 *
 * Binary messages begin with the channel: 0 from the client is standard input; 1 and 2 to the client are stdout and stderr (a terminal has
 * only 1). Texts are JSON: attach_order.h from the client; started, exit and error to it.
 * Threads: any.
 */
#pragma once
#include "web/output_sides.h"
#include "web/call.h"
#include "web/upgrade.h"

struct attach_request {
    const struct execution_info *info;
    const struct upgrade *upgrade; // copied
    uint64_t offsets
        [OUTPUT_SIDES]; // of the first byte that is wanted; OUTPUT_FROM_NOW: the next that comes
};

/* Answers the call, later, with 101. ERROR_INVALID for an offset past what there is. Blocks. */
int attach_start(struct call *call, const struct attach_request *request, struct error *err);
