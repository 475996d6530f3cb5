/* SPDX-License-Identifier: Apache-2.0 */
/* Followers; see follower.h. */
#include "web/follower.h"

#define RETRY_MS 25 // before asking again for a worker when all are busy

static void on_retry(void *data)
{
    struct follower *follower = data;

    follower->kind->on_retry(follower);
}

void follower_init(struct follower *follower, const struct call *call,
                   const struct follower_kind *kind)
{
    waiting_call_init(&follower->waiting, call);
    follower->kind = kind;
    loop_timer_init(&follower->retry, follower->waiting.loop, on_retry, follower);
    atomic_init(&follower->refs, 1);
    atomic_init(&follower->is_posted, false);
    follower->is_working = false;
}

void follower_ref(struct follower *follower)
{
    atomic_fetch_add(&follower->refs, 1);
}

void follower_unref(struct follower *follower)
{
    if (atomic_fetch_sub(&follower->refs, 1) != 1)
        return;
    waiting_call_clear(&follower->waiting);
    follower->kind->free(follower);
}

static void on_wake(void *data)
{
    struct follower *follower = data;

    atomic_store(&follower->is_posted, false);
    follower->kind->on_wake(follower);
    follower_unref(follower);
}

void follower_wake(void *data)
{
    struct follower *follower = data;

    if (atomic_exchange(&follower->is_posted, true))
        return;
    follower_ref(follower);
    loop_post(follower->waiting.loop, on_wake, follower);
}

static void on_worked(void *data)
{
    struct follower *follower = data;

    follower->is_working = false;
    follower->kind->on_worked(follower);
    follower_unref(follower);
}

static void on_worker(void *data)
{
    struct follower *follower = data;

    follower->work(follower);
    loop_post(follower->waiting.loop, on_worked, follower);
}

bool follower_work(struct follower *follower, void (*work)(void *follower))
{
    struct waiting_call *waiting = &follower->waiting;
    struct error ignored = {0};

    follower_ref(follower);
    follower->work = work;
    follower->is_working = true;
    if (workers_submit_for(waiting->workers, WORKERS_QUICK, &waiting->owner, on_worker, follower,
                           &ignored) == 0)
        return true;
    // Full: the condition will still hold in a moment, and a refusal would cost the client its command's result.
    follower->is_working = false;
    loop_timer_set(&follower->retry, RETRY_MS);
    follower_unref(follower);
    return false;
}

void follower_keep_alive(struct follower *follower, enum event_format format)
{
    struct response *response = follower->waiting.response;
    autobuffer text = {0};
    struct error ignored = {0};

    if (response_is_drained(response) && event_format_add_keep_alive(format, &text, &ignored) == 0)
        (void)response_append(response, text.data, text.length);
}

void follower_end(struct follower *follower)
{
    loop_timer_clear(&follower->retry);
    follower_unref(follower);
}
