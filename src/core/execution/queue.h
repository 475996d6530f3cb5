/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executions that wait until they may run: first in, first out, so many of them running at once (core_settings). They are in the store
 * as queued, so a restart loses none. Private to the core.
 * Threads: any; queue_end blocks: any but loops.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"

struct queue;

int queue_new(struct executions *executions, struct queue **out, struct error *err);
/* Starts what waits: once everything that an earlier server left is in its place. */
void queue_start(struct queue *queue);
/* Starts no more, and returns when nothing is being started. The monitor must have stopped. */
void queue_stop(struct queue *queue);
void queue_free(struct queue *queue);

/* A place, before the row is written. ERROR_FULL, noun "queue". */
int queue_reserve(struct queue *queue, struct error *err);
void queue_give_back(struct queue *queue);
/* Takes the place; the command has its row, is in the registry and counted in its sandbox. */
void queue_add(struct queue *queue, struct execution *execution);
/* After a restart: one that is queued in the store. */
void queue_adopt(struct queue *queue, const struct execution_record *record);

/* It will not be started by the queue: true when it was still waiting. It is the caller's then to end it. */
bool queue_remove(struct queue *queue, struct execution *execution);
/* One that the queue had started has ended. */
void queue_left(struct queue *queue);
/* On the monitor: what could not be started before. */
void queue_tick(struct queue *queue);
unsigned queue_waiting(struct queue *queue);

/* It ends without ever having been started. `error` is borrowed; NULL keeps what the record has. Blocks; without locks. */
void queue_end(struct queue *queue, struct execution *execution, enum execution_state state,
               const char *error);
