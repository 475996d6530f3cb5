/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The room of sandboxes: what its files share, and what the rooms above it (executions, snapshots, the root of the core) may use.
 * Private to the core; fronts use sandbox.h, file.h and statistics.h.
 * Threads: any; nothing in the struct changes after sandboxes_open, but what says so.
 */
#pragma once
#include "base/auto.h"
#include "base/lock.h"
#include "core/settings.h"
#include "engine/spare_boxes.h"
#include "loop/workers.h"
#include "store/executions.h"
#include "store/sandboxes.h"

#include <stdatomic.h>

struct accounts;
struct executions;
struct gauge_histories;
struct hub;
struct layers;
struct outlets;
struct refusals;
struct runtimes;
struct monitor;
struct pool;
struct registry;
struct sandbox;
struct streams;
struct temporaries;
struct watchlist;

/* What this room needs of the executions in its sandboxes. The execution room, which this one cannot include, fills it in. */
struct execution_ops {
    /* A process of the sandbox has ended: shows it, and has it recorded by others. On the monitor; does not block. */
    void (*on_exit)(struct sandbox *sandbox, const struct process_exit *exit);
    /* The same, and records it. Without locks; blocks. */
    void (*ended)(struct sandbox *sandbox, const struct process_exit *exit);
    /* A process of the sandbox has written output (BOX_EVENT_OUTPUT). Does not block. */
    void (*announce_output)(struct sandbox *sandbox, const struct box_event *event);
    /* Kills what did not heed a stop in time, and tries again to record ends. On the monitor. */
    void (*check_deadlines)(struct sandbox *sandbox, int64_t now);
    /* Whether an execution that makes it busy is recorded and has not ended. Under record_lock. */
    bool (*is_running)(const struct sandbox *sandbox);
    /* Whether an end was shown that is not in the store yet. */
    bool (*is_ahead)(struct sandbox *sandbox);
    /* Records such ends. Under record_lock. */
    void (*record_shown)(struct sandbox *sandbox);
    /* All that have not ended are over with the sandbox: rows in the caller's transaction, under record_lock; once that is
     * committed end_all, still under record_lock. */
    int (*put_ends)(struct sandbox *sandbox, enum execution_state state, const char *error,
                    int64_t now, struct error *err);
    void (*end_all)(struct sandbox *sandbox, enum execution_state state, const char *error,
                    int64_t now);
    void (*free_all)(struct sandbox *sandbox);   // with the sandbox
    void (*tick)(struct executions *executions); // several times a second, on the monitor
};

/* What has to hear that a sandbox is over, before whoever ended it is answered: rooms above this one, which it cannot include. */
struct sandbox_end_watch {
    /* Under any lock of a sandbox; does memory work alone. */
    void (*on_over)(void *data, const char *sandbox_id);
    void *data;
};

struct sandboxes {
    // Borrowed; set by who opens the room.
    const struct core_settings *settings;
    struct store *store;
    struct engine *engine;
    struct hub *hub;
    struct accounts *accounts;
    struct streams *streams;
    struct runtimes *runtimes;
    struct layers *layers;
    struct temporaries *temporaries;
    struct outlets *outlets;
    struct workers *recorders; // work through the mailboxes
    struct workers *reaper;    // ends sandboxes and their boxes
    struct workers *remover;   // removes trees of files, which takes as long as it takes
    // Set by the execution room, before the monitor starts.
    const struct execution_ops *execution_ops;
    struct executions *executions;
    // Likewise by the port room.
    struct sandbox_end_watch end_watch;
    // Likewise by the code room: what waits in spare boxes of runtimes whose definition names an interpreter; without argv: nothing.
    struct spare_resident resident; // without env, which is the runtime's

    // Its own.
    struct registry *registry;
    struct pool *pool;
    struct monitor *monitor;
    struct refusals *refusals;
    struct gauge_histories *histories;
    struct watchlist *watchlist; // the monitor's; NULL: there is none
    // Sandboxes that are over and still have a box. The reaper removes those, and whoever needs a new one when there are many.
    struct {
        struct lock lock; // guards the list
        struct sandbox *first, *last;
        _Atomic unsigned count;
        unsigned n_removals;           // trees of files that are being removed, or wait for it
        struct lock_condition removed; // one more is
    } endings;
};

/* `parts` has what is borrowed. Nothing is listened to before monitor_start. */
int sandboxes_open(const struct sandboxes *parts, struct sandboxes **out, struct error *err);
/* Nobody asks any more, and the reaper has ended. */
void sandboxes_free(struct sandboxes *sandboxes);
DEFINE_AUTOPTR(sandboxes)
