/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the routes of this front answer, for their rows: the tables of render.h in their envelopes, and descriptions of what
 * handlers write themselves.
 * Threads: plain values.
 */
#pragma once
#include "web/answer_table.h"

/* What stands around an answer. */
extern const struct answer_wrap answers_data, answers_flat;

/* {"success":true} alone. */
extern const struct route_answer answers_bare[];
/* Bytes. */
extern const struct route_answer answers_bytes[];

extern const struct route_answer answers_sandbox[], answers_sandboxes[], answers_state[],
    answers_env[], answers_paused[];
extern const struct route_answer answers_execution[], answers_executions[], answers_job_made[],
    answers_job[], answers_jobs[], answers_events[];
extern const struct route_answer answers_checkpoint[], answers_checkpoints[];
extern const struct route_answer answers_snapshot_made[], answers_snapshot[], answers_snapshots[],
    answers_lineage[];
extern const struct route_answer answers_written[], answers_found[], answers_files[];

/* What a failure says: envelope.c. */
extern const struct answer_field answers_failure[];
