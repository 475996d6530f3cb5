/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the core share and nobody else sees. */
#pragma once
#include "core/core.h"
#include "core/stream/streams.h"
#include "engine/box.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "store/store.h"

struct background; // loop/background.h: work that can wait
struct pool;       // pool.h: boxes made ahead
struct images;     // images.h: runtimes opened once
struct listings;   // listing.h: files of snapshots, listed once
struct monitor;    // monitor.h: the core's own loop and thread
struct queue;      // queue.h: executions that wait for their turn
struct registry;   // sandboxes.h: the living ones

struct core {
    struct core_settings settings; // texts are ours
    int lock_fd;                   // one server per data directory
    struct store *store;
    struct engine *engine;
    struct hub *hub;
    struct keys *keys;
    struct streams *streams;
    struct images *images;
    struct pool *pool;
    struct registry *registry;
    struct monitor *monitor;
    struct queue *queue;
    struct background *background;
    struct listings *listings;
    _Atomic unsigned n_commands; // that run
    struct workers *reaper;      // the core's own: ending boxes, filling the pool
    // Sandboxes that are over and still have a box. The reaper removes those, and whoever needs a new one when there are many.
    struct {
        pthread_mutex_t lock; // guards the list
        struct sandbox *first, *last;
        _Atomic unsigned count;
    } endings;
};

/*
 * Opens a conversation about files in the sandbox's box (engine/files.h speaks it), counted as activity. `out_user_base`
 * semantics are the sandbox's: its user, its working directory. Waits while it is being created.
 */
int core_files(struct core *core, const struct actor *actor, const char *sandbox_id,
               int *conversation, struct error *err);
