/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows the log of a sandbox as records: what its commands have written and write, also those that are started later, until the sandbox has ended. Several that run at once
 * are told as they write; each record says whose it is and from which byte on. The id of a record is where to go on after all before it; what came in one
 * piece with it may be told again then. Costs memory and no thread.
 * Threads: any.
 */
#pragma once
#include "core/execution/execution_log.h"
#include "web/call.h"
#include "web/event_format.h"

#define LOG_FOLLOWED 16 // commands that run at once; those behind wait until one has ended

/* So much was told: of these, which had not ended, and of all before `next`. */
struct log_state {
    struct log_open open[LOG_FOLLOWED];
    size_t n_open;
    int64_t next; // number of an execution
};

/* Answers the call. The sandbox exists. */
void log_follow_start(struct call *call, const char *sandbox_id, enum event_format format,
                      const struct log_state *state, const enum log_side *side);

/* Ids of records: "7;3.100.0;5.0.17". False: it is none. */
#define LOG_STATE_TEXT (24 + LOG_FOLLOWED * 64)
const char *log_state_write(const struct log_state *state, char text[LOG_STATE_TEXT]);
bool log_state_read(const char *text, struct log_state *out);
