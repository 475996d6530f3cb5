/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all have in common that answer a call bit by bit and wait in between: they are woken by the hub from any thread and then look on the
 * loop, and what may block is done by a worker, one thing at a time. One lives until its response has ended, no wake-up is on
 * its way, and no worker has it. Costs memory and no thread.
 * Threads: the loop; what says so, any.
 */
#pragma once
#include "loop/loop.h"
#include "web/event_format.h"
#include "web/waiting_call.h"

#include <stdatomic.h>
#include <stdbool.h>

/* All get the follower. On the loop, but for free. */
struct follower_kind {
    void (*on_wake)(void *follower);   // something changed, wherever follower_wake was called
    void (*on_worked)(void *follower); // a worker is done with it
    void (*on_retry)(void *follower);  // there was no worker for it a moment ago
    void (*free)(void *follower); // the last that is called: frees what is not the base's, and it
};

/* The first member of each. Its fields are to be read only. */
struct follower {
    struct waiting_call waiting;
    const struct follower_kind *kind;
    struct loop_timer retry;
    void (*work)(void *follower); // the worker's, while is_working
    atomic_uint refs;             // the response until its end, a wake-up, a worker
    atomic_bool is_posted;        // a wake-up is on its way
    bool is_working;              // a worker has it
};

/* The reference is for the response: follower_end gives it up. Any thread. */
void follower_init(struct follower *follower, const struct call *call,
                   const struct follower_kind *kind);
void follower_ref(struct follower *follower);
void follower_unref(struct follower *follower);

/* Has on_wake called on the loop, once however often it is called before that. For hub_watch, with the follower. Any thread. */
void follower_wake(void *follower);

/* Has a worker call `work`, then the loop on_worked. False: all are busy, and on_retry comes in a moment. Not while is_working. */
bool follower_work(struct follower *follower, void (*work)(void *follower));

/* Sends a sign of life, unless the client is behind anyway. */
void follower_keep_alive(struct follower *follower, enum event_format format);

/* The response has ended: no retry comes any more. What is under way still does. */
void follower_end(struct follower *follower);
