/* SPDX-License-Identifier: Apache-2.0 */
/* Events of the boxes, and deadlines; see monitor.h. */
#include "core/sandbox/monitor.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/thread.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/measure.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/pause.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_box.h"
#include "core/sandbox/watchlist.h"
#include "core/runtime/runtimes.h"
#include "core/stream/streams.h"
#include "install/install.h"
#include "install/install_names.h"
#include "store/idempotency.h"
#include "store/sandboxes.h"
#include "store/events.h"
#include "store/audit_table.h"
#include "store/keys.h"
#include "store/usage.h"
#include "store/usage_days.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/epoll.h>

#define TICK_MS 200
#define TIDY_MS 60000
#define DISK_TICKS 5 // between looks at the disk
#define FIRST_TIDY_MS 1000
#define BATCH 64
#define EXPIRY_GRACE_MS 1000
#define PURGE_AT_ONCE 500
#define DAY_MS ((int64_t)24 * 3600 * 1000)
#define USAGE_KEPT_DAYS 400
#define USAGE_DETAIL_DAYS 31 // for so long it is known by sandbox
#define AUDIT_MOST 1000000   // changes that are known
#define REQUESTS_MOST 100000 // that happen once, with their answers

static const char REASON_IDLE[] = "idle";
static const char REASON_EXPIRED[] = "expired";

struct monitor {
    struct sandboxes *sandboxes;
    struct loop *loop;
    struct loop_watch *watch; // of the set
    struct loop_timer tick, tidy;
    uint64_t
        tidy_ms; // until the next time: soon after the start, when an earlier server's things are still ending, then longer
    // Boxes that are listened to. An epoll set of its own, because any thread may change one of those.
    int set;
    pthread_t thread;
    bool has_thread;
    struct workers *maintenance; // one thread: purging takes as long as it takes
    unsigned ticks;
    atomic_bool is_disk_checked; // just now, by a recorder
    atomic_bool is_ending;       // a purge that is under way leaves the rest to the next server
};

static void arm(struct monitor *monitor, struct sandbox *sandbox, int operation)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = sandbox};
    (void)epoll_ctl(monitor->set, operation, box_event_fd(sandbox->box), &event);
}

int monitor_watch(struct monitor *monitor, struct sandbox *sandbox, struct error *err)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLONESHOT, .data.ptr = sandbox};

    sandbox_ref(sandbox);
    if (epoll_ctl(monitor->set, EPOLL_CTL_ADD, box_event_fd(sandbox->box), &event) < 0) {
        sandbox_free(sandbox);
        return error_sys(err, "listen to the sandbox");
    }
    sandbox->is_watched = true;
    return 0;
}

static void let_go(void *data)
{
    sandbox_free(data);
}

void monitor_unwatch(struct monitor *monitor, struct sandbox *sandbox)
{
    if (!sandbox->is_watched)
        return;
    (void)epoll_ctl(monitor->set, EPOLL_CTL_DEL, box_event_fd(sandbox->box), NULL);
    sandbox->is_watched = false;
    // The monitor may just have been given the pointer: it stays valid until its present round is over.
    loop_post(monitor->loop, let_go, sandbox);
}

static bool arm_free(struct sandbox *sandbox)
{
    if (!sandbox_try_box(sandbox))
        return false;
    if (sandbox->is_watched)
        arm(sandbox->sandboxes->monitor, sandbox, EPOLL_CTL_MOD);
    lock_release(&sandbox->box_lock);
    return true;
}

static void arm_again(void *data)
{
    struct sandbox *sandbox = data;

    if (!arm_free(sandbox)) {
        // In use again, or gone. Whoever has it now does it, unless it was given back just before it could see that.
        sandbox->has_events = true;
        if (arm_free(sandbox))
            sandbox->has_events = false;
    }
    sandbox_free(sandbox);
}

void monitor_arm(struct monitor *monitor, struct sandbox *sandbox)
{
    loop_post(monitor->loop, arm_again, sandbox_ref(sandbox));
}

