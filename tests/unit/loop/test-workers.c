/* SPDX-License-Identifier: Apache-2.0 */
#include "loop/workers.h"

#include "test.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct workers_settings small = {.lane = {{2, 4}, {1, 2}}};

struct gate {
    sem_t has_started, may_end;
    atomic_int done;
};

static void gate_init(struct gate *gate)
{
    (void)sem_init(&gate->has_started, 0, 0);
    (void)sem_init(&gate->may_end, 0, 0);
    atomic_init(&gate->done, 0);
}

static void hold(void *data)
{
    struct gate *gate = data;
    (void)sem_post(&gate->has_started);
    (void)sem_wait(&gate->may_end);
    atomic_fetch_add(&gate->done, 1);
}

static void pass(void *data)
{
    struct gate *gate = data;
    atomic_fetch_add(&gate->done, 1);
    (void)sem_post(&gate->has_started);
}

TEST(a_full_lane_is_an_error_at_once_and_the_other_lane_goes_on)
{
    autoptr(workers) workers = NULL;
    struct error err = {0};
    struct gate slow;
    struct gate quick;

    gate_init(&slow);
    gate_init(&quick);
    CHECK_OK(workers_new(&small, &workers, &err), err);
    CHECK_OK(workers_submit(workers, WORKERS_SLOW, hold, &slow, &err), err);
    (void)sem_wait(&slow.has_started); // runs, so the queue is empty
    CHECK_OK(workers_submit(workers, WORKERS_SLOW, hold, &slow, &err), err);
    CHECK_OK(workers_submit(workers, WORKERS_SLOW, hold, &slow, &err), err);
    CHECK_INT(workers_waiting(workers, WORKERS_SLOW), 2);
    CHECK(workers_submit(workers, WORKERS_SLOW, hold, &slow, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_INT(err.reason, ERROR_FULL);

    CHECK_OK(workers_submit(workers, WORKERS_QUICK, pass, &quick, &err), err);
    (void)sem_wait(&quick.has_started);
    for (int i = 0; i < 3; i++)
        (void)sem_post(&slow.may_end);
    workers_free(take(workers));
    CHECK_INT(atomic_load(&slow.done), 3);
    CHECK_INT(atomic_load(&quick.done), 1);
}

struct chain {
    struct workers *workers;
    int left;
};

static void go_on(void *data)
{
    struct chain *chain = data;
    struct error err;
    if (--chain->left > 0)
        (void)workers_submit(chain->workers, WORKERS_QUICK, go_on, chain, &err);
}

TEST(freeing_the_pool_finishes_what_is_queued_and_what_that_queues)
{
    autoptr(workers) workers = NULL;
    struct error err = {0};
    struct chain chain = {.left = 100};

    CHECK_OK(workers_new(&small, &workers, &err), err);
    chain.workers = workers;
    CHECK_OK(workers_submit(workers, WORKERS_QUICK, go_on, &chain, &err), err);
    workers_free(take(workers));
    CHECK_INT(chain.left, 0);
}

/* Each submit meets a thread that is just becoming idle. Work that is lost is waited for in vain. */
TEST(workers_that_stopped_refuse_work_and_can_still_be_asked)
{
    autoptr(workers) workers = NULL;
    struct error err = {0};
    struct gate gate;

    gate_init(&gate);
    CHECK_OK(workers_new(&(struct workers_settings){.lane = {{1, 1}, {1, 1}}}, &workers, &err),
             err);
    CHECK_OK(workers_submit(workers, WORKERS_QUICK, pass, &gate, &err), err);
    workers_stop(workers);
    CHECK_INT(atomic_load(&gate.done), 1);
    CHECK(workers_submit(workers, WORKERS_QUICK, pass, &gate, &err) < 0);
    CHECK_INT(err.reason, ERROR_FULL);
    workers_stop(workers);
    CHECK_INT(atomic_load(&gate.done), 1);
}

TEST(a_thread_that_is_called_while_it_becomes_idle_does_each_work_once)
{
    static const struct workers_settings four = {.lane = {{4, WORKERS_UNBOUNDED}, {1, 1}}};
    enum { ROUNDS = 100000, AT_ONCE = 3 };
    autoptr(workers) workers = NULL;
    struct error err = {0};
    struct gate gate;

    gate_init(&gate);
    CHECK_OK(workers_new(&four, &workers, &err), err);
    for (int i = 0; i < ROUNDS; i++) {
        CHECK_OK(workers_submit(workers, WORKERS_QUICK, pass, &gate, &err), err);
        if (i >= AT_ONCE)
            (void)sem_wait(&gate.has_started);
    }
    workers_free(take(workers));
    CHECK_INT(atomic_load(&gate.done), ROUNDS);
}

/* With first come, first served, the other's work would wait for all of what came before it. */
TEST(one_owner_cannot_keep_a_lane_from_another)
{
    static const struct workers_settings fair = {
        .lane = {[WORKERS_SLOW] = {.threads = 4, .queue = 64, .per_who = 3, .per_what = 1}}};
    enum { MANY = 40 };
    const struct turns_owner culprit = {.who = 1, .what = 1}, beside = {.who = 1, .what = 2};
    const struct turns_owner other = {.who = 2, .what = 3};
    autoptr(workers) workers = NULL;
    struct error err = {0};
    struct gate held, passed;

    gate_init(&held);
    gate_init(&passed);
    CHECK_OK(workers_new(&fair, &workers, &err), err);
    for (int i = 0; i < MANY; i++)
        CHECK_OK(workers_submit_for(workers, WORKERS_SLOW, &culprit, hold, &held, &err), err);
    (void)sem_wait(&held.has_started);
    CHECK_OK(workers_submit_for(workers, WORKERS_SLOW, &beside, pass, &passed, &err), err);
    (void)sem_wait(&passed.has_started);
    CHECK_OK(workers_submit_for(workers, WORKERS_SLOW, &other, pass, &passed, &err), err);
    (void)sem_wait(&passed.has_started);
    CHECK_INT(atomic_load(&held.done), 0);
    CHECK_INT(workers_waiting(workers, WORKERS_SLOW), MANY - 1);
    for (int i = 0; i < MANY; i++)
        (void)sem_post(&held.may_end);
    workers_free(take(workers));
    CHECK_INT(atomic_load(&held.done), MANY);
}

/* How long the turn of a thread is, as sched_getattr(2) tells. */
static void read_turn(void *data)
{
    uint64_t attributes[6] = {0}; // the fourth is the turn, in nanoseconds

    CHECK(syscall(SYS_sched_getattr, 0, attributes, sizeof attributes, 0) == 0);
    *(uint64_t *)data = attributes[3];
}

TEST(threads_of_a_lane_that_gives_way_have_long_turns_and_those_of_others_usual_ones)
{
    static const struct workers_settings settings = {.lane = {{1, 1}, {1, 1, .gives_way = true}}};
    autoptr(workers) workers = NULL;
    struct error err = {0};
    uint64_t usual = 0, longest = 0, own = 0;

    CHECK_OK(workers_new(&settings, &workers, &err), err);
    CHECK_OK(workers_submit(workers, WORKERS_QUICK, read_turn, &usual, &err), err);
    CHECK_OK(workers_submit(workers, WORKERS_SLOW, read_turn, &longest, &err), err);
    workers_free(take(workers));
    read_turn(&own);
    CHECK_INT(usual, own);
    if (own == 0)
        SKIP("a kernel (6.12) with turns of a thread's own");
    CHECK_INT(longest, 100000000);
}
