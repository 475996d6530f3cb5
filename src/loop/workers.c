/* SPDX-License-Identifier: Apache-2.0 */
/* Two rings of work, each with its own threads. */
#include "loop/workers.h"

#include "base/lock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#define FIRST_CAPACITY 64 // of a queue that has no bound

struct work {
    void (*fn)(void *data);
    void *data;
};

/* A thread with nothing to do; on its own stack. Who takes it out of the list gives it work, or none at the end, and posts. */
struct idler {
    sem_t call;
    struct work work;
    bool has_work;
    struct idler *before; // who became idle before it
};

struct lane {
    struct workers *workers;
    struct work *ring;
    size_t capacity, first, count;
    size_t running;
    // The last one that became idle is called first: what it used is still in the caches, and with little to do few threads
    // do it all.
    struct idler *idle;
    const char *name; // of its threads
    _Atomic unsigned n_named;
    bool is_unbounded;
    pthread_t *threads;
    unsigned thread_count, thread_limit;
};

struct workers {
    struct lock lock; // guards all of the lanes but what is set once
    struct lock_condition is_idle;
    bool is_ending;
    struct lane lanes[WORKERS_LANES];
};

/* Out of the ring; with the lock held. */
static struct work take_work(struct lane *lane)
{
    struct work work = lane->ring[lane->first];
    lane->first = (lane->first + 1) % lane->capacity;
    lane->count--;
    lane->running++;
    return work;
}

/* Out of the list, or NULL. With the lock held; the caller posts, without it best: then the woken thread does not meet it. */
static struct idler *take_idler(struct lane *lane)
{
    struct idler *idler = lane->idle;

    if (idler)
        lane->idle = idler->before;
    return idler;
}

enum next { NEXT_WORK, NEXT_IDLE, NEXT_END };

/* What to do now; or lists the thread as idle: then it is others' until they have posted, once. Or there will be no more. */
static enum next next_work(struct lane *lane, struct idler *self)
{
    struct workers *workers = lane->workers;

    autolock(&workers->lock);
    self->has_work = lane->count > 0;
    if (self->has_work) {
        self->work = take_work(lane);
        return NEXT_WORK;
    }
    if (workers->is_ending)
        return NEXT_END;
    self->before = lane->idle;
    lane->idle = self;
    return NEXT_IDLE;
}

static void work_done(struct lane *lane)
{
    struct workers *workers = lane->workers;

    autolock(&workers->lock);
    if (--lane->running == 0 && lane->count == 0)
        lock_condition_wake(&workers->is_idle);
}

static void *serve_lane(void *data)
{
    struct lane *lane = data;
    struct idler self = {0};
    char name[16];

    (void)snprintf(name, sizeof name, lane->thread_limit > 1 ? "%s-%u" : "%s",
                   lane->name ? lane->name : "worker", atomic_fetch_add(&lane->n_named, 1) + 1);
    thread_set_name(name);
    (void)sem_init(&self.call, 0, 0);
    for (enum next next; (next = next_work(lane, &self)) != NEXT_END;) {
        while (next == NEXT_IDLE && sem_wait(&self.call) < 0)
            ; // interrupted
        if (!self.has_work)
            continue; // called for the end
        self.work.fn(self.work.data);
        work_done(lane);
    }
    (void)sem_destroy(&self.call);
    return NULL;
}

static int start_lane(struct lane *lane, unsigned threads, struct error *err)
{
    lane->thread_limit = threads;
    for (; lane->thread_count < threads; lane->thread_count++) {
        int code = pthread_create(&lane->threads[lane->thread_count], NULL, serve_lane, lane);
        if (code != 0)
            return error_sys_code(err, code, "start worker %u", lane->thread_count + 1);
    }
    return 0;
}