struct box_events {
    struct process_exit exits[BATCH];
    unsigned n_exits;
    struct box_event outputs[BATCH];
    unsigned n_outputs;
    bool is_over;
    bool is_more;
};

/* What the box has to say now. The caller has its box_lock. */
static void read_box_events(struct sandbox *sandbox, struct box_events *box_events)
{
    struct box_event event = {0};
    struct error err = {0};

    box_events->n_exits = box_events->n_outputs = 0;
    box_events->is_over = box_events->is_more = false;
    for (unsigned i = 0; i < BATCH; i++) {
        if (box_next(sandbox->box, &event, 0, &err) < 0 || event.kind == BOX_EVENT_ENDED) {
            box_events->is_over = true;
            return;
        }
        if (event.kind == BOX_EVENT_NONE)
            return;
        if (event.kind == BOX_EVENT_EXIT)
            box_events->exits[box_events->n_exits++] = event.exit;
        else
            box_events->outputs[box_events->n_outputs++] = event;
    }
    box_events->is_more = true;
}

/* NULL: somebody else has the box, and will arm it again. */
static struct sandbox *get_box(struct sandbox *sandbox)
{
    if (lock_try(&sandbox->box_lock))
        return sandbox;
    sandbox->has_events = true;
    if (!lock_try(&sandbox->box_lock))
        return NULL;
    sandbox->has_events = false;
    return sandbox;
}

/* False: there is nothing to be heard. */
static bool hear(struct sandbox *sandbox, struct box_events *box_events)
{
    autobox held = get_box(sandbox);

    if (!held || !sandbox->is_watched || sandbox->is_box_over)
        return false;
    read_box_events(sandbox, box_events);
    if (!box_events->is_over)
        arm(sandbox->sandboxes->monitor, sandbox, EPOLL_CTL_MOD);
    return true;
}

static void on_box_events(struct sandbox *sandbox)
{
    const struct execution_ops *ops = sandbox->sandboxes->execution_ops;
    struct box_events box_events;

    if (!hear(sandbox, &box_events))
        return;
    for (unsigned i = 0; i < box_events.n_outputs; i++)
        ops->announce_output(sandbox, &box_events.outputs[i]);
    for (unsigned i = 0; i < box_events.n_exits; i++)
        ops->on_exit(sandbox, &box_events.exits[i]);
    if (box_events.is_over)
        ending_start(sandbox, "box_ended");
}

static void on_set_ready(void *data, unsigned events)
{
    struct monitor *monitor = data;
    struct epoll_event ready[BATCH];

    (void)events;
    int count = epoll_wait(monitor->set, ready, BATCH, 0);
    for (int i = 0; i < count; i++)
        on_box_events(ready[i].data.ptr);
}

/* When it ends whatever runs in it; INT64_MAX: never. */
static int64_t end_of_life(const struct sandbox *sandbox)
{
    int64_t lifetime_ms = sandbox->sandboxes->settings->ceilings.lifetime_ms;
    return lifetime_ms > 0 ? sandbox->created_ms + lifetime_ms : INT64_MAX;
}

/* When its time is up; INT64_MAX: never. A command that was let in at the last moment has its place when the grace is over. Under its lock. */
static int64_t expiry_of(const struct sandbox *sandbox)
{
    const struct sandbox_record *record = &sandbox->record;

    if (record->expires_at == 0)
        return INT64_MAX;
    if (record->on_expiry == SANDBOX_EXPIRY_WAITS)
        return sandbox->expires_ms + EXPIRY_GRACE_MS;
    return record->state == SANDBOX_PAUSED ? INT64_MAX : sandbox->expires_ms;
}

