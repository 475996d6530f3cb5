/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/loop.h"
#include "loop/timer_heap.h"
#include "loop/workers.h"

#include "test.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/eventfd.h>

#define THREADS 4
#define POSTS 20000

struct tally {
    struct loop *loop;
    int next[THREADS]; // what each thread's next post must carry
    int total;
    bool is_disordered;
};

struct poster {
    struct tally *tally;
    int index;
};

struct posted {
    struct tally *tally;
    int index, number;
};

static void on_post(void *data)
{
    struct posted *posted = data;
    struct tally *tally = posted->tally;

    tally->is_disordered |=
        tally->next[posted->index]++ != posted->number || !loop_is_here(tally->loop);
    if (++tally->total == THREADS * POSTS)
        loop_stop(tally->loop);
    free(posted);
}

static void *post_many(void *data)
{
    struct poster *poster = data;

    for (int i = 0; i < POSTS; i++) {
        struct posted *posted = malloc(sizeof *posted);
        *posted = (struct posted){poster->tally, poster->index, i};
        loop_post(poster->tally->loop, on_post, posted);
    }
    return NULL;
}

TEST(posts_of_many_threads_run_once_each_and_in_order)
{
    autoptr(loop) loop = NULL;
    struct error err = {0};
    struct tally tally = {0};
    struct poster posters[THREADS];
    pthread_t threads[THREADS];

    CHECK_OK(loop_new(&loop, &err), err);
    tally.loop = loop;
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){&tally, i};
        CHECK(pthread_create(&threads[i], NULL, post_many, &posters[i]) == 0);
    }
    loop_run(loop);
    for (int i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    CHECK_INT(tally.total, THREADS * POSTS);
    CHECK(!tally.is_disordered);
}

static void post_again(void *data)
{
    struct tally *tally = data;
    if (++tally->total < 1000)
        loop_post(tally->loop, post_again, tally);
    else
        loop_stop(tally->loop);
}

TEST(a_post_may_post)
{
    autoptr(loop) loop = NULL;
    struct error err = {0};
    struct tally tally = {0};

    CHECK_OK(loop_new(&loop, &err), err);
    tally.loop = loop;
    loop_post(loop, post_again, &tally);
    loop_run(loop);
    CHECK_INT(tally.total, 1000);
}

static void count(void *data)
{
    ++*(int *)data;
}

struct order {
    struct loop *loop;
    struct loop_watch *watch;
    int fd;
    char happened[8];
};

static void note(struct order *order, const char *what)
{
    (void)strcat(order->happened, what);
}

static void on_third(void *data)
{
    note(data, "3");
    loop_stop(((struct order *)data)->loop);
}

static void on_second(void *data)
{
    note(data, "2");
    loop_post(((struct order *)data)->loop, on_third, data);
}

static void on_first(void *data)
{
    struct order *order = data;

    note(order, "1");
    (void)eventfd_write(order->fd, 1);
    loop_post(order->loop, on_second, order);
}

static void on_ready_descriptor(void *data, unsigned events)
{
    struct order *order = data;

    (void)events;
    note(order, "d");
    loop_watch_free(order->watch);
}

TEST(what_a_post_posts_comes_before_descriptors_and_what_that_posts_behind_them)
{
    autoptr(loop) loop = NULL;
    autofd fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct error err = {0};
    struct order order = {.fd = fd};

    CHECK_OK(loop_new(&loop, &err), err);
    order.loop = loop;
    CHECK_OK(loop_watch_new(loop, fd, on_ready_descriptor, &order, &order.watch, &err), err);
    loop_watch_set(order.watch, LOOP_READABLE);
    loop_post(loop, on_first, &order);
    loop_run(loop);
    CHECK_STR(order.happened, "12d3");
}

