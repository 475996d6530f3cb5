/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core: everything a caller may ask, once, for all fronts. Opens store and engine, takes over what an earlier server left
 * running, and keeps deadlines on a thread of its own. Knows no protocol. Each subject is a room with calls of its own; a front reaches
 * them through the pointers here: sandbox_get(core->sandboxes, ...).
 * Threads: any; core_open and core_free: one thread, and they block.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "core/account/account.h"
#include "core/event/hub.h"
#include "core/settings.h"

#include <stdbool.h>
#include <stdint.h>

struct audit;
struct background;
struct contexts;
struct engine;
struct event_channel;
struct executions;
struct layers;
struct outlets;
struct ports;
struct recipes;
struct runtimes;
struct sandboxes;
struct snapshots;
struct store;
struct streams;
struct temporaries;
struct webhooks;
struct workers;

/* The core is its rooms: a caller asks each through the headers in its folder. */
struct core {
    struct core_settings settings; // strings are ours
    struct hub *hub;
    struct event_channel *events;
    struct accounts *accounts;
    struct audit *audit;
    struct streams *streams;
    struct runtimes *runtimes;
    struct layers *layers;
    struct outlets *outlets;
    struct sandboxes *sandboxes;
    struct executions *executions;
    struct contexts *contexts;
    struct snapshots *snapshots;
    struct webhooks *webhooks;
    struct ports *ports;
    struct recipes *recipes;
    struct temporaries *temporaries;
    // What the rooms share; no front knows what is in these.
    int lock_fd;            // one server per data directory
    unsigned char seed[32]; // seal.h
    int64_t opened_at;      // on the wall clock
    struct store *store;
    struct engine *engine;
    struct background *background;
    struct workers *recorders; // work through the mailboxes of sandboxes
    struct workers *reaper;    // ends sandboxes and their boxes
    struct workers *remover;   // removes trees of files
    struct workers *makers;    // make sandboxes whose runtime has to be built first
};

/*
 * Blocks: opens, migrates, adopts, sweeps. ERROR_CONFLICT when another server has the data directory. The first key is not made
 * here.
 */
int core_open(const struct core_settings *settings, struct core **out, struct error *err);

/* Stops looking after things. Boxes live on. No call may be under way. */
void core_free(struct core *core);
DEFINE_AUTOPTR(core)

struct core_health {
    unsigned sandboxes;  // alive
    unsigned spares;     // boxes made ahead
    int64_t spare_bytes; // of memory that those hold
    unsigned commands;   // that run now
    unsigned queued;     // that wait
    bool is_default_runtime_ready;
    const char *fault; // why it cannot do all that it should, a literal; NULL: it can
};
void core_health(struct core *core, struct core_health *out); // does not block