/* When it has to be looked at again, on the monotonic clock; 0: all the time. */
static int64_t next_look(struct sandbox *sandbox)
{
    autolock(&sandbox->lock);
    const struct sandbox_record *record = &sandbox->record;
    bool is_unused =
        sandbox->n_executions == 0 && sandbox->n_jobs == 0 && sandbox->executions == NULL;
    int64_t first = INT64_MAX;
    int64_t last = end_of_life(sandbox);

    if (!is_unused || sandbox->end_reason || sandbox->is_resting || !measure_is_done(sandbox) ||
        (record->state != SANDBOX_IDLE && record->state != SANDBOX_PAUSED))
        return 0;
    if (record->state == SANDBOX_IDLE && record->idle_timeout_ms > 0)
        first = sandbox->active_ms + record->idle_timeout_ms;
    if (record->state == SANDBOX_PAUSED && record->paused_timeout_ms > 0)
        first = sandbox->paused_ms + record->paused_timeout_ms;
    int64_t expires_ms = expiry_of(sandbox);
    if (expires_ms < first)
        first = expires_ms;
    return first < last ? first : last;
}

/* Why it is to end now, or NULL. Times are on the monotonic clock. */
static const char *reason_to_end(struct sandbox *sandbox, int64_t now)
{
    autolock(&sandbox->lock);
    const struct sandbox_record *record = &sandbox->record;
    bool is_unused = sandbox->n_executions == 0 && sandbox->n_jobs == 0;

    if (record->state == SANDBOX_IDLE && is_unused && record->idle_timeout_ms > 0 &&
        sandbox->active_ms + record->idle_timeout_ms <= now)
        return REASON_IDLE;
    if (record->state == SANDBOX_PAUSED && record->paused_timeout_ms > 0 &&
        sandbox->paused_ms + record->paused_timeout_ms <= now)
        return "paused";
    if (end_of_life(sandbox) <= now)
        return "lifetime";
    if (expiry_of(sandbox) <= now && (is_unused || record->on_expiry != SANDBOX_EXPIRY_WAITS))
        return REASON_EXPIRED;
    return !sandbox->is_being_ended ? sandbox->end_reason : NULL; // an earlier try failed
}

static void check_deadlines(struct sandbox *sandbox, int64_t now)
{
    const char *reason = reason_to_end(sandbox, now);

    if (sandbox->is_copied)
        reason = NULL; // not now; ending it would wait for the copy
    if (reason == REASON_IDLE && sandbox->record.on_idle != SANDBOX_IDLE_ENDS)
        sandbox_rest(sandbox);
    else if (reason == REASON_EXPIRED && sandbox->record.on_expiry > SANDBOX_EXPIRY_ENDS)
        sandbox_rest_expired(sandbox);
    else if (reason)
        ending_start(sandbox, reason);
    sandbox->sandboxes->execution_ops->check_deadlines(sandbox, now);
    measure_tick(sandbox, now);
}

static void check_disk(void *data);

static void on_tick(void *data)
{
    struct monitor *monitor = data;
    struct sandboxes *sandboxes = monitor->sandboxes;

    watchlist_look(sandboxes->watchlist, (int64_t)clock_monotonic_ms(), check_deadlines, next_look);
    pool_tick(sandboxes->pool);
    sandboxes->execution_ops->tick(sandboxes->executions);
    if (monitor->ticks++ % DISK_TICKS == 0 && !atomic_exchange(&monitor->is_disk_checked, true))
        workers_run(sandboxes->recorders, WORKERS_SLOW, check_disk, monitor);
    loop_timer_set(&monitor->tick, TICK_MS);
}

/* What one round of purging has removed, or all rounds together. */
struct purged {
    unsigned streams;
    int64_t executions, sandboxes, requests, events;
};

/* A bounded number of each, in transactions of their own. */
/* What is kept for long, and never much of it at a time. */
static int purge_accounts(struct sandboxes *sandboxes, int64_t now, struct error *err)
{
    const struct core_settings *settings = sandboxes->settings;
    int64_t count = 0;

    if (store_token_purge(sandboxes->store, now - DAY_MS, PURGE_AT_ONCE, &count, err) < 0 ||
        store_audit_purge(sandboxes->store, now - settings->audit_keep_ms, AUDIT_MOST,
                          PURGE_AT_ONCE, &count, err) < 0)
        return -1;
    return store_usage_merge(sandboxes->store, now - USAGE_DETAIL_DAYS * DAY_MS,
                             now - settings->usage_keep_ms, &count, err);
}

