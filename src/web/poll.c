/* SPDX-License-Identifier: Apache-2.0 */
/* Long-polls: a waiting response, a watch at the hub, and looks on the loop or a worker, one at a time; see poll.h. */
#include "web/poll.h"

#include "base/mem.h"
#include "web/follower.h"
#include "web/router.h"

#include <string.h>

struct waiter {
    struct follower base;
    const struct poll_kind *kind;
    char *id;
    void *data;
    char *base_url;
    struct watch *watch;
    // On the loop:
    bool is_last; // the time is up, or nobody waits any more
    bool is_told; // something changed while a worker has it
    bool is_over; // answered
    // The worker's while it has it:
    bool is_last_look;
    int seen;
};

const char *poll_base_url(const struct poll *poll)
{
    return poll->base_url ? poll->base_url : call_base_url(poll->call);
}

static const struct follower_kind waiter_kind;

static struct waiter *waiter_new(struct call *call, const struct poll_kind *kind, const char *id,
                                 const void *data, size_t size)
{
    struct waiter *waiter = xnew(struct waiter);

    follower_init(&waiter->base, call, &waiter_kind);
    waiter->kind = kind;
    waiter->id = xstrdup(id);
    waiter->base_url = xstrdup(call_base_url(call));
    if (size) {
        waiter->data = xcalloc(1, size);
        memcpy(waiter->data, data, size);
    }
    return waiter;
}

static void waiter_free(void *data)
{
    struct waiter *waiter = data;

    free(waiter->id);
    free(waiter->data);
    free(waiter->base_url);
    free(waiter);
}

static struct poll poll_of(const struct waiter *waiter, struct call *call)
{
    *call = waiting_call_get(&waiter->base.waiting);
    return (struct poll){
        .call = call, .id = waiter->id, .data = waiter->data, .base_url = waiter->base_url};
}

static void look_again(struct waiter *waiter);

/* A worker is done with it. */
static void on_looked(void *data)
{
    struct waiter *waiter = data;

    waiter->is_over |= waiter->seen == POLL_ANSWERED;
    if (waiter->is_told)
        look_again(waiter);
}

static int fail(const struct waiter *waiter, const struct error *err)
{
    waiting_call_fail(&waiter->base.waiting, err);
    return POLL_ANSWERED;
}

static void on_worker(void *data)
{
    struct waiter *waiter = data;
    struct error err = {0};
    struct call call;
    struct poll poll = poll_of(waiter, &call);

    waiter->seen = waiter->kind->look(&poll, waiter->is_last_look, &err);
    if (waiter->seen < 0)
        waiter->seen = fail(waiter, &err);
}

static enum poll_look look_here(struct waiter *waiter)
{
    struct call call;
    struct poll poll = poll_of(waiter, &call);

    if (!waiter->kind->look_quick)
        return POLL_ELSEWHERE;
    return waiter->kind->look_quick(&poll, waiter->is_last);
}

/* On the loop: something changed, or the time is up. */
static void look_again(struct waiter *waiter)
{
    waiter->is_told = waiter->base.is_working;
    if (waiter->is_over || waiter->base.is_working)
        return;
    enum poll_look seen = look_here(waiter);
    waiter->is_over = seen == POLL_ANSWERED;
    if (seen != POLL_ELSEWHERE)
        return;
    waiter->is_last_look = waiter->is_last;
    (void)follower_work(&waiter->base, on_worker);
}

static void on_wake(void *data)
{
    struct waiter *waiter = data;

    waiter->is_last |= router_is_draining(waiter->base.waiting.router);
    look_again(waiter);
}

static void on_retry(void *data)
{
    look_again(data);
}

static const struct follower_kind waiter_kind = {
    .on_wake = on_wake, .on_worked = on_looked, .on_retry = on_retry, .free = waiter_free};

/* The time is up: whatever is told now ends the poll. */
static void on_last(void *data)
{
    struct waiter *waiter = data;

    waiter->is_last = true;
    look_again(waiter);
}

/* The client sends no more, which mostly means that it is gone. */
static void on_gone(void *data)
{
    struct waiter *waiter = data;
    struct call call;
    struct poll poll = poll_of(waiter, &call);

    if (waiter->is_over || !waiter->kind->on_gone || !waiter->kind->on_gone(&poll))
        on_last(waiter);
}

static void on_end(void *data, bool is_delivered)
{
    struct waiter *waiter = data;

    waiter->is_over = true;
    watch_free(waiter->watch);
    follower_end(&waiter->base);
}

static const struct response_events waiter_events = {
    .on_gone = on_gone,
    .on_deadline = on_last,
    .on_end = on_end,
};

/* Watches first and then looks, so that no change is missed. From response_watch on, the loop may be done with it at any time. */
static void wait_for_change(struct waiter *waiter, uint64_t wait_ms)
{
    struct response *response = waiter->base.waiting.response;

    follower_ref(&waiter->base);
    waiter->watch = hub_watch(waiter->base.waiting.core->hub, waiter->id, follower_wake, waiter);
    response_watch(response, &waiter_events, waiter);
    response_set_deadline(response, wait_ms);
    follower_wake(waiter);
    follower_unref(&waiter->base);
}

static int look_first(const struct poll *poll, const struct poll_kind *kind, bool is_last,
                      struct error *err)
{
    if (!loop_is_here(call_loop(poll->call)))
        return kind->look(poll, is_last, err);
    return kind->look_quick ? (int)kind->look_quick(poll, is_last) : POLL_ELSEWHERE;
}

int poll_call(struct call *call, const struct poll_kind *kind, const char *id, int64_t wait_ms,
              const void *data, size_t size, struct error *err)
{
    struct poll poll = {.call = call, .id = id, .data = data};
    int seen = look_first(&poll, kind, wait_ms <= 0, err);

    if (seen < 0)
        return -1;
    if (seen == POLL_ELSEWHERE)
        return CALL_ELSEWHERE;
    if (seen == POLL_WAITS)
        wait_for_change(
            waiter_new(call, kind, id, data, size),
            (uint64_t)(wait_ms < POLL_MAX_MS || kind->is_patient ? wait_ms : POLL_MAX_MS));
    return 0;
}
