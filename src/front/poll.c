/* SPDX-License-Identifier: Apache-2.0 */
/* Long-polls: a parked response, a watch at the hub, and looks on the loop or a worker, one at a time; see poll.h. */
#include "front/poll.h"
#include "base/mem.h"

#include <stdatomic.h>
#include <string.h>

#define RETRY_MS 25 // before asking again for a worker when all are busy

struct parked {
    struct poll poll;
    struct call call;
    const struct poll_kind *kind;
    struct loop *loop;
    struct watch *watch;
    atomic_uint refs;      // the response until its end, a post, a worker
    atomic_bool is_posted; // a wake-up is on its way to the loop
    // On the loop:
    struct loop_timer retry;
    bool is_last;    // the time is up, or nobody waits any more
    bool is_looking; // a worker has it
    bool is_told;    // there was news meanwhile
    bool is_over;    // answered
    // The worker's while it has it:
    bool is_last_look;
    int seen;
};

const char *poll_base_url(const struct poll *poll)
{
    return poll->base_url ? poll->base_url : call_base_url(poll->call);
}

static char *copy_text(const char *text)
{
    return text ? xstrdup(text) : NULL;
}

static void *copy_data(const void *data, size_t size)
{
    void *copy = size ? xcalloc(1, size) : NULL;

    if (copy)
        memcpy(copy, data, size);
    return copy;
}

static struct actor copy_actor(const struct actor *actor)
{
    struct actor copy = *actor;

    copy.tenant = copy_text(actor->tenant);
    copy.scope = copy_text(actor->scope);
    copy.project = copy_text(actor->project);
    return copy;
}

static struct parked *parked_new(struct call *call, const struct poll_kind *kind, const char *id,
                                 const void *data, size_t size)
{
    struct parked *parked = xnew(struct parked);

    parked->call = (struct call){
        .router = call->router,
        .front = call->front,
        .route = call->route,
        .settings = call->settings,
        .core = call->core,
        .response = response_ref(call->response),
        .actor = copy_actor(&call->actor),
    };
    parked->poll = (struct poll){
        .call = &parked->call,
        .id = xstrdup(id),
        .data = copy_data(data, size),
        .base_url = xstrdup(call_base_url(call)),
    };
    parked->kind = kind;
    parked->loop = call_loop(call);
    atomic_init(&parked->refs, 1);
    return parked;
}

static void drop(const void *memory)
{
    free((void *)(uintptr_t)memory);
}

static void parked_unref(struct parked *parked)
{
    if (atomic_fetch_sub(&parked->refs, 1) != 1)
        return;
    response_free(parked->call.response);
    drop(parked->call.actor.tenant);
    drop(parked->call.actor.scope);
    drop(parked->call.actor.project);
    drop(parked->poll.id);
    drop(parked->poll.data);
    drop(parked->poll.base_url);
    free(parked);
}

static void look_again(struct parked *parked);

/* A worker is done with it. */
static void on_looked(void *data)
{
    struct parked *parked = data;

    parked->is_looking = false;
    parked->is_over |= parked->seen == POLL_ANSWERED;
    if (parked->is_told)
        look_again(parked);
    parked_unref(parked);
}

static void on_worker(void *data)
{
    struct parked *parked = data;
    struct error err = {0};

    parked->seen = parked->kind->look(&parked->poll, parked->is_last_look, &err);
    if (parked->seen < 0) {
        parked->call.front->on_error(&parked->call, &err);
        parked->seen = POLL_ANSWERED;
    }
    loop_post(parked->loop, on_looked, parked);
}

static void look_elsewhere(struct parked *parked)
{
    struct error err = {0};

    atomic_fetch_add(&parked->refs, 1);
    parked->is_looking = true;
    parked->is_last_look = parked->is_last;
    if (workers_submit(call_workers(&parked->call), WORKERS_QUICK, on_worker, parked, &err) == 0)
        return;
    // Full: the condition will still hold in a moment, and a refusal would cost the client its command's result.
    parked->is_looking = false;
    loop_timer_set(&parked->retry, RETRY_MS);
    parked_unref(parked);
}

/* On the loop: there is news, or the time is up. */
static void look_again(struct parked *parked)
{
    enum poll_look seen = POLL_ELSEWHERE;

    if (parked->is_over)
        return;
    parked->is_told = parked->is_looking;
    if (parked->is_looking)
        return;
    if (parked->kind->look_quick)
        seen = parked->kind->look_quick(&parked->poll, parked->is_last);
    if (seen == POLL_ELSEWHERE)
        look_elsewhere(parked);
    else
        parked->is_over = seen == POLL_ANSWERED;
}

static void on_wake(void *data)
{
    struct parked *parked = data;

    atomic_store(&parked->is_posted, false);
    look_again(parked);
    parked_unref(parked);
}

/* From the hub, on any thread. */
static void on_news(void *data)
{
    struct parked *parked = data;

    if (atomic_exchange(&parked->is_posted, true))
        return;
    atomic_fetch_add(&parked->refs, 1);
    loop_post(parked->loop, on_wake, parked);
}

static void on_retry(void *data)
{
    look_again(data);
}

/* The time is up; or the client sends no more, which mostly means that it is gone: whatever it is told now ends the poll. */
static void on_last(void *data)
{
    struct parked *parked = data;

    parked->is_last = true;
    look_again(parked);
}

static void on_end(void *data, bool is_delivered)
{
    struct parked *parked = data;

    (void)is_delivered;
    parked->is_over = true;
    loop_timer_clear(&parked->retry);
    watch_free(parked->watch);
    parked_unref(parked);
}

static const struct response_events parked_events = {
    .on_gone = on_last,
    .on_deadline = on_last,
    .on_end = on_end,
};

/* Watches first and then looks, so that no news is missed. */
static void park(struct parked *parked, uint64_t wait_ms)
{
    struct response *response = parked->call.response;

    loop_timer_init(&parked->retry, parked->loop, on_retry, parked);
    parked->watch = hub_watch(core_hub(parked->call.core), parked->poll.id, on_news, parked);
    atomic_fetch_add(&parked->refs,
                     1); // from response_watch on, the loop may be done with it at any time
    response_watch(response, &parked_events, parked);
    response_set_deadline(response, wait_ms);
    on_news(parked);
    parked_unref(parked);
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
        park(parked_new(call, kind, id, data, size),
             (uint64_t)(wait_ms < POLL_MAX_MS ? wait_ms : POLL_MAX_MS));
    return 0;
}