TEST(what_was_posted_to_a_loop_that_never_ran_is_run_when_it_is_freed)
{
    struct loop *loop = NULL;
    struct error err = {0};
    int counted = 0;

    CHECK_OK(loop_new(&loop, &err), err);
    loop_post(loop, count, &counted);
    loop_free(loop);
    CHECK_INT(counted, 1);
}

struct clock {
    struct loop *loop;
    struct loop_timer timers[4];
    int order[4];
    int fired;
};

struct hand {
    struct clock *clock;
    int index;
};

static void on_hand(void *data)
{
    struct hand *hand = data;
    struct clock *clock = hand->clock;

    clock->order[clock->fired++] = hand->index;
    if (clock->fired == 3)
        loop_stop(clock->loop);
}

TEST(timers_fire_in_order_of_time_and_a_cleared_one_not_at_all)
{
    autoptr(loop) loop = NULL;
    struct error err = {0};
    struct clock clock = {0};
    struct hand hands[4];
    static const int after_ms[4] = {40, 5, 20, 1};

    CHECK_OK(loop_new(&loop, &err), err);
    clock.loop = loop;
    for (int i = 0; i < 4; i++) {
        hands[i] = (struct hand){&clock, i};
        loop_timer_init(&clock.timers[i], loop, on_hand, &hands[i]);
        loop_timer_set(&clock.timers[i], (uint64_t)after_ms[i]);
    }
    loop_timer_clear(&clock.timers[3]);
    loop_timer_set(&clock.timers[1], 60); // moved behind the others
    loop_run(loop);
    CHECK_INT(clock.order[0], 2);
    CHECK_INT(clock.order[1], 0);
    CHECK_INT(clock.order[2], 1);
}

TEST(a_heap_of_timers_gives_the_earliest_whatever_was_put_moved_and_removed)
{
    enum { COUNT = 500 };
    static struct loop_timer timers[COUNT];
    struct timer_heap heap = {0};
    unsigned seed = 7;

    for (int step = 0; step < 20000; step++) {
        struct loop_timer *timer = &timers[rand_r(&seed) % COUNT];
        if (timer->place && rand_r(&seed) % 3 == 0) {
            timer_heap_remove(&heap, timer);
        } else {
            timer->when_ms = (uint64_t)(rand_r(&seed) % 1000);
            timer_heap_put(&heap, timer);
        }
        struct loop_timer *first = timer_heap_first(&heap);
        for (int i = 0; i < COUNT && step % 100 == 0; i++)
            CHECK(!timers[i].place || first->when_ms <= timers[i].when_ms);
    }
    timer_heap_clear(&heap);
}

struct reader {
    struct loop *loop;
    struct loop_watch *watch;
    int fd;
    uint64_t sum;
};

static void on_event(void *data, unsigned events)
{
    struct reader *reader = data;
    uint64_t value = 0;

    if (events != LOOP_READABLE || read(reader->fd, &value, sizeof value) != sizeof value)
        return;
    reader->sum += value;
    if (reader->sum < 100)
        return;
    loop_watch_free(reader->watch);
    loop_stop(reader->loop);
}

static void *write_events(void *data)
{
    for (int i = 0; i < 100; i++)
        (void)eventfd_write(*(int *)data, 1);
    return NULL;
}

TEST(a_watch_tells_of_a_readable_descriptor_and_may_be_freed_in_its_callback)
{
    autoptr(loop) loop = NULL;
    autofd fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    struct error err = {0};
    struct reader reader = {.fd = fd};
    pthread_t writer;

    CHECK_OK(loop_new(&loop, &err), err);
    reader.loop = loop;
    CHECK_OK(loop_watch_new(loop, fd, on_event, &reader, &reader.watch, &err), err);
    loop_watch_set(reader.watch, LOOP_READABLE);
    CHECK(pthread_create(&writer, NULL, write_events, &reader.fd) == 0);
    loop_run(loop);
    (void)pthread_join(writer, NULL);
    CHECK_INT(reader.sum, 100);
}
