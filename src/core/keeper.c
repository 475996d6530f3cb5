/* SPDX-License-Identifier: Apache-2.0 */
/* News from the boxes, and deadlines; see keeper.h. */
#include "core/keeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/command.h"
#include "core/ending.h"
#include "core/measure.h"
#include "core/pool.h"
#include "core/queue.h"
#include "store/idempotency.h"
#include "store/sandboxes.h"
#include "store/usage.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

#define TICK_MS 200
#define TIDY_MS 60000
#define FIRST_TIDY_MS 1000
#define BATCH 64
#define EXPIRY_GRACE_MS 1000
#define PURGE_AT_ONCE 500
#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define USAGE_KEPT_DAYS 400

struct keeper {
    struct core *core;
    struct loop *loop;
    struct loop_watch *watch; // of the set
    struct loop_timer tick, tidy;
    uint64_t
        tidy_ms; // until the next time: soon after the start, when an earlier server's things are still ending, then longer
    // Boxes that are listened to. An epoll set of its own, because any thread may change one of those.
    int set;
    pthread_t thread;
    bool has_thread;
    struct workers *tidier; // one thread: purging takes as long as it takes
    atomic_bool is_behind;  // the last purge has left some for the next, which comes soon
};

static void arm(struct keeper *keeper, struct live *live, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = live};
    (void)epoll_ctl(keeper->set, operation, box_event_fd(live->box), &event);
}

int keeper_watch(struct keeper *keeper, struct live *live, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = live};

    live_ref(live);
    if (epoll_ctl(keeper->set, EPOLL_CTL_ADD, box_event_fd(live->box), &event) < 0) {
        live_free(live);
        return error_sys(err, "listen to the sandbox");
    }
    live->is_watched = true;
    return 0;
}

static void let_go(void *data)
{
    live_free(data);
}

void keeper_unwatch(struct keeper *keeper, struct live *live)
{
    if (!live->is_watched)
        return;
    (void)epoll_ctl(keeper->set, EPOLL_CTL_DEL, box_event_fd(live->box), NULL);
    live->is_watched = false;
    // The keeper may just have been given the pointer: it stays valid until its present turn is over.
    loop_post(keeper->loop, let_go, live);
}

static void arm_again(void *data)
{
    struct live *live = data;
    if (live_try_box(live)) {
        if (live->is_watched)
            arm(live->core->keeper, live, EPOLL_CTL_MOD);
        (void)pthread_mutex_unlock(&live->box_lock);
    } else {
        // In use again, or gone. Whoever has it now does it.
        live->has_news = true;
        if (live_try_box(live)) {
            live->has_news = false;
            if (live->is_watched)
                arm(live->core->keeper, live, EPOLL_CTL_MOD);
            (void)pthread_mutex_unlock(&live->box_lock);
        }
    }
    live_free(live);
}

void keeper_arm(struct keeper *keeper, struct live *live)
{
    loop_post(keeper->loop, arm_again, live_ref(live));
}

static void on_output(struct live *live, uint32_t number)
{
    autoptr(stream) output = NULL;
    autoptr(stream) error = NULL;

    (void)pthread_mutex_lock(&live->lock);
    struct running *running = live->commands;
    while (running && running->number != number)
        running = running->next;
    if (running && running->output)
        output = stream_ref(running->output);
    if (running && running->error && running->error != running->output)
        error = stream_ref(running->error);
    (void)pthread_mutex_unlock(&live->lock);
    if (output)
        streams_news(live->core->streams, output);
    if (error)
        streams_news(live->core->streams, error);
}

struct news {
    struct process_exit exits[BATCH];
    unsigned n_exits;
    uint32_t outputs[BATCH];
    unsigned n_outputs;
    bool is_over;
    bool is_more;
};

/* What the box has to say now. The caller has its box_lock. */
static void read_news(struct live *live, struct news *news)
{
    struct box_event event = {0};
    struct error err = {0};

    news->n_exits = news->n_outputs = 0;
    news->is_over = news->is_more = false;
    for (unsigned i = 0; i < BATCH; i++) {
        if (box_next(live->box, &event, 0, &err) < 0 || event.kind == BOX_EVENT_ENDED) {
            news->is_over = true;
            return;
        }
        if (event.kind == BOX_EVENT_NONE)
            return;
        if (event.kind == BOX_EVENT_EXIT)
            news->exits[news->n_exits++] = event.exit;
        else
            news->outputs[news->n_outputs++] = event.id;
    }
    news->is_more = true;
}

