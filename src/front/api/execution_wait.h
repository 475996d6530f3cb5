/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that are answered with an execution: as it is, or once it has ended.
 * Threads: any.
 */
#pragma once
#include "web/call.h"

#include <stddef.h>

#define EXECUTION_OUTPUT_MAX                                                                       \
    ((int64_t)4 << 20) // of each output in an answer; the rest has an address
#define EXECUTION_OUTPUT_USUAL ((int64_t)1 << 20)

struct execution_wait {
    bool has_output;       // with what it wrote, once it has ended
    size_t output_bytes;   // of each output at most
    bool has_changes;      // with the files that were changed
    bool is_alone;         // the sandbox is for this alone, and ends with it
    bool ends_with_client; // and when the client goes away
    bool
        is_patient; // it is waited for however long it takes: ERROR_RESTARTING when the server stops before
};

/* Answers the call when the execution has ended, or after wait_ms with what is. */
int execution_wait(struct call *call, const char *id, int64_t wait_ms,
                   const struct execution_wait *how, struct error *err);
