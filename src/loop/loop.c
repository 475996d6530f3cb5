/* SPDX-License-Identifier: Apache-2.0 */
/* The loop over libuv: polled descriptors, one timer in front of a heap of ours, one wake-up for
 * all posts. */
#include "loop/loop.h"
#include "loop/timer_heap.h"

#include "base/lock.h"
#include "base/mem.h"
#include "base/thread.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

struct post {
    void (*fn)(void *data);
    void *data;
    struct post *next;
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    uv_prepare_t before_waiting;
    uv_timer_t alarm;
    struct timer_heap timers;
    _Atomic(pthread_t) runner; // 0: nobody
    struct lock lock;          // guards the three below
    struct post *first, **last;
    bool is_stopping;
};

struct loop_watch {
    uv_poll_t poll;
    on_ready fn;
    void *data;
    unsigned events; // as asked for
};

bool loop_is_here(const struct loop *loop)
{
    pthread_t runner = atomic_load_explicit(&loop->runner, memory_order_relaxed);
    return !runner || pthread_equal(runner, pthread_self());
}

uint64_t loop_now_ms(const struct loop *loop)
{
    return uv_now(&loop->uv);
}

/* True: nothing else waits. */
static bool append_post(struct loop *loop, struct post *post)
{
    autolock(&loop->lock);
    bool is_first = !loop->first;
    *loop->last = post;
    loop->last = &post->next;
    return is_first;
}

void loop_post(struct loop *loop, void (*fn)(void *data), void *data)
{
    struct post *post = xnew(struct post);
    post->fn = fn;
    post->data = data;

    bool is_first = append_post(loop, post);
    // The loop's own posts are seen before it waits again.
    if (is_first && (!loop_is_here(loop) || !loop->runner))
        (void)uv_async_send(&loop->wake);
}

static struct post *take_posts(struct loop *loop)
{
    autolock(&loop->lock);
    struct post *first = loop->first;
    loop->first = NULL;
    loop->last = &loop->first;
    return first;
}

static bool has_posts(struct loop *loop)
{
    autolock(&loop->lock);
    return loop->first != NULL;
}

/* One batch. */
static bool run_posts(struct loop *loop)
{
    struct post *post = take_posts(loop);
    bool is_any = post != NULL;
    while (post) {
        struct post *next = post->next;
        post->fn(post->data);
        free(post);
        post = next;
    }
    return is_any;
}

static bool is_stopped(struct loop *loop)
{
    autolock(&loop->lock);
    return loop->is_stopping && !loop->first;
}

/* What the posts post themselves, such as an answer's bytes, is run too; what these post comes after the loop has looked at its descriptors again. */
static void on_turn(uv_prepare_t *handle)
{
    struct loop *loop = handle->data;

    if (run_posts(loop))
        (void)run_posts(loop);
    if (is_stopped(loop)) {
        uv_stop(&loop->uv);
        return;
    }
    if (has_posts(loop))
        (void)uv_async_send(&loop->wake);
}

static void on_wake(uv_async_t *handle)
{
    (void)handle; // the posts are run before the next wait
}

static void on_alarm(uv_timer_t *handle)
{
    struct loop *loop = handle->data;
    struct loop_timer *timer;

    while ((timer = timer_heap_first(&loop->timers)) && timer->when_ms <= uv_now(&loop->uv)) {
        timer_heap_remove(&loop->timers, timer);
        timer->fn(timer->data);
    }
    if (timer)
        (void)uv_timer_start(&loop->alarm, on_alarm, timer->when_ms - uv_now(&loop->uv), 0);
}

int loop_new(struct loop **out, struct error *err)
{
    struct loop *loop = xnew(struct loop);
    int code = uv_loop_init(&loop->uv);
    if (code < 0) {
        free(loop);
        return error_sys_code(err, -code, "make an event loop");
    }
    lock_init(&loop->lock, LOCK_LOOP);
    loop->last = &loop->first;
    (void)uv_async_init(&loop->uv, &loop->wake, on_wake);
    (void)uv_prepare_init(&loop->uv, &loop->before_waiting);
    (void)uv_timer_init(&loop->uv, &loop->alarm);
    loop->before_waiting.data = loop->alarm.data = loop;
    (void)uv_prepare_start(&loop->before_waiting, on_turn);
    *out = loop;
    return 0;
}

