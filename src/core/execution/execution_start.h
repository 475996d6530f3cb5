/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starting an execution in a sandbox: a place in it, the process, the record. Private to the core.
 * Threads: any but loops.
 */
#pragma once
#include "core/execution/executions.h"
#include "core/sandbox/sandbox_object.h"

/* Takes a place in the sandbox, which is woken where it is paused. ERROR_BUSY or ERROR_STATE, noun "sandbox". */
int execution_enter(struct sandbox *sandbox, enum execution_kind kind, uint64_t *restore_count,
                    bool *was_paused, struct error *err);
/* Counts it, whatever its state: after a restart, or with the sandbox's lock held. */
void execution_occupy(struct sandbox *sandbox, enum execution_kind kind);
/* Gives it back. */
void execution_leave(struct sandbox *sandbox, enum execution_kind kind);

/* Starts it and records that; what execution_start does once the sandbox is found. */
int execution_start_in(struct sandbox *sandbox, const struct actor *actor,
                       const struct execution_request *request, struct execution_record *out,
                       bool *was_paused, struct error *err);

/* Starts one that waited: what execution_start does, with its row becoming that of a running one. A cancel that came meanwhile is
 * heeded. On failure it is as before. */
int execution_start_queued(struct sandbox *sandbox, struct execution *execution, struct error *err);
