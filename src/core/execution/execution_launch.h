/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How an execution is made ready and started: its record, its streams, its process, its rows. Private to the core.
 * Threads: any but loops.
 */
#pragma once
#include "core/execution/execution_object.h"
#include "core/sandbox/sandbox_object.h"

/*
 * Checks the request and makes everything but the process: record, streams, input. *out is in the sandbox's list, not recorded
 * yet; the caller's reference.
 */
int execution_prepare(struct sandbox *sandbox, const struct actor *actor,
                      const struct execution_request *request, struct execution **out,
                      struct error *err);

/*
 * A record and nothing else, for one that is not started now: queued. It has a number, is in no list and has no streams; the
 * caller's reference.
 */
int execution_describe(struct sandbox *sandbox, const struct actor *actor,
                       const struct execution_request *request, struct execution **out,
                       struct error *err);

/* Everything that PID 1 is to make for one that was described. */
int execution_equip(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* Kills all it started, at once; one that has ended meanwhile is fine. */
void execution_kill(struct sandbox *sandbox, struct execution *execution);

/* Starts it in the box. */
int execution_spawn(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* Instead: the sandbox's resident becomes it, as the request says. */
int execution_take_over(struct sandbox *sandbox, struct execution *execution,
                        const struct execution_request *request, struct error *err);

/* Its rows, in the caller's transaction, under record_lock. */
int execution_put(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* It will not run: it does not count among the runs of its day. */
void execution_uncount(struct sandbox *sandbox, struct execution *execution);

/* It will not be: kills what was started, and drops all that was made. */
void execution_abort(struct sandbox *sandbox, struct execution *execution);

/* Each is there once, and the caller's. */
struct execution_streams {
    struct stream *input, *output, *error;
};
struct execution_streams execution_take_streams(struct sandbox *sandbox,
                                                struct execution *execution);
