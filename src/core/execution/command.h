/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command's way through the core: prepared, started, recorded, ended. Shared by creating sandboxes and by executions. Private to
 * the core.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

/*
 * Checks the request and makes everything but the process: record, streams, input. *out is in the sandbox's list, not recorded
 * yet; the caller's reference.
 */
int command_prepare(struct sandbox *sandbox, const struct actor *actor,
                    const struct execution_request *request, struct execution **out,
                    struct error *err);

/*
 * A record and nothing else, for one that is not started now: queued. It has a number, is in no list and has no streams; the
 * caller's reference.
 */
int command_describe(struct sandbox *sandbox, const struct actor *actor,
                     const struct execution_request *request, struct execution **out,
                     struct error *err);

/* Starts one that waited: what execution_start does, with its row becoming that of a running one. A cancel that came meanwhile is
 * heeded. On failure it is as before. */
int command_start_queued(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* Everything that PID 1 is to make for one that was described. */
int command_equip(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* Kills all it started, at once; one that has ended meanwhile is fine. */
void command_kill(struct sandbox *sandbox, struct execution *execution);

/* Starts it in the box. */
int command_spawn(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* Its rows, in the caller's transaction, under record_lock. */
int command_put(struct sandbox *sandbox, struct execution *execution, struct error *err);

/* The transaction is committed; the caller holds record_lock, which is released here. Deals with an end that came before. */
void command_recorded(struct sandbox *sandbox, struct execution *execution);

/* It will not be: kills what was started, and drops all that was made. */
void command_abort(struct sandbox *sandbox, struct execution *execution);

/* PID 1 says so. Records it, tells everybody. Any thread without locks. */
void command_ended(struct sandbox *sandbox, const struct process_exit *exit);

/* PID 1 may forget it. Takes the right to use the box; any thread without locks. */
void command_collect(struct sandbox *sandbox, uint32_t number);

/* Deadlines: stops that were not heeded, ends that could not be recorded. On the monitor. */
void command_look_after(struct sandbox *sandbox, int64_t now);

/* All that have not ended are over with the sandbox: rows in the caller's transaction, under record_lock; once that is committed,
 * command_end_all, still under record_lock. */
int command_put_ends(struct sandbox *sandbox, enum execution_state state, const char *error,
                     int64_t now, struct error *err);
void command_end_all(struct sandbox *sandbox, enum execution_state state, const char *error,
                     int64_t now);

/* Each is there once, and the caller's. */
struct command_streams {
    struct stream *input, *output, *error;
};
struct command_streams command_take_streams(struct sandbox *sandbox, struct execution *execution);
