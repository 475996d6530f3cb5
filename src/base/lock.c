/* SPDX-License-Identifier: Apache-2.0 */
/* Locks in one order; see lock.h. */
#include "base/lock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define MOST_HELD 8

/* What this thread holds, in the order it was taken. */
static _Thread_local struct {
    const struct lock *locks[MOST_HELD];
    unsigned count;
} held;

static void fail(const char *what, const struct lock *lock)
{
    (void)fprintf(stderr, "burrow: %s a lock of rank %d while the last one held has rank %d\n",
                  what, (int)lock->rank,
                  held.count ? (int)held.locks[held.count - 1]->rank : (int)LOCK_NONE);
    abort();
}

static void push(const struct lock *lock)
{
    if (held.count == MOST_HELD)
        fail("too many held to take", lock);
    held.locks[held.count++] = lock;
}

static void check_order(const struct lock *lock)
{
    for (unsigned i = 0; i < held.count; i++) {
        if (held.locks[i]->rank >= lock->rank)
            fail("taking out of order", lock);
    }
}

void lock_init(struct lock *lock, enum lock_rank rank)
{
    (void)pthread_mutex_init(&lock->mutex, NULL);
    lock->rank = rank;
}

void lock_clear(struct lock *lock)
{
    (void)pthread_mutex_destroy(&lock->mutex);
}

struct lock *lock_take(struct lock *lock)
{
    check_order(lock);
    (void)pthread_mutex_lock(&lock->mutex);
    push(lock);
    return lock;
}

bool lock_try(struct lock *lock)
{
    if (lock_is_mine(lock) || pthread_mutex_trylock(&lock->mutex) != 0)
        return false;
    push(lock);
    return true;
}

void lock_release(struct lock *lock)
{
    unsigned at = held.count;

    while (at > 0 && held.locks[at - 1] != lock)
        at--;
    if (at == 0)
        fail("releasing, without holding it,", lock);
    for (held.count--; at <= held.count; at++)
        held.locks[at - 1] = held.locks[at];
    (void)pthread_mutex_unlock(&lock->mutex);
}

bool lock_is_mine(const struct lock *lock)
{
    for (unsigned i = 0; i < held.count; i++) {
        if (held.locks[i] == lock)
            return true;
    }
    return false;
}

void lock_condition_init(struct lock_condition *condition)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&condition->condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

void lock_condition_clear(struct lock_condition *condition)
{
    (void)pthread_cond_destroy(&condition->condition);
}

void lock_condition_wake(struct lock_condition *condition)
{
    (void)pthread_cond_broadcast(&condition->condition);
}

bool lock_condition_wait(struct lock_condition *condition, struct lock *lock, uint64_t until_ms)
{
    const struct timespec until = {.tv_sec = (time_t)(until_ms / 1000),
                                   .tv_nsec = (long)(until_ms % 1000) * 1000000};

    if (!lock_is_mine(lock))
        fail("waiting, without holding it, under", lock);
    if (until_ms == 0)
        return pthread_cond_wait(&condition->condition, &lock->mutex) == 0;
    return pthread_cond_timedwait(&condition->condition, &lock->mutex, &until) != ETIMEDOUT;
}
