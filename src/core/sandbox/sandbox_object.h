/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sandboxes that are alive, and the commands running in them, as the core has them in memory. Private to the core.
 *
 * Three locks of a living sandbox, taken in this order where several are needed:
 *   box_lock  the right to use the box (a box belongs to one thread at a time); held across calls of the engine
 *   turn      whose turn it is to change its records; held across the transaction and the change in memory, so that both see
 *             all changes in one order
 *   lock      guards what readers look at; held for memory work only
 */
#pragma once
#include "core/core_impl.h"
#include "core/execution/execution.h"
#include "core/sandbox/lifecycle.h"
#include "core/sandbox/sandbox.h"
#include "core/stream/streams.h"
#include "store/executions.h"

#include <pthread.h>
#include <stdatomic.h>

struct feed;
struct sandbox;
struct queue;

/* A command that has not ended, or has ended not long ago. Counted. */
struct execution {
    _Atomic unsigned refs;
    struct execution *next_known; // registry's
    struct execution *next;       // in its sandbox
    char id[ID_TEXT];
    uint32_t number; // its process in the box
    pthread_mutex_t lock;
    struct execution_record record; // under the lock

    // Under the sandbox's record_lock.
    bool is_recorded; // is in the store
    bool has_exit;    // ended before it was recorded
    struct process_exit exit;
    int64_t announced_at;                  // everybody knows that it has ended; 0: not yet
    bool is_sandbox_over, is_sandbox_idle; // through that
    struct stream *input, *output,
        *error; // held; error may be output. Changed under the sandbox's lock too
    struct feed *feed;
    bool is_output_new, is_error_new; // made for it, not a user's own
    bool is_spawned;
    bool is_queued;     // is in the store, as queued
    bool is_renumbered; // and its number there is no longer its own

    struct queue *queue;           // that it waited in, where its running counts; NULL: none
    struct execution *next_queued; // this and is_waiting are the queue's, under its lock
    bool is_waiting;
    bool is_input_cut; // a restart of the server cut its input

    _Atomic int64_t kill_at; // asked to stop: when patience ends; 0: not asked, or done
};

struct execution *execution_new(const char *id);
struct execution *execution_ref(struct execution *execution);
void execution_free(struct execution *execution); // gives up one reference
DEFINE_AUTOPTR(execution)

struct sandbox {
    _Atomic unsigned refs;
    struct sandbox *next_known;  // registry's
    struct sandbox *next_ending; // in the core's list of those whose box is to be removed
    struct core *core;
    char id[ID_TEXT];

    pthread_mutex_t box_lock;
    struct box *box; // NULL: none (yet, or any more)
    _Atomic bool
        has_events;  // the monitor found the box in use: whoever gives it back arms the watch again
    bool is_watched; // in the monitor's set
    bool is_box_over; // it has been ended or has died

    pthread_mutex_t record_lock;

    pthread_mutex_t lock;
    pthread_cond_t changed; // the state
    struct sandbox_record
        record; // texts are ours; those that no state changes (id, owner, command …) are read freely
    struct execution *commands; // not ended; each holds a reference. Changed under record_lock only
    uint32_t last_number;       // of a command
    unsigned n_executions;      // begun, about to or queued; without jobs
    unsigned n_jobs;
    uint64_t
        restore_count; // how often it has begun to go back to a checkpoint; changed under record_lock only

    char **runtime_env; // of its runtime; never changed
    _Atomic int64_t active_at;
    _Atomic int64_t sample_at;      // when its use is measured next
    uint64_t sampled_memory;        // bytes at the last sample; under box_lock
    int64_t sampled_at;             // likewise, and
    int64_t counted_cpu_ms;         // of the box's own counter
    _Atomic bool is_being_ended;    // somebody is at it
    _Atomic bool is_dropping;       // likewise: see live_rest
    const char *_Atomic end_reason; // why, of the last try
};

/* Makes one for a record, which is copied. */
struct sandbox *sandbox_new(struct core *core, const struct sandbox_record *record);
struct sandbox *sandbox_ref(struct sandbox *sandbox);
void sandbox_free(struct sandbox *sandbox); // gives up one reference
DEFINE_AUTOPTR(sandbox)

/* The right to use the box. live_lock_box fails, ERROR_GONE noun "sandbox" reason "ended", when there is none; while it goes back to a
 * checkpoint, ERROR_CONFLICT noun "sandbox" reason "state". */
