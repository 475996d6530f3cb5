/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How executions end: shown to whoever waits, recorded, and forgotten. Private to the core.
 * Threads: any but loops; execution_on_exit and execution_check_deadlines: the monitor; execution_announce_output: any.
 */
#pragma once
#include "core/execution/execution_object.h"
#include "core/sandbox/sandbox_object.h"

/* The transaction that has its row is committed. Under record_lock; once that is released, execution_end_early. */
void execution_recorded(struct sandbox *sandbox, struct execution *execution);
/* Deals with an end that came before it was recorded. Without locks. */
void execution_end_early(struct sandbox *sandbox, struct execution *execution);

/* PID 1 says that it has ended: shows that to whoever waits; a letter to the sandbox's mailbox records it. Does not block. */
void execution_on_exit(struct sandbox *sandbox, const struct process_exit *exit);
/* The same, but records it here. Without locks. */
void execution_ended(struct sandbox *sandbox, const struct process_exit *exit);
/* Records all ends that were shown. Under record_lock. */
void execution_record_shown(struct sandbox *sandbox);

/* PID 1 may forget it. Without locks. */
void execution_collect(struct sandbox *sandbox, uint32_t number);

/* Stops that were not heeded in time, ends that could not be recorded. `now` is monotonic. Does not block. */
void execution_check_deadlines(struct sandbox *sandbox, int64_t now);

/* All that have not ended are over with the sandbox: rows in the caller's transaction, under record_lock; once that is committed,
 * execution_end_all, still under record_lock. */
int execution_put_ends(struct sandbox *sandbox, enum execution_state state, const char *error,
                       int64_t now, struct error *err);
void execution_end_all(struct sandbox *sandbox, enum execution_state state, const char *error,
                       int64_t now);

/* The rest of what the sandbox room needs to know of its executions: struct execution_ops says what each does. */
void execution_announce_output(struct sandbox *sandbox, const struct box_event *event);
bool execution_is_any_running(const struct sandbox *sandbox);
bool execution_is_any_ahead(struct sandbox *sandbox);
void execution_free_all(struct sandbox *sandbox);
