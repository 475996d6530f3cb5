/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What happened: a type, a reason, a few facts, written in order. Most happen to a sandbox, and can be read with it for as long as that is remembered;
 * all are in the channel (channel.h) for as long as the server keeps events.
 * Threads: any but loops; an event being filled is its maker's.
 */
#pragma once
#include "base/error.h"
#include "model/owner.h"

#include <stdint.h>

struct store;

/*
 * The types and when they happen; `reason` and the facts tell the rest:
 *   create, started, completed (an execution ended; facts exit_code, state), failed (could not be made), terminated
 *   (reason: idle, paused, expired, lifetime, one_shot, box_ended, undelivered), destroy, pause, resume
 */
#define EVENT_CREATE "create"
#define EVENT_STARTED "started"
#define EVENT_PROGRESS "progress" // its runtime is being made; facts runtime, phase, percent
#define EVENT_COMPLETED "completed"
#define EVENT_FAILED "failed"
#define EVENT_TERMINATED "terminated"
#define EVENT_DESTROY "destroy"
#define EVENT_PAUSE "pause"
#define EVENT_RESUME "resume"
#define EVENT_CHECKPOINT "checkpoint"         // reason: created, restored, deleted
#define EVENT_SNAPSHOT "snapshot"             // reason: created, deleted
#define EVENT_CHANGE "change"                 // facts: what is different now
#define EVENT_LIMITS "limits"                 // facts: what they are now
#define EVENT_PROCESSES_LOST "processes_lost" // the files are still there
#define EVENT_NETWORK                                                                              \
    "network"           // reason: changed, refused, observed (let through, see model/network.h)
#define EVENT_KEY "key" // reason: created, revoked; of no sandbox
#define EVENT_WEBHOOK "webhook" // reason: disabled, test; likewise

#define EVENT_FACTS 6
#define EVENT_FACT 160

struct event {
    const char *type;   // one of those above
    const char *reason; // a literal, or NULL
    int64_t now;
    char facts[EVENT_FACTS][EVENT_FACT]; // NAME=VALUE
    unsigned n_facts;
};

/* Each adds a fact; none where the value is NULL, or there are EVENT_FACTS already. */
void event_fact(struct event *event, const char *name, const char *value);
void event_number(struct event *event, const char *name, int64_t value);

/* Writes it for a sandbox of this owner, or for none (NULL), in the caller's transaction. */
int event_write(struct store *store, const char *sandbox_id, const struct owner *owner,
                const struct event *event, struct error *err);
/* The same, and says its number among all. */
int event_write_numbered(struct store *store, const char *sandbox_id, const struct owner *owner,
                         const struct event *event, int64_t *serial, struct error *err);
