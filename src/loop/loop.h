/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread that waits: for file descriptors, for times, and for what other threads hand over.
 * Everything runs on the thread inside loop_run, one callback at a time, and must not block.
 * Threads: the loop; loop_post, loop_stop and loop_is_here are for any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct loop;

int loop_new(struct loop **out, struct error *err);

/* Runs callbacks until loop_stop. What was posted before the stop has been run by then. */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Runs what is still posted, then forgets all. Watches and timers must be gone; nobody may post any
 * more. */
void loop_free(struct loop *loop);
DEFINE_AUTOPTR(loop)

/* Has fn(data) run on the loop, soon, never inside this call; in the order of the calls. Any
 * thread; cannot fail. */
void loop_post(struct loop *loop, void (*fn)(void *data), void *data);

/* Is the caller the thread that runs the loop, or is nobody running it? */
bool loop_is_here(const struct loop *loop);
#define assert_on_loop(loop) assert(loop_is_here(loop))

/* The monotonic clock as of this turn of the loop. */
uint64_t loop_now_ms(const struct loop *loop);

enum loop_events {
    LOOP_READABLE = 1,
    LOOP_WRITABLE = 2,
    LOOP_HANGUP = 4, // the other side will send no more; asked for like the others
    LOOP_FAILED =
        8, // never asked for, always told: the descriptor is broken; no more is told after it
};

/*
 * Tells of a descriptor that is ready, again in each turn as long as it is. The descriptor stays
 * the caller's and is closed after loop_watch_free, which may be called from its own callback.
 */
struct loop_watch;
typedef void (*on_ready)(void *data, unsigned events);
int loop_watch_new(struct loop *loop, int fd, on_ready fn, void *data, struct loop_watch **out,
                   struct error *err);
void loop_watch_set(struct loop_watch *watch, unsigned events); // what to tell; 0: nothing for now
void loop_watch_free(struct loop_watch *watch);
DEFINE_AUTOPTR(loop_watch)

/* One shot, embedded in its owner; all zero is a timer that is not set. Clear before the owner's
 * memory goes. */
struct loop_timer {
    struct loop *loop;
    void (*fn)(void *data);
    void *data;
    uint64_t when_ms;
    size_t place; // in the loop's heap, from 1; 0: not set
};
void loop_timer_init(struct loop_timer *timer, struct loop *loop, void (*fn)(void *data),
                     void *data);
void loop_timer_set(struct loop_timer *timer, uint64_t after_ms); // also moves one that is set
void loop_timer_clear(struct loop_timer *timer);
