/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sandbox that is alive, or ended not long ago, as the core has it in memory. Private to the core.
 *
 * It has three locks, taken in this order where several are needed (base/lock_order.h has the whole order):
 *   box_lock     the right to use the box, which belongs to one thread at a time; held across calls of the engine
 *   record_lock  the right to change its records; held across the transaction and the change in memory, so that both see all
 *                changes in one order
 *   lock         guards what readers look at; held for memory work only
 * Threads: any.
 */
#pragma once
#include "base/id.h"
#include "base/id_table.h"
#include "base/lock.h"
#include "core/account/quota.h"
#include "core/sandbox/gauge_history.h"
#include "core/sandbox/lifecycle.h"
#include "core/sandbox/sandboxes.h"
#include "loop/loop.h"

#include <stdatomic.h>

struct execution;

#define SANDBOX_SEAL_KEYS 8

struct sandbox {
    struct id_entry known; // in the registry
    _Atomic unsigned refs;
    struct sandbox *next_ending; // in the list of those whose box is to be removed
    struct sandboxes *sandboxes;
    char id[ID_TEXT];

    struct lock box_lock;              // guards the next six; held across calls of the engine
    struct lock_condition box_is_free; // no copy of its files is under way any more
    struct box *box;                   // NULL: none (yet, or any more)
    _Atomic bool
        has_events;  // the monitor found the box in use: whoever gives it back arms the watch again
    bool is_watched; // in the monitor's set
    bool is_box_over;      // it has been ended or has died
    unsigned n_file_works; // for which the box has more CPU; see file_work.c
    _Atomic bool
        is_copied; // its files are being copied: it stays frozen, and is not ended, until that is done

    struct lock record_lock;

    struct lock lock;
    struct lock_condition changed; // the state
    struct sandbox_record
        record; // strings are ours; those that nobody changes (id, owner, argv, home …) are read freely
    struct execution
        *executions; // not ended; each holds a reference. Changed under record_lock too
    bool
        has_resident; // a process waits in its box, with the number SPARE_RESIDENT, for an execution that takes it
    uint32_t last_number;  // of an execution; none but the resident has SPARE_RESIDENT
    unsigned n_executions; // begun, about to or queued; without jobs
    unsigned n_jobs;       // terminals too, and
    unsigned n_terminals;  // these alone
    unsigned n_contexts;   // interpreters: in none of the above
    uint64_t
        restore_count; // how often it has begun to go back to a checkpoint; changed under record_lock only

    uint64_t
        code_bytes; // of the server's memory that what its interpreters send takes; code_memory.h

    char seal_keys[SANDBOX_SEAL_KEYS][ID_TEXT]; // core/seal.h; under the lock
    unsigned n_seal_keys;                       // that were ever added

    struct quota_share share; // what is counted for it; account/quota.h

    const char *const *runtime_env; // of its runtime, in one allocation; never changed; or NULL
    // Times on the monotonic clock: a step of the wall clock ends nothing, and lets nothing live for ever.
    _Atomic int64_t active_ms; // when it was used last
    int64_t paused_ms;         // since when it is paused; under the lock
    int64_t expires_ms;        // when its record says that it expires; likewise
    int64_t created_ms;
    _Atomic int64_t sample_ms; // when its use is measured next
    _Atomic int64_t
        sampled_ms; // when it was measured last; 0: not yet. Changed under box_lock, and
    _Atomic uint64_t sampled_memory; // bytes then
    int64_t counted_cpu_ms;          // of the box's own counter
    int64_t counted_egress_bytes;    // likewise
    struct gauge_history history;    // of these measures

    // See watchlist.h.
    struct sandbox *next_noticed;
    struct loop_timer deadline; // the monitor's; has a reference while it is set
    _Atomic bool is_watched_closely;
    _Atomic bool is_registered; // in the registry, and alive
    _Atomic unsigned n_noticed; // how often something has happened
    _Atomic unsigned
        n_measured; // so much of that is in the last measure, which found nothing running

    struct {
        struct lock lock; // guards the list
        struct letter *first, *last;
        bool is_open;               // somebody works through it
    } mailbox;                      // mailbox.h
    _Atomic bool is_sample_posted;  // to the mailbox
    _Atomic bool is_check_posted;   // ends that could not be recorded are looked at soon
    _Atomic bool is_being_ended;    // somebody is at it
    _Atomic bool is_unwanted;       // it was deleted while it was being made
    _Atomic bool is_resting;        // likewise: see sandbox_rest
    const char *_Atomic end_reason; // why, of the last try
};

/* Makes one for a record, which is copied. */
struct sandbox *sandbox_new(struct sandboxes *sandboxes, const struct sandbox_record *record);
struct sandbox *sandbox_ref(struct sandbox *sandbox);
void sandbox_free(struct sandbox *sandbox); // gives up one reference
DEFINE_AUTOPTR(sandbox)

bool sandbox_is_in(struct sandbox *sandbox, unsigned states); // a set, as sandbox_in makes
bool sandbox_is_over(struct sandbox *sandbox);

/* What came while the sandbox went back to a checkpoint has to be asked for again. Returns -1. */
int sandbox_went_back(struct error *err);

/* Waits while it is between two states that last (creating, pausing, resuming). */
int sandbox_await_calm(struct sandbox *sandbox, struct error *err);
/* Whoever ends it is in one of these before it comes for the box. */
#define SANDBOX_ENDING (SANDBOX_OVER | sandbox_in(SANDBOX_STOPPING))
int sandbox_refuse_ending(struct error *err); // ERROR_ENDED, noun "sandbox"; -1

/* A state that is only passed through, in memory; after a crash it is as it was before. */
int sandbox_pass(struct sandbox *sandbox, enum lifecycle_step step, struct error *err);
/* The same by one that holds record_lock. */
int sandbox_take_step(struct sandbox *sandbox, enum lifecycle_step step, const char *reason,
                      struct error *err);

/* What the next command will be called in the box. */
uint32_t sandbox_next_number(struct sandbox *sandbox);

void sandbox_touch(struct sandbox *sandbox);     // it was used just now
void sandbox_tell_over(struct sandbox *sandbox); // to who watches ends; sandbox_show does

/* Its state becomes that of `next`, which is cleared; readers are told by whoever calls. The caller holds record_lock. */
void sandbox_change(struct sandbox *sandbox, struct sandbox_record *next);
/* The same, but `next` keeps all but its reason and error, which become those from before. */
void sandbox_show(struct sandbox *sandbox, struct sandbox_record *next);

/* What a reader may have: a copy, under the lock. */
void sandbox_copy(struct sandbox *sandbox, struct sandbox_record *out);
/* Its scratch, which going back to a checkpoint exchanges; the caller's, or NULL. */
char *sandbox_scratch(struct sandbox *sandbox);

/* Returns when the store knows what everybody was told already: an end is told first and recorded then. Blocks; not under record_lock. */
void sandbox_settle(struct sandbox *sandbox);
