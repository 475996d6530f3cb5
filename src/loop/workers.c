/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes: threads that do what has its turn. */
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

/* A thread with nothing to do; on its own stack. Who takes it out of the list gives it work, or none at the end, and posts. */
struct idler {
    sem_t call;
    struct turns_work work;
    struct turns_party *party; // whose it is; NULL: there is none
    struct idler *before;      // who became idle before it
};

struct lane {
    struct workers *workers;
    struct turns *turns;
    // The last one that became idle is called first: what it used is still in the caches, and with little to do few threads
    // do it all.
    struct idler *idle;
    const char *name; // of its threads
    _Atomic unsigned n_named;
    unsigned queue;
    bool gives_way;
    pthread_t *threads;
    unsigned thread_count, thread_limit;
};

struct workers {
    struct lock lock; // guards all of the lanes but what is set once
    struct lock_condition is_idle;
    bool is_ending;
    struct lane lanes[WORKERS_LANES];
};

/* Out of the list, or NULL. With the lock held; the caller posts, without it best: then the woken thread does not meet it. */
static struct idler *take_idler(struct lane *lane)
{
    struct idler *idler = lane->idle;

    if (idler)
        lane->idle = idler->before;
    return idler;
}

/* Gives an idle thread something to do; it is the caller's to wake. NULL: none is idle, or nothing may run. With the lock held. */
static struct idler *hand_out(struct lane *lane)
{
    struct turns_work work;
    struct turns_party *party = lane->idle ? turns_next(lane->turns, &work) : NULL;

    if (!party)
        return NULL;
    struct idler *idler = take_idler(lane);
    idler->work = work;
    idler->party = party;
    return idler;
}

enum next { NEXT_WORK, NEXT_IDLE, NEXT_END };

/* One end may let several others run. With the lock held. */
static void wake_others(struct lane *lane)
{
    for (struct idler *idler; (idler = hand_out(lane));)
        (void)sem_post(&idler->call);
}

/* What to do now; or lists the thread as idle: then it is others' until they have posted, once. Or there will be no more. */
static enum next next_work(struct lane *lane, struct idler *self)
{
    struct workers *workers = lane->workers;

    autolock(&workers->lock);
    self->party = turns_next(lane->turns, &self->work);
    if (self->party) {
        wake_others(lane);
        return NEXT_WORK;
    }
    if (workers->is_ending)
        return NEXT_END;
    self->before = lane->idle;
    lane->idle = self;
    return NEXT_IDLE;
}

static bool is_lane_busy(const struct lane *lane)
{
    return turns_running(lane->turns) || turns_waiting(lane->turns);
}

static void work_done(struct lane *lane, struct turns_party *party)
{
    struct workers *workers = lane->workers;

    autolock(&workers->lock);
    turns_done(lane->turns, party);
    if (!is_lane_busy(lane))
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
    if (lane->gives_way)
        thread_give_way();
    (void)sem_init(&self.call, 0, 0);
    for (enum next next; (next = next_work(lane, &self)) != NEXT_END;) {
        while (next == NEXT_IDLE && sem_wait(&self.call) < 0)
            ; // interrupted
        if (!self.party)
            continue; // called for the end
        self.work.fn(self.work.data);
        work_done(lane, self.party);
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
        lane->workers = workers;
        lane->name = settings->lane[i].name;
        lane->gives_way = settings->lane[i].gives_way;
        lane->queue = settings->lane[i].queue ? settings->lane[i].queue : 1;
        lane->turns = turns_new(&(struct turns_limits){
            .per_who = settings->lane[i].per_who,
            .per_what = settings->lane[i].per_what,
            .heavy = settings->lane[i].heavy,
            .queue = lane->queue == WORKERS_UNBOUNDED ? 0 : lane->queue,
            .queue_per_who = settings->lane[i].queue_per_who,
        });
        lane->threads = xcalloc(settings->lane[i].threads, sizeof *lane->threads);
    }
    if (start_threads(workers, settings, err) < 0)
        return -1;
    *out = take(workers);
    return 0;
}

/* Queues it, and gives what has its turn now to an idle thread, which is the caller's to wake. */
static enum turns_added place_work(struct lane *lane, const struct turns_owner *owner,
                                   struct turns_work work, struct idler **idler)
{
    static const struct turns_owner nobody = {0};

    autolock(&lane->workers->lock);
    if (lane->workers->is_ending)
        return TURNS_FULL;
    enum turns_added added = turns_add(lane->turns, owner ? owner : &nobody, work);
    *idler = hand_out(lane);
    return added;
}

int workers_submit_for(struct workers *workers, enum workers_lane which,
                       const struct turns_owner *owner, void (*fn)(void *data), void *data,
                       struct error *err)
{
    struct lane *lane = &workers->lanes[which];
    struct idler *idler = NULL;

    enum turns_added added = place_work(lane, owner, (struct turns_work){fn, data}, &idler);
    if (idler)
        (void)sem_post(&idler->call);
    if (added == TURNS_ADDED)
        return 0;
    if (added == TURNS_FULL_FOR_WHO)
        return error_refuse(err, ERROR_FULL, "queue",
                            "too many requests with this key are waiting already, try again "
                            "shortly");
    return error_refuse(err, ERROR_FULL, "queue",
                        "the server is busy: %u requests are waiting already, try again shortly",
                        lane->queue);
}

int workers_submit(struct workers *workers, enum workers_lane which, void (*fn)(void *data),
                   void *data, struct error *err)
{
    return workers_submit_for(workers, which, NULL, fn, data, err);
}

void workers_run(struct workers *workers, enum workers_lane which, void (*fn)(void *data),
                 void *data)
{
    struct error impossible = {0};
    int result = workers_submit(workers, which, fn, data, &impossible);

    assert(result == 0 && workers->lanes[which].queue == WORKERS_UNBOUNDED);
    (void)result;
}

size_t workers_waiting(struct workers *workers, enum workers_lane which)
{
    autolock(&workers->lock);
    return turns_waiting(workers->lanes[which].turns);
}

static bool is_busy(const struct workers *workers)
{
    for (int i = 0; i < WORKERS_LANES; i++) {
        if (is_lane_busy(&workers->lanes[i]))
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

void workers_stop(struct workers *workers)
{
    if (!workers)
        return;
    end_threads(workers);
    for (int i = 0; i < WORKERS_LANES; i++) {
        struct lane *lane = &workers->lanes[i];
        for (; lane->thread_count; lane->thread_count--)
            (void)pthread_join(lane->threads[lane->thread_count - 1], NULL);
    }
}

void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    workers_stop(workers);
    for (int i = 0; i < WORKERS_LANES; i++) {
        free(workers->lanes[i].threads);
        turns_free(workers->lanes[i].turns);
    }
    lock_condition_clear(&workers->is_idle);
    lock_clear(&workers->lock);
    free(workers);
}