static int start_threads(struct workers *workers, const struct workers_settings *settings,
                         struct error *err)
{
    sigset_t all;
    sigset_t before;
    int status = 0;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    for (int i = 0; i < WORKERS_LANES && status == 0; i++)
        status = start_lane(&workers->lanes[i], settings->lane[i].threads, err);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

int workers_new(const struct workers_settings *settings, struct workers **out, struct error *err)
{
    autoptr(workers) workers = xnew(struct workers);

    lock_init(&workers->lock, LOCK_WORKERS);
    lock_condition_init(&workers->is_idle);
    for (int i = 0; i < WORKERS_LANES; i++) {
        struct lane *lane = &workers->lanes[i];
        unsigned queue = settings->lane[i].queue;
        lane->workers = workers;
        lane->name = settings->lane[i].name;
        lane->is_unbounded = queue == WORKERS_UNBOUNDED;
        lane->capacity = lane->is_unbounded ? FIRST_CAPACITY : queue ? queue : 1;
        lane->ring = xcalloc(lane->capacity, sizeof *lane->ring);
        lane->threads = xcalloc(settings->lane[i].threads, sizeof *lane->threads);
    }
    if (start_threads(workers, settings, err) < 0)
        return -1;
    *out = take(workers);
    return 0;
}

/* Twice the room, with what waits from the beginning on. With the lock held. */
static void grow(struct lane *lane)
{
    struct work *ring = xcalloc(lane->capacity * 2, sizeof *ring);

    for (size_t i = 0; i < lane->count; i++)
        ring[i] = lane->ring[(lane->first + i) % lane->capacity];
    free(lane->ring);
    lane->ring = ring;
    lane->first = 0;
    lane->capacity *= 2;
}

/* Gives it to an idle thread, which is the caller's to wake; or to the queue. False: that is full. */
static bool place_work(struct lane *lane, struct work work, struct idler **idler)
{
    autolock(&lane->workers->lock);
    *idler = take_idler(lane); // who is idle is so because nothing waits
    if (*idler) {
        (*idler)->work = work;
        (*idler)->has_work = true;
        lane->running++;
        return true;
    }
    if (lane->count == lane->capacity && lane->is_unbounded)
        grow(lane);
    if (lane->count == lane->capacity)
        return false;
    lane->ring[(lane->first + lane->count++) % lane->capacity] = work;
    return true;
}

int workers_submit(struct workers *workers, enum workers_lane which, void (*fn)(void *data),
                   void *data, struct error *err)
{
    struct lane *lane = &workers->lanes[which];
    struct idler *idler = NULL;

    bool is_placed = place_work(lane, (struct work){fn, data}, &idler);
    if (idler)
        (void)sem_post(&idler->call);
    if (is_placed)
        return 0;
    return error_refuse(err, ERROR_FULL, "queue",
                        "the server is busy: %zu requests are waiting already, try again shortly",
                        lane->capacity);
}

void workers_run(struct workers *workers, enum workers_lane which, void (*fn)(void *data),
                 void *data)
{
    struct error impossible = {0};
    int result = workers_submit(workers, which, fn, data, &impossible);

    assert(result == 0 && workers->lanes[which].is_unbounded);
    (void)result;
}

size_t workers_waiting(struct workers *workers, enum workers_lane which)
{
    autolock(&workers->lock);
    return workers->lanes[which].count;
}

static bool is_busy(const struct workers *workers)
{
    for (int i = 0; i < WORKERS_LANES; i++) {
        if (workers->lanes[i].count || workers->lanes[i].running)
            return true;
    }
    return false;
}

/* Waits until nothing is left to do, and calls all threads for their end. */
static void end_threads(struct workers *workers)
{
    autolock(&workers->lock);
    while (is_busy(workers) && !workers->is_ending)
        (void)lock_condition_wait(&workers->is_idle, &workers->lock, 0);
    workers->is_ending = true;
    for (int i = 0; i < WORKERS_LANES; i++) {
        for (struct idler *idler; (idler = take_idler(&workers->lanes[i]));)
            (void)sem_post(&idler->call);
    }
}

void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    end_threads(workers);
    for (int i = 0; i < WORKERS_LANES; i++) {
        struct lane *lane = &workers->lanes[i];
        for (unsigned t = 0; t < lane->thread_count; t++)
            (void)pthread_join(lane->threads[t], NULL);
        free(lane->threads);
        free(lane->ring);
    }
    lock_condition_clear(&workers->is_idle);
    lock_clear(&workers->lock);
    free(workers);
}
