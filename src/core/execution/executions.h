/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room of executions: what its files share, and executions by id. Private to the core; fronts use execution.h.
 * Threads: any; executions_add, _end and _find do memory work only.
 */
#pragma once
#include "core/execution/execution_object.h"
#include "core/sandbox/sandboxes.h"

struct executions {
    struct sandboxes *sandboxes; // borrowed
    struct queue *queue;         // those that wait
    _Atomic unsigned n_running;
    struct lock lock; // guards all below
    struct id_table known;
    struct execution **ended; // in the order of their ends, to be forgotten in that order
    size_t n_ended;
};

/* Fills in what the sandbox room needs of this one. The queue starts nothing before queue_start. */
int executions_open(struct sandboxes *sandboxes, struct executions **out, struct error *err);
void executions_free(struct executions *executions);
DEFINE_AUTOPTR(executions)

void executions_add(struct executions *executions, struct execution *execution);
/* It is over; it is found for some time still. */
void executions_end(struct executions *executions, struct execution *execution);
struct execution *executions_find(struct executions *executions,
                                  const char *id); // a reference, or NULL
