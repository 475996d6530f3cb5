/* SPDX-License-Identifier: Apache-2.0 */
/* Two rings of work, each with its own threads. */
#include "loop/workers.h"

#include "base/mem.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdbool.h>

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
    pthread_t *threads;
    unsigned thread_count;
};

struct workers {
    pthread_mutex_t lock; // guards all of the lanes but what is set once
    pthread_cond_t is_idle;
    bool is_ending;
    struct lane lanes[WORKERS_LANES];
};

static struct work take_work(struct lane *lane)
{
    struct work work = lane->ring[lane->first];
    lane->first = (lane->first + 1) % lane->capacity;
    lane->count--;
    return work;
}

/* With the lock held, which it gives up meanwhile. True: *out is to be done, and counted as running already. */
static bool await_work(struct lane *lane, struct work *out)
{
    struct workers *workers = lane->workers;
    struct idler self = {.before = lane->idle};

    (void)sem_init(&self.call, 0, 0);
    lane->idle = &self;
    (void)pthread_mutex_unlock(&workers->lock);
    while (sem_wait(&self.call) < 0)
        ; // interrupted
    (void)sem_destroy(&self.call);
    if (!self.has_work)
        (void)pthread_mutex_lock(&workers->lock);
    *out = self.work;
    return self.has_work;
}

/* Out of the list, or NULL. With the lock held; the caller posts, without it best: then the woken thread does not meet it. */
static struct idler *take_idler(struct lane *lane)
{
    struct idler *idler = lane->idle;

    if (idler)
        lane->idle = idler->before;
    return idler;
}

static void *serve_lane(void *data)
{
    struct lane *lane = data;
    struct workers *workers = lane->workers;
    struct work work;

    (void)pthread_mutex_lock(&workers->lock);
    while (lane->count || !workers->is_ending) {
        if (lane->count) {
            work = take_work(lane);
            lane->running++;
            (void)pthread_mutex_unlock(&workers->lock);
        } else if (!await_work(lane, &work)) {
            continue; // with the lock
        }
        work.fn(work.data);
        (void)pthread_mutex_lock(&workers->lock);
        if (--lane->running == 0 && lane->count == 0)
            (void)pthread_cond_broadcast(&workers->is_idle);
    }
    (void)pthread_mutex_unlock(&workers->lock);
    return NULL;
}

static int start_lane(struct lane *lane, unsigned threads, struct error *err)
{
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

    (void)pthread_mutex_init(&workers->lock, NULL);
    (void)pthread_cond_init(&workers->is_idle, NULL);
    for (int i = 0; i < WORKERS_LANES; i++) {
        struct lane *lane = &workers->lanes[i];
        lane->workers = workers;
        lane->capacity = settings->lane[i].queue ? settings->lane[i].queue : 1;
        lane->ring = xcalloc(lane->capacity, sizeof *lane->ring);
        lane->threads = xcalloc(settings->lane[i].threads, sizeof *lane->threads);
    }
    if (start_threads(workers, settings, err) < 0)
        return -1;
    *out = take(workers);
    return 0;
}

int workers_submit(struct workers *workers, enum workers_lane which, void (*fn)(void *data),
                   void *data, struct error *err)
{
    struct lane *lane = &workers->lanes[which];

    (void)pthread_mutex_lock(&workers->lock);
    struct idler *idler = take_idler(lane); // who is idle is so because nothing waits
    bool is_full = !idler && lane->count == lane->capacity;
    if (idler) {
        idler->work = (struct work){fn, data};
        idler->has_work = true;
        lane->running++;
    } else if (!is_full) {
        lane->ring[(lane->first + lane->count++) % lane->capacity] = (struct work){fn, data};
    }
    (void)pthread_mutex_unlock(&workers->lock);
    if (idler)
        (void)sem_post(&idler->call);
    if (!is_full)
        return 0;
    return error_refuse(err, ERROR_FULL, "queue",
                        "the server is busy: %zu requests are waiting already, try again shortly",
                        lane->capacity);
}

size_t workers_waiting(struct workers *workers, enum workers_lane which)
{
    (void)pthread_mutex_lock(&workers->lock);
    size_t count = workers->lanes[which].count;
    (void)pthread_mutex_unlock(&workers->lock);
    return count;
}

static bool is_busy(const struct workers *workers)
{
    for (int i = 0; i < WORKERS_LANES; i++) {
        if (workers->lanes[i].count || workers->lanes[i].running)
            return true;
    }
    return false;
}

void workers_free(struct workers *workers)
{
    if (!workers)
        return;
    (void)pthread_mutex_lock(&workers->lock);
    while (is_busy(workers) && !workers->is_ending)
        (void)pthread_cond_wait(&workers->is_idle, &workers->lock);
    workers->is_ending = true;
    for (int i = 0; i < WORKERS_LANES; i++) {
        for (struct idler *idler; (idler = take_idler(&workers->lanes[i]));)
            (void)sem_post(&idler->call);
    }
    (void)pthread_mutex_unlock(&workers->lock);

    for (int i = 0; i < WORKERS_LANES; i++) {
        struct lane *lane = &workers->lanes[i];
        for (unsigned t = 0; t < lane->thread_count; t++)
            (void)pthread_join(lane->threads[t], NULL);
        free(lane->threads);
        free(lane->ring);
    }
    (void)pthread_cond_destroy(&workers->is_idle);
    (void)pthread_mutex_destroy(&workers->lock);
    free(workers);
}
