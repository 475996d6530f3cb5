/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An execution or job that has not ended, or ended not long ago, as the core has it in memory. Private to the core.
 * Threads: any; memory work only.
 */
#pragma once
#include "base/id.h"
#include "base/id_table.h"
#include "base/lock.h"
#include "core/execution/execution.h"
#include "engine/box.h"
#include "store/executions.h"

#include <stdatomic.h>

struct feed;
struct input_room;
struct queue;
struct stream;

/* One that has not ended, or has ended not long ago. Counted. */
struct execution {
    struct id_entry known; // in the table of executions
    _Atomic unsigned refs;
    struct execution *next; // in its sandbox
    char id[ID_TEXT];
    uint32_t number; // its process in the box
    struct lock lock;
    struct execution_record record; // under the lock

    // Under the sandbox's record_lock.
    bool is_recorded; // is in the store
    bool has_exit;    // ended before it was recorded
    bool
        is_exit_noted; // it has ended as `exit` says, which is shown once somebody has looked at its disk
    struct process_exit exit;
    int64_t announced_at;                  // everybody knows that it has ended; 0: not yet
    bool is_sandbox_over, is_sandbox_idle; // through that
    struct stream *input, *output,
        *error; // held; error may be output. Changed under the sandbox's lock too
    struct feed *feed;
    bool is_run_counted;                            // for its key and organisation: account/quota.h
    bool is_input_new, is_output_new, is_error_new; // made for it, not a user's own
    bool is_spawned;
    bool is_queued;     // is in the store, as queued
    bool is_renumbered; // and its number there is no longer its own

    struct queue *queue;           // that it waited in, where its running counts; NULL: none
    struct execution *next_queued; // this and is_waiting are the queue's, under its lock
    bool is_waiting;
    bool is_input_cut; // a restart of the server cut its input

    // What it is started with.
    int input_pipe; // has all of its input; -1: none, or given to PID 1
    bool has_input;
    const struct execution_pipes *pipes; // these two: whoever starts it holds them
    int program_fd;
    bool keeps_children;
    uint16_t rows, cols;

    struct lock input_lock;        // guards the next three: execution_input.c
    struct input_room *input_room; // waits until more can be sent; NULL: that was never needed
    int input_fd;                  // takes its input; -1: not opened by this server
    bool is_input_over;            // somebody has closed it

    _Atomic int64_t stdout_bytes, stderr_bytes; // that it has written, as PID 1 last told
    _Atomic int64_t
        kill_ms; // asked to stop: when patience ends, on the monotonic clock; 0: not asked, or done
};

struct execution *execution_new(const char *id);
struct execution *execution_ref(struct execution *execution);
void execution_free(struct execution *execution); // gives up one reference
DEFINE_AUTOPTR(execution)

static inline bool execution_is_over(const struct execution_record *record)
{
    return record->state >= EXECUTION_COMPLETED;
}

/* What a reader may have: a copy, under the lock. */
void execution_copy(struct execution *execution, struct execution_record *out);
/*
 * Its record becomes this one: numbers, states, and those strings that change (error, stop_reason, streams); strings are copied. The caller
 * holds record_lock, where its sandbox is alive.
 */
void execution_set(struct execution *execution, const struct execution_record *record);
/* Nothing more is sent into it from here. */
void execution_shut_input(struct execution *execution);
bool execution_is_cancelled(struct execution *execution); // somebody has asked for its end
