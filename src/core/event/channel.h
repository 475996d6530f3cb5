/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All events of the server in the order of their numbers, for any number of readers. The newest are kept in memory, once for all; whoever is
 * further behind reads the store. A thread of its own reads what was committed and announces EVENT_CHANNEL_ID at the hub: as long as nobody has
 * joined it sleeps, and writing an event costs nothing more.
 * Threads: any; those that read the store say so.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "core/event/event_info.h"
#include "core/event/hub.h"

#include <stdatomic.h>

struct event_channel;
struct store;

/* What the hub announces when there are new events. */
#define EVENT_CHANNEL_ID "events"

/* Before anything is written: after a start of the machine, numbers that somebody was told may be lost with its power, so none of them is given again. */
int event_resume(struct store *store, struct error *err);

int event_channel_open(struct store *store, struct hub *hub, struct event_channel **out,
                       struct error *err);
void event_channel_free(struct event_channel *channel); // before store and hub
DEFINE_AUTOPTR(event_channel)

/* Somebody waits for events from here on, or no longer. */
void event_channel_join(struct event_channel *channel);
void event_channel_leave(struct event_channel *channel);

/* One event, shared by all who read it. */
#define SHARED_EVENT_FORMS 2
struct shared_event {
    atomic_uint refs;
    struct event_info info;
    /* What a front has made of it, by kind; allocated, and touched on its loop alone. */
    char *rendered[SHARED_EVENT_FORMS];
    size_t lengths[SHARED_EVENT_FORMS];
};
void shared_event_unref(struct shared_event *event);

/*
 * Up to `most` of those above `after`, each with a reference. Returns how many: 0 when there is nothing new. -1: it is further behind than the
 * memory goes; event_scan goes on. Does not block.
 */
int event_channel_next(struct event_channel *channel, int64_t after, struct shared_event **out,
                       unsigned most);

/* The numbers there are. Reads the store: any but loops, like those below. */
struct event_range {
    int64_t forgotten; // above this one, no event is missing
    int64_t last;      // that was given
};
int event_range(struct event_channel *channel, struct event_range *out, struct error *err);

/* Those that `scan` wants of the next so many; *reached is how far it has looked. Its owner is the caller's to set: what may be seen. */
int event_scan(struct event_channel *channel, const struct event_scan *scan,
               struct event_infos *out, int64_t *reached, struct error *err);