static int purge_round(struct sandboxes *sandboxes, struct purged *out, struct error *err)
{
    int64_t now = (int64_t)clock_wall_ms(), keep_ms = sandboxes->settings->keep_ms, minutes = 0;
    struct purged here = {0};

    if (streams_purge(sandboxes->streams, now, PURGE_AT_ONCE, &here.streams, err) < 0 ||
        store_execution_purge(sandboxes->store, now, PURGE_AT_ONCE, &here.executions, err) < 0 ||
        store_sandbox_purge(sandboxes->store, now, keep_ms, PURGE_AT_ONCE, &here.sandboxes, err) <
            0 ||
        store_idempotency_purge(sandboxes->store, now - DAY_MS, REQUESTS_MOST, PURGE_AT_ONCE,
                                &here.requests, err) < 0 ||
        store_usage_purge(sandboxes->store, now - USAGE_KEPT_DAYS * DAY_MS, &minutes, err) < 0 ||
        store_event_purge(sandboxes->store, now - sandboxes->settings->event_keep_ms,
                          sandboxes->settings->max_events, PURGE_AT_ONCE, &here.events, err) < 0 ||
        purge_accounts(sandboxes, now, err) < 0)
        return -1;
    *out = here;
    return 0;
}

/* Whether there may be as much again. */
static bool is_behind(const struct purged *round)
{
    const int64_t many = PURGE_AT_ONCE / 2;
    return round->streams >= many || round->executions >= many || round->sandboxes >= many ||
           round->requests >= many || round->events >= many;
}

static void purge(struct monitor *monitor)
{
    struct purged round = {0}, all = {0};
    struct error err = {0};

    do {
        if (purge_round(monitor->sandboxes, &round, &err) < 0) {
            log_warn("old records could not be removed", F("error", (const char *)err.text));
            return;
        }
        all.streams += round.streams;
        all.executions += round.executions;
        all.sandboxes += round.sandboxes;
    } while (is_behind(&round) && !monitor->is_ending);
    if (all.streams || all.executions || all.sandboxes)
        log_debug("old records were removed", F("streams", (int64_t)all.streams),
                  F("executions", all.executions), F("sandboxes", all.sandboxes));
}

/* Packages over runtimes that no box has, and nobody has asked for in a while. */
static void expire_packages(struct sandboxes *sandboxes)
{
    const struct core_settings *settings = sandboxes->settings;
    int64_t unused_since = (int64_t)clock_wall_ms() - settings->packages_keep_ms;
    struct install_found found = {0};
    struct error err = {0};

    runtimes_forget_packages(sandboxes->runtimes, unused_since);
    install_names_sweep(settings->data_dir);
    install_clean(sandboxes->engine, settings->data_dir);
    if (install_sweep(settings->data_dir, unused_since, false, &found, &err) < 0)
        log_warn("packages over runtimes could not be removed", F("error", (const char *)err.text));
    else if (found.removed)
        log_info("packages that nobody used were removed", F("lists", found.removed),
                 F("bytes", found.removed_bytes));
}

/* What was kept long enough goes. */
static void tidy(void *data)
{
    struct monitor *monitor = data;
    struct error err = {0};

    // Also of boxes that were still dying when the server came.
    if (engine_sweep(monitor->sandboxes->engine, &err) < 0)
        log_warn("traces of dead sandboxes could not be removed",
                 F("error", (const char *)err.text));
    purge(monitor);
    expire_packages(monitor->sandboxes);
}

/* Also whether outputs take more than they may, which cannot wait for the next purge. */
static void check_disk(void *data)
{
    struct monitor *monitor = data;
    struct error ignored = {0};

    streams_check_disk(monitor->sandboxes->streams);
    if (streams_is_over(monitor->sandboxes->streams) && !monitor->is_ending)
        (void)workers_submit(monitor->maintenance, WORKERS_SLOW, tidy, monitor, &ignored);
    monitor->is_disk_checked = false;
}