/* False: somebody else has the box, and will arm it again. */
static bool get_box(struct live *live)
{
    if (pthread_mutex_trylock(&live->box_lock) == 0)
        return true;
    live->has_news = true;
    if (pthread_mutex_trylock(&live->box_lock) != 0)
        return false;
    live->has_news = false;
    return true;
}

static void on_news(struct live *live)
{
    struct news news;

    if (!get_box(live))
        return;
    if (!live->is_watched || live->is_box_over) {
        live_unlock_box(live);
        return;
    }
    read_news(live, &news);
    if (!news.is_over)
        arm(live->core->keeper, live, EPOLL_CTL_MOD);
    live_unlock_box(live);
    for (unsigned i = 0; i < news.n_outputs; i++)
        on_output(live, news.outputs[i]);
    for (unsigned i = 0; i < news.n_exits; i++)
        command_ended(live, &news.exits[i]);
    if (news.is_over)
        ending_start(live, "box_ended");
}

static void on_set_ready(void *data, unsigned events)
{
    struct keeper *keeper = data;
    struct epoll_event ready[BATCH];

    (void)events;
    int count = epoll_wait(keeper->set, ready, BATCH, 0);
    for (int i = 0; i < count; i++)
        on_news(ready[i].data.ptr);
}

/* When it ends for being idle; 0: not as things are. */
static int64_t idle_deadline(struct live *live)
{
    (void)pthread_mutex_lock(&live->lock);
    int64_t timeout_ms = live->record.idle_timeout_ms;
    bool is_idle =
        live->record.state == SANDBOX_IDLE && live->n_executions == 0 && live->n_jobs == 0;
    (void)pthread_mutex_unlock(&live->lock);
    return is_idle && timeout_ms > 0 ? live->active_at + timeout_ms : 0;
}

static bool is_paused_too_long(struct live *live, int64_t now)
{
    (void)pthread_mutex_lock(&live->lock);
    const struct sandbox_record *record = &live->record;
    bool is_due = record->state == SANDBOX_PAUSED && record->paused_timeout_ms > 0 &&
                  record->paused_at + record->paused_timeout_ms <= now;
    (void)pthread_mutex_unlock(&live->lock);
    return is_due;
}

/* A command that still runs may finish; one that was let in at the last moment has its place when the grace is over. */
static bool has_expired(struct live *live, int64_t now)
{
    (void)pthread_mutex_lock(&live->lock);
    int64_t expires_at = live->record.expires_at;
    bool is_due = expires_at > 0 && expires_at + EXPIRY_GRACE_MS <= now &&
                  live->n_executions == 0 && live->n_jobs == 0;
    (void)pthread_mutex_unlock(&live->lock);
    return is_due;
}

static void look_after(struct live *live, int64_t now)
{
    int64_t deadline = idle_deadline(live);
    if (deadline && deadline <= now && live->record.on_idle == SANDBOX_IDLE_DROPS_BOX)
        live_rest(live);
    else if (deadline && deadline <= now)
        ending_start(live, "idle");
    else if (is_paused_too_long(live, now))
        ending_start(live, "paused");
    else if (has_expired(live, now))
        ending_start(live, "expired");
    else if (live->end_reason && !live->is_being_ended)
        ending_start(live, live->end_reason); // an earlier try failed
    command_look_after(live, now);
    measure_look_after(live, now);
}

static void on_tick(void *data)
{
    struct keeper *keeper = data;
    struct live **all = NULL;
    size_t count = registry_all(keeper->core->registry, &all);
    int64_t now = (int64_t)clock_wall_ms();

    for (size_t i = 0; i < count; i++) {
        if (!live_is_over(all[i]))
            look_after(all[i], now);
        live_free(all[i]);
    }
    free(all);
    pool_look_after(keeper->core->pool);
    queue_look_after(keeper->core->queue);
    loop_timer_set(&keeper->tick, TICK_MS);
}

