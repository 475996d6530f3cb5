/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks that are released at the end of their block, and that are taken in one order (lock_order.h): taking one out of order, taking
 * one twice, or releasing one that is not held ends the program with a line that has both ranks, in every build.
 *
 *     autolock(&queue->lock);      held until the block ends
 *
 * Threads: any.
 */
#pragma once
#include "base/lock_order.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

struct lock {
    pthread_mutex_t mutex;
    enum lock_rank rank;
};

void lock_init(struct lock *lock, enum lock_rank rank);
void lock_clear(struct lock *lock); // held by nobody

struct lock *lock_take(struct lock *lock);
bool lock_try(struct lock *lock); // false: somebody has it. Any order: it does not wait
void lock_release(struct lock *lock);

bool lock_is_mine(const struct lock *lock); // for asserts

static inline void lock_releasep(struct lock **lock)
{
    if (*lock)
        lock_release(*lock);
}

#define LOCK_JOIN_(a, b) a##b
#define LOCK_JOIN(a, b) LOCK_JOIN_(a, b)
/* Holds the lock until the end of the block. */
#define autolock(which)                                                                            \
    __attribute__((cleanup(lock_releasep), unused)) struct lock *LOCK_JOIN(held_, __LINE__) =      \
        lock_take(which)
/* The same where it is free: `name` is NULL where it is not. */
#define autolock_try(name, which)                                                                  \
    __attribute__((cleanup(lock_releasep))) struct lock *name = lock_try(which) ? (which) : NULL

/* A condition under a lock, on the monotonic clock: a step of the wall clock moves no deadline. */
struct lock_condition {
    pthread_cond_t condition;
};
void lock_condition_init(struct lock_condition *condition);
void lock_condition_clear(struct lock_condition *condition);
void lock_condition_wake(struct lock_condition *condition); // all who wait
/* Waits until woken, or until clock_monotonic_ms() is `until_ms` (0: for ever): false then. The caller holds the lock. */
bool lock_condition_wait(struct lock_condition *condition, struct lock *lock, uint64_t until_ms);
