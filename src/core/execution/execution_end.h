/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How executions end: shown to whoever waits, recorded, and forgotten. Private to the core.
 * Threads: workers; blocks. execution_check_deadlines: the monitor.
 */
#pragma once
#include "core/execution/execution_object.h"
#include "core/sandbox/sandbox_object.h"

/* The transaction is committed; the caller holds record_lock, which is released here. Deals with an end that came before. */
void execution_recorded(struct sandbox *sandbox, struct execution *execution);

/* PID 1 says so. Records it, tells everybody. Any thread without locks. */
void execution_ended(struct sandbox *sandbox, const struct process_exit *exit);

/* PID 1 may forget it. Takes the right to use the box; any thread without locks. */
void execution_collect(struct sandbox *sandbox, uint32_t number);

/* Deadlines: stops that were not heeded, ends that could not be recorded. On the monitor. */
void execution_check_deadlines(struct sandbox *sandbox, int64_t now);

/* All that have not ended are over with the sandbox: rows in the caller's transaction, under record_lock; once that is committed,
 * execution_end_all, still under record_lock. */
int execution_put_ends(struct sandbox *sandbox, enum execution_state state, const char *error,
                       int64_t now, struct error *err);
void execution_end_all(struct sandbox *sandbox, enum execution_state state, const char *error,
                       int64_t now);

/* The rest of what the sandbox room needs to know of its executions: struct execution_ops says what each does. */
void execution_announce_output(struct sandbox *sandbox, uint32_t number);
bool execution_is_any_running(const struct sandbox *sandbox);
bool execution_is_any_ahead(struct sandbox *sandbox);
void execution_free_all(struct sandbox *sandbox);