/* What was kept long enough goes. */
static void tidy(void *data)
{
    struct keeper *keeper = data;
    struct core *core = keeper->core;
    struct error err = {0};
    int64_t now = (int64_t)clock_wall_ms();
    int64_t removed = 0;
    unsigned streams = 0;

    if (streams_purge(core->streams, now, PURGE_AT_ONCE, &streams, &err) < 0 ||
        store_execution_purge(core->store, now, PURGE_AT_ONCE, &removed, &err) < 0 ||
        store_sandbox_purge(core->store, now, core->settings.keep_ms, PURGE_AT_ONCE, &removed,
                            &err) < 0 ||
        store_idempotency_purge(core->store, now - DAY_MS, PURGE_AT_ONCE, &removed, &err) < 0 ||
        store_usage_purge(core->store, now - USAGE_KEPT_DAYS * DAY_MS, &removed, &err) < 0)
        log_warn("old records could not be removed", F("error", (const char *)err.text));
    keeper->is_behind = streams >= PURGE_AT_ONCE;
    // Also of boxes that were still dying when the server came.
    if (engine_sweep(core->engine, &err) < 0)
        log_warn("traces of dead sandboxes could not be removed",
                 F("error", (const char *)err.text));
}

static void on_tidy(void *data)
{
    struct keeper *keeper = data;
    struct error ignored = {0};
    (void)workers_submit(keeper->tidier, WORKERS_SLOW, tidy, keeper,
                         &ignored); // else it is still at it
    keeper->tidy_ms = keeper->tidy_ms * 2 < TIDY_MS ? keeper->tidy_ms * 2 : TIDY_MS;
    if (keeper->is_behind)
        keeper->tidy_ms = FIRST_TIDY_MS;
    loop_timer_set(&keeper->tidy, keeper->tidy_ms);
}

static void *run(void *data)
{
    struct keeper *keeper = data;
    loop_run(keeper->loop);
    return NULL;
}

static int prepare(struct keeper *keeper, struct error *err)
{
    const struct workers_settings one = {.lane = {{1, 1}, {1, 1}}};

    keeper->set = epoll_create1(EPOLL_CLOEXEC);
    if (keeper->set < 0)
        return error_sys(err, "make a set of sandboxes to listen to");
    if (loop_new(&keeper->loop, err) < 0 ||
        loop_watch_new(keeper->loop, keeper->set, on_set_ready, keeper, &keeper->watch, err) < 0 ||
        workers_new(&one, &keeper->tidier, err) < 0)
        return -1;
    loop_watch_set(keeper->watch, LOOP_READABLE);
    loop_timer_init(&keeper->tick, keeper->loop, on_tick, keeper);
    loop_timer_init(&keeper->tidy, keeper->loop, on_tidy, keeper);
    loop_timer_set(&keeper->tick, TICK_MS);
    keeper->tidy_ms = FIRST_TIDY_MS;
    loop_timer_set(&keeper->tidy, keeper->tidy_ms);
    return 0;
}

void keeper_free(struct keeper *keeper)
{
    if (!keeper)
        return;
    workers_free(keeper->tidier);
    if (keeper->loop) {
        loop_timer_clear(&keeper->tick);
        loop_timer_clear(&keeper->tidy);
        loop_watch_free(keeper->watch);
        loop_free(keeper->loop);
    }
    closep(&keeper->set);
    free(keeper);
}

int keeper_new(struct core *core, struct keeper **out, struct error *err)
{
    struct keeper *keeper = xnew(struct keeper);
    keeper->core = core;
    keeper->set = -1;
    if (prepare(keeper, err) < 0) {
        keeper_free(keeper);
        return -1;
    }
    *out = keeper;
    return 0;
}

int keeper_start(struct keeper *keeper, struct error *err)
{
    int code = pthread_create(&keeper->thread, NULL, run, keeper);
    if (code != 0)
        return error_sys_code(err, code, "start the keeper's thread");
    keeper->has_thread = true;
    return 0;
}

void keeper_stop(struct keeper *keeper)
{
    struct live **all = NULL;

    if (!keeper)
        return;
    if (keeper->has_thread) {
        loop_stop(keeper->loop);
        (void)pthread_join(keeper->thread, NULL);
        keeper->has_thread = false;
    }
    size_t count = registry_all(keeper->core->registry, &all);
    for (size_t i = 0; i < count; i++) {
        (void)pthread_mutex_lock(&all[i]->box_lock);
        keeper_unwatch(keeper, all[i]);
        (void)pthread_mutex_unlock(&all[i]->box_lock);
        live_free(all[i]);
    }
    free(all);
}

struct loop *keeper_loop(struct keeper *keeper)
{
    return keeper->loop;
}