static void on_tidy(void *data)
{
    struct monitor *monitor = data;
    struct error ignored = {0};
    (void)workers_submit(monitor->maintenance, WORKERS_SLOW, tidy, monitor,
                         &ignored); // else it is still at it
    monitor->tidy_ms = monitor->tidy_ms * 2 < TIDY_MS ? monitor->tidy_ms * 2 : TIDY_MS;
    loop_timer_set(&monitor->tidy, monitor->tidy_ms);
}

static void *run(void *data)
{
    struct monitor *monitor = data;
    thread_set_name("monitor");
    loop_run(monitor->loop);
    return NULL;
}

static int prepare(struct monitor *monitor, struct error *err)
{
    const struct workers_settings maintenance = {.lane = {[WORKERS_SLOW] = {1, 1, "maintenance"}}};

    monitor->set = epoll_create1(EPOLL_CLOEXEC);
    if (monitor->set < 0)
        return error_sys(err, "make a set of sandboxes to listen to");
    if (loop_new(&monitor->loop, err) < 0 ||
        loop_watch_new(monitor->loop, monitor->set, on_set_ready, monitor, &monitor->watch, err) <
            0 ||
        workers_new(&maintenance, &monitor->maintenance, err) < 0)
        return -1;
    monitor->sandboxes->watchlist = watchlist_new(monitor->loop);
    loop_watch_set(monitor->watch, LOOP_READABLE);
    loop_timer_init(&monitor->tick, monitor->loop, on_tick, monitor);
    loop_timer_init(&monitor->tidy, monitor->loop, on_tidy, monitor);
    loop_timer_set(&monitor->tick, TICK_MS);
    monitor->tidy_ms = FIRST_TIDY_MS;
    loop_timer_set(&monitor->tidy, monitor->tidy_ms);
    return 0;
}

void monitor_free(struct monitor *monitor)
{
    if (!monitor)
        return;
    workers_free(monitor->maintenance);
    watchlist_free(take(monitor->sandboxes->watchlist));
    if (monitor->loop) {
        loop_timer_clear(&monitor->tick);
        loop_timer_clear(&monitor->tidy);
        loop_watch_free(monitor->watch);
        loop_free(monitor->loop);
    }
    closep(&monitor->set);
    free(monitor);
}

int monitor_new(struct sandboxes *sandboxes, struct monitor **out, struct error *err)
{
    struct monitor *monitor = xnew(struct monitor);
    monitor->sandboxes = sandboxes;
    monitor->set = -1;
    if (prepare(monitor, err) < 0) {
        monitor_free(monitor);
        return -1;
    }
    *out = monitor;
    return 0;
}

int monitor_start(struct monitor *monitor, struct error *err)
{
    int code = pthread_create(&monitor->thread, NULL, run, monitor);
    if (code != 0)
        return error_sys_code(err, code, "start the monitor's thread");
    monitor->has_thread = true;
    return 0;
}

static void unwatch_held(struct monitor *monitor, struct sandbox *sandbox)
{
    autolock(&sandbox->box_lock);
    monitor_unwatch(monitor, sandbox);
}

void monitor_stop(struct monitor *monitor)
{
    struct sandbox **all = NULL;

    if (!monitor)
        return;
    monitor->is_ending = true;
    if (monitor->has_thread) {
        loop_stop(monitor->loop);
        (void)pthread_join(monitor->thread, NULL);
        monitor->has_thread = false;
    }
    watchlist_empty(monitor->sandboxes->watchlist, monitor->sandboxes->registry);
    size_t count = registry_all(monitor->sandboxes->registry, &all);
    for (size_t i = 0; i < count; i++) {
        unwatch_held(monitor, all[i]);
        sandbox_free(all[i]);
    }
    free(all);
}

void monitor_end_work(struct monitor *monitor)
{
    if (monitor)
        workers_free(take(monitor->maintenance));
}

struct loop *monitor_loop(struct monitor *monitor)
{
    return monitor->loop;
}
