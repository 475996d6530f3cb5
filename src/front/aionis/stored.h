/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this front keeps in the core's records to say it back: in `asked`, as JSON that only it reads.
 * Threads: plain values.
 */
#pragma once
#include "core/execution/execution.h"
#include "web/call.h"

/* For a session. */
const char *stored_session(struct call *call, const char *profile);

/* Metadata as JavaScript would write it; "{}" when there is none. */
int stored_metadata(struct call *call, const struct data_value *metadata, const char **out,
                    struct error *err);

/* Of a run. */
struct stored_run {
    const char *mode; // "sync", "async"
    int64_t timeout_ms;
    const char *project_id, *planner_run_id, *decision_id; // or NULL
    const char *argv;                                      // JSON, as it was sent
    struct data_document *memory;                          // owns the strings, when it was read
};
const char *stored_run(struct call *call, const struct stored_run *run);
/* What a record that this front did not make lacks is made up from what it has. */
void stored_run_read(const struct execution_info *info, struct stored_run *out);
void stored_run_clear(struct stored_run *run);
