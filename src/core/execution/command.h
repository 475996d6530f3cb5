/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A command's way through the core: prepared, started, recorded, ended. Shared by creating sandboxes and by executions. Private to
 * the core.
 */
#pragma once
#include "core/sandbox/live.h"

/*
 * Checks the request and makes everything but the process: record, streams, input. *out is in the sandbox's list, not recorded
 * yet; the caller's reference.
 */
int command_prepare(struct live *live, const struct actor *actor,
                    const struct execution_request *request, struct running **out,
                    struct error *err);

/*
 * A record and nothing else, for one that is not started now: queued. It has a number, is in no list and has no streams; the
 * caller's reference.
 */
int command_describe(struct live *live, const struct actor *actor,
                     const struct execution_request *request, struct running **out,
                     struct error *err);

/* Starts one that waited: what execution_start does, with its row becoming that of a running one. A cancel that came meanwhile is
 * heeded. On failure it is as before. */
int command_start_queued(struct live *live, struct running *running, struct error *err);

/* Everything that PID 1 is to make for one that was described. */
int command_equip(struct live *live, struct running *running, struct error *err);

/* Kills all it started, at once; one that has ended meanwhile is fine. */
void command_kill(struct live *live, struct running *running);

/* Starts it in the box. */
int command_spawn(struct live *live, struct running *running, struct error *err);

/* Its rows, in the caller's transaction and turn. */
int command_put(struct live *live, struct running *running, struct error *err);

/* The transaction is committed; the caller has the turn, which is given up here. Deals with an end that came before. */
void command_recorded(struct live *live, struct running *running);

/* It will not be: kills what was started, and drops all that was made. */
void command_abort(struct live *live, struct running *running);

/* PID 1 says so. Records it, tells everybody. Any thread without locks. */
void command_ended(struct live *live, const struct process_exit *exit);

/* PID 1 may forget it. Takes the right to use the box; any thread without locks. */
void command_collect(struct live *live, uint32_t number);

/* Deadlines: stops that were not heeded, ends that could not be recorded. On the keeper. */
void command_look_after(struct live *live, int64_t now);

/* All that have not ended are over with the sandbox: rows in the caller's transaction and turn; once that is committed,
 * command_end_all, still in turn. */
int command_put_ends(struct live *live, enum execution_state state, const char *error, int64_t now,
                     struct error *err);
void command_end_all(struct live *live, enum execution_state state, const char *error, int64_t now);

/* Each is there once, and the caller's. */
struct command_streams {
    struct stream *input, *output, *error;
};
struct command_streams command_take_streams(struct live *live, struct running *running);