static void set_stopping(struct loop *loop, bool is_stopping)
{
    autolock(&loop->lock);
    loop->is_stopping = is_stopping;
}

void loop_run(struct loop *loop)
{
    atomic_store(&loop->runner, pthread_self());
    thread_mark_loop(true);
    while (!is_stopped(loop))
        (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    thread_mark_loop(false);
    set_stopping(loop, false);
    atomic_store(&loop->runner, (pthread_t)0);
}

void loop_stop(struct loop *loop)
{
    set_stopping(loop, true);
    (void)uv_async_send(&loop->wake);
}

void loop_free(struct loop *loop)
{
    if (!loop)
        return;
    while (run_posts(loop))
        ;
    assert(!timer_heap_first(&loop->timers));
    uv_close((uv_handle_t *)&loop->wake, NULL);
    uv_close((uv_handle_t *)&loop->before_waiting, NULL);
    uv_close((uv_handle_t *)&loop->alarm, NULL);
    (void)uv_run(&loop->uv, UV_RUN_DEFAULT);
    int code = uv_loop_close(&loop->uv);
    assert(code == 0); // else a watch is left
    (void)code;
    timer_heap_clear(&loop->timers);
    lock_clear(&loop->lock);
    free(loop);
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct loop_watch *watch = handle->data;
    unsigned told = 0;

    if (status < 0)
        told = LOOP_FAILED;
    if (events & UV_READABLE)
        told |= LOOP_READABLE;
    if (events & UV_WRITABLE)
        told |= LOOP_WRITABLE;
    if (events & UV_DISCONNECT)
        told |= LOOP_HANGUP;
    if (told & LOOP_FAILED)
        watch->events = 0;
    watch->fn(watch->data, told);
}

int loop_watch_new(struct loop *loop, int fd, on_ready fn, void *data, struct loop_watch **out,
                   struct error *err)
{
    assert_on_loop(loop);
    struct loop_watch *watch = xnew(struct loop_watch);
    int code = uv_poll_init(&loop->uv, &watch->poll, fd);
    if (code < 0) {
        free(watch);
        return error_sys_code(err, -code, "watch descriptor %d", fd);
    }
    watch->poll.data = watch;
    watch->fn = fn;
    watch->data = data;
    *out = watch;
    return 0;
}

void loop_watch_set(struct loop_watch *watch, unsigned events)
{
    if (events == watch->events)
        return;
    watch->events = events;
    int wanted = 0;
    if (events & LOOP_READABLE)
        wanted |= UV_READABLE;
    if (events & LOOP_WRITABLE)
        wanted |= UV_WRITABLE;
    if (events & LOOP_HANGUP)
        wanted |= UV_DISCONNECT;
    if (wanted)
        (void)uv_poll_start(&watch->poll, wanted, on_poll);
    else
        (void)uv_poll_stop(&watch->poll);
}

static void on_watch_closed(uv_handle_t *handle)
{
    free(handle->data);
}

void loop_watch_free(struct loop_watch *watch)
{
    if (watch)
        uv_close((uv_handle_t *)&watch->poll, on_watch_closed);
}

void loop_timer_init(struct loop_timer *timer, struct loop *loop, void (*fn)(void *data),
                     void *data)
{
    *timer = (struct loop_timer){.loop = loop, .fn = fn, .data = data};
}

void loop_timer_set(struct loop_timer *timer, uint64_t after_ms)
{
    struct loop *loop = timer->loop;
    assert_on_loop(loop);

    if (after_ms == 0)
        after_ms = 1; // in a later turn, so that a timer that sets itself lets others run
    timer->when_ms = uv_now(&loop->uv) + after_ms;
    timer_heap_put(&loop->timers, timer);
    // An alarm that rings too early finds nothing due and is set anew.
    if (timer_heap_first(&loop->timers) == timer && (!uv_is_active((uv_handle_t *)&loop->alarm) ||
                                                     uv_timer_get_due_in(&loop->alarm) > after_ms))
        (void)uv_timer_start(&loop->alarm, on_alarm, after_ms, 0);
}

void loop_timer_clear(struct loop_timer *timer)
{
    if (timer->place)
        timer_heap_remove(&timer->loop->timers, timer);
}