int sandbox_lock_box(struct sandbox *sandbox, struct error *err);
bool sandbox_try_box(struct sandbox *sandbox); // false: in use, or none
void sandbox_unlock_box(struct sandbox *sandbox);

bool sandbox_is_in(struct sandbox *sandbox, unsigned states); // a set, as sandbox_in makes

/* What came while the sandbox went back to a checkpoint has to be asked for again. Returns -1. */
int sandbox_went_back(struct error *err);

/* Waits while it is between two states that last (creating, pausing, resuming). */
int sandbox_await_calm(struct sandbox *sandbox, struct error *err);
/* Wakes one that is paused; pause.c. ERROR_CONFLICT, noun "sandbox", reason "state", unless it is. */
int sandbox_wake(struct sandbox *sandbox, struct error *err);
/* The same for whoever needs it awake, however it is now. */
int sandbox_awake(struct sandbox *sandbox, bool *was_paused, struct error *err);

/* A state that is only passed through, in memory; after a crash it is as it was before. */
int sandbox_pass(struct sandbox *sandbox, enum lifecycle_step step, struct error *err);
/* It is idle: its box goes, its files stay, and it is paused. In the background; does not block. */
void sandbox_rest(struct sandbox *sandbox);
/* A new box over its own files, where it has none: its processes went with the machine, or were ended. */
int sandbox_bring_back(struct sandbox *sandbox, struct error *err);
/* The same by one that has the box_lock and has found no box. */
int sandbox_launch_again(struct sandbox *sandbox, struct error *err);
/* The same for whoever needs a box, unless it is over. */
int sandbox_ensure_box(struct sandbox *sandbox, struct error *err);

/* Back to what it was doing, from a state that it only passes through. Who has led it there is the only one to lead it away, unless it ends. */
void sandbox_pass_back(struct sandbox *sandbox);

/* Whoever ends it is in one of these before it comes for the box. */
#define SANDBOX_ENDING (SANDBOX_OVER | sandbox_in(SANDBOX_STOPPING))
int sandbox_refuse_ending(struct error *err); // ERROR_GONE, noun "sandbox", reason "ended"; -1

/* What the next command will be called in the box. */
uint32_t sandbox_next_number(struct sandbox *sandbox);

void sandbox_touch(struct sandbox *sandbox); // it was used just now

/* Its state becomes that of `next`, which is cleared; readers are told by whoever calls. The caller holds record_lock. */
void sandbox_change(struct sandbox *sandbox, struct sandbox_record *next);

/* What a reader may have: a copy, under the lock. */
void sandbox_copy(struct sandbox *sandbox, struct sandbox_record *out);
/* Whether it has ended. */
static inline bool execution_is_over(const struct execution_record *record)
{
    return record->state >= EXECUTION_COMPLETED;
}

void execution_copy(struct execution *execution, struct execution_record *out);
/*
 * Its record becomes this one: numbers, states, and those texts that change (error, stop_reason, streams); texts are copied. The caller
 * holds record_lock, where its sandbox is alive.
 */
void execution_set(struct execution *execution, const struct execution_record *record);
bool execution_is_cancelled(struct execution *execution); // somebody has asked for its end

/* Returns when the store knows what everybody was told already: an end is told first and recorded then. Blocks; not under record_lock. */
void sandbox_settle(struct sandbox *sandbox);

/* Living ones, and those that ended not long ago, by id. All calls from any thread, for memory work only. */
struct registry *registry_new(void);
void registry_free(struct registry *registry);

/* Adds one that is alive. ERROR_LIMIT, noun "sandbox", reason "full", when there are `maximum` already. */
int registry_add(struct registry *registry, struct sandbox *sandbox, unsigned maximum,
                 struct error *err);
/* It is over: no longer counted; found for some time still. is_forgotten: not even that. */
void registry_end(struct registry *registry, struct sandbox *sandbox, bool is_forgotten);
struct sandbox *registry_find(struct registry *registry, const char *id); // a reference, or NULL
unsigned registry_count(struct registry *registry);                       // alive
/* References to all that are alive; the caller frees each, and the array. */
size_t registry_all(struct registry *registry, struct sandbox ***out);

void registry_add_command(struct registry *registry, struct execution *execution);
void registry_end_command(struct registry *registry, struct execution *execution,
                          bool is_forgotten);
struct execution *registry_find_command(struct registry *registry,
                                        const char *id); // a reference, or NULL
