/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core: everything a caller may ask, once, for all fronts. Opens store and engine, takes over what an earlier server left
 * running, and keeps deadlines on a thread of its own. Knows no protocol.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "core/account/account.h"
#include "core/event/hub.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

/* core_settings_default is where to start from. */
struct core_settings {
    const char *data_dir;
    const char *default_runtime;
    int64_t memory_bytes; // limits of a sandbox that asks for none; 0: no limit
    int64_t cpu_millicores;
    int64_t disk_bytes;
    int64_t max_processes;
    int64_t idle_timeout_ms;
    int64_t execution_timeout_ms; // 0: none
    int64_t output_cap_bytes;     // per stream of an execution
    int64_t stream_limit_bytes;   // of a user's own stream
    int64_t file_limit_bytes;     // of one file or archive that is read or written over the API
    int64_t keep_ms;              // how long an ended sandbox's streams and records are kept
    unsigned max_sandboxes;       // alive at once
    unsigned queue_at_once;       // executions from the queue that run at once
    unsigned queue_length;        // that may wait in it
    unsigned parked_one_shot;     // boxes made ahead; 0: none
    unsigned parked_kept;
    const char
        *parked_directory;       // made ahead in them: where the fronts' commands start; NULL: none
    const char *archive_program; // path of burrow-archive; NULL: next to this program
    const char *fail_step;       // tests; NULL
};
extern const struct core_settings core_settings_default;

/* The core is its rooms: a caller asks each through the headers in its folder. The rest is the core's own. */
struct core {
    struct hub *hub;           // event/hub.h: who waits for news of what
    struct accounts *accounts; // account/
    struct streams *streams;   // stream/
    struct runtimes *runtimes; // runtime/

    struct core_settings settings; // texts are ours
    int lock_fd;                   // one server per data directory
    struct store *store;
    struct engine *engine;
    struct pool *pool;             // pool.h: boxes made ahead
    struct registry *registry;     // sandbox_object.h: the living ones
    struct monitor *monitor;       // monitor.h: the core's own loop and thread
    struct queue *queue;           // queue.h: executions that wait for their turn
    struct background *background; // loop/background.h: work that can wait
    struct listings *listings;     // listing.h: files of snapshots, listed once
    _Atomic unsigned n_commands;   // that run
    struct workers *reaper;        // the core's own: ending boxes, filling the pool
    // Sandboxes that are over and still have a box. The reaper removes those, and whoever needs a new one when there are many.
    struct {
        pthread_mutex_t lock; // guards the list
        struct sandbox *first, *last;
        _Atomic unsigned count;
    } endings;
};

/*
 * Blocks: opens, migrates, adopts, sweeps. ERROR_CONFLICT when another server has the data directory. The first key is not made
 * here.
 */
int core_open(const struct core_settings *settings, struct core **out, struct error *err);

/* Stops looking after things. Boxes live on. No call may be under way. */
void core_free(struct core *core);
DEFINE_AUTOPTR(core)

const struct core_settings *core_settings(const struct core *core);

struct core_health {
    unsigned sandboxes; // alive
    unsigned parked;    // boxes made ahead
    unsigned commands;  // that run now
    unsigned queued;    // that wait
    bool is_default_runtime_ready;
};
void core_health(struct core *core, struct core_health *out); // does not block
