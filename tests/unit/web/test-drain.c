/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies taken on workers as they come. */
#include "web/drain.h"

#include "base/buffer.h"
#include "net/body_impl.h"
#include "test.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

struct rig {
    struct loop *loop;
    struct workers *workers;
    pthread_t thread;
    struct body *body;
    struct buffer taken;
    size_t most; // then on_bytes fails
    struct error err;
    bool is_whole;
    sem_t bytes, end, gate;
    unsigned held; // workers and places in their queue
};

static void *run_loop(void *data)
{
    loop_run(data);
    return NULL;
}

static void on_resume(void *connection)
{
    (void)connection;
}

static int on_bytes(void *data, const void *bytes, size_t length, struct error *err)
{
    struct rig *rig = data;

    if (rig->most && rig->taken.length + length > rig->most)
        return error_set(err, ERROR_LIMIT, "enough");
    CHECK_OK(buffer_add(&rig->taken, bytes, length, err), *err);
    (void)sem_post(&rig->bytes);
    return 0;
}

static void on_end(void *data, const struct error *err)
{
    struct rig *rig = data;

    rig->is_whole = !err;
    if (err)
        rig->err = *err;
    (void)sem_post(&rig->end);
}

static const struct drain_sink sink = {.on_bytes = on_bytes, .on_end = on_end};

static void rig_open(struct rig *rig, uint64_t patience_ms)
{
    static const struct workers_settings settings = {.lane = {{1, 1}, {1, 1}}};
    struct error err = {0};

    (void)sem_init(&rig->bytes, 0, 0);
    (void)sem_init(&rig->end, 0, 0);
    (void)sem_init(&rig->gate, 0, 0);
    CHECK_OK(loop_new(&rig->loop, &err), err);
    CHECK_OK(workers_new(&settings, &rig->workers, &err), err);
    rig->body = body_new(rig->loop, on_resume, rig);
    CHECK(pthread_create(&rig->thread, NULL, run_loop, rig->loop) == 0);
    drain_start(&(struct drain_request){.loop = rig->loop,
                                        .workers = rig->workers,
                                        .body = rig->body,
                                        .sink = &sink,
                                        .data = rig,
                                        .patience_ms = patience_ms});
}

static void wait_for(sem_t *event)
{
    struct timespec until;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    while (sem_timedwait(event, &until) != 0)
        CHECK(errno == EINTR);
}

static void rig_close(struct rig *rig)
{
    wait_for(&rig->end);
    workers_free(rig->workers);
    loop_stop(rig->loop);
    (void)pthread_join(rig->thread, NULL);
    loop_free(rig->loop);
    body_free(rig->body);
    buffer_clear(&rig->taken);
}

/* What a connection does on the loop. */
static void say(void *data)
{
    (void)body_put(data, "some", 4);
}

static void end(void *data)
{
    body_end(data, ERROR_NONE, NULL);
}

static void go_away(void *data)
{
    body_end(data, ERROR_GONE, "the client went away");
}

TEST(bytes_come_as_they_are_sent_and_then_the_end)
{
    struct rig rig = {0};

    rig_open(&rig, 0);
    for (unsigned i = 0; i < 3; i++) {
        loop_post(rig.loop, say, rig.body);
        wait_for(&rig.bytes);
    }
    CHECK_INT(rig.taken.length, 12);
    loop_post(rig.loop, end, rig.body);
    rig_close(&rig);
    CHECK(rig.is_whole);
}

TEST(a_byte_now_and_then_is_not_enough)
{
    struct rig rig = {0};
    struct timespec pause = {.tv_nsec = 2000000};

    rig_open(&rig, 200);
    while (sem_trywait(&rig.end) != 0) {
        loop_post(rig.loop, say, rig.body);
        (void)nanosleep(&pause, NULL);
    }
    (void)sem_post(&rig.end);
    CHECK(!rig.is_whole && rig.taken.length > 0);
    loop_post(rig.loop, go_away, rig.body);
    rig_close(&rig);
}

TEST(a_client_that_goes_away_is_told)
{
    struct rig rig = {0};

    rig_open(&rig, 60000);
    loop_post(rig.loop, say, rig.body);
    loop_post(rig.loop, go_away, rig.body);
    rig_close(&rig);
    CHECK(!rig.is_whole);
    CHECK_INT(error_kind(&rig.err), ERROR_GONE);
}

TEST(who_takes_the_bytes_may_end_it)
{
    struct rig rig = {.most = 5};

    rig_open(&rig, 0);
    loop_post(rig.loop, say, rig.body);
    wait_for(&rig.bytes);
    loop_post(rig.loop, say, rig.body);
    rig_close(&rig);
    CHECK_STR(rig.err.text, "enough");
    CHECK_INT(error_kind(&rig.err), ERROR_LIMIT);
}

TEST(patience_ends_when_nothing_comes)
{
    struct rig rig = {0};

    rig_open(&rig, 50);
    rig_close(&rig);
    CHECK(!rig.is_whole);
    CHECK_INT(error_kind(&rig.err), ERROR_INVALID);
}

static void hold(void *data)
{
    struct rig *rig = data;
    wait_for(&rig->gate);
}

static void open_gate(void *data)
{
    struct rig *rig = data;

    for (unsigned i = 0; i < rig->held; i++)
        (void)sem_post(&rig->gate);
}

/* Behind what the body has posted by now. */
static void open_gate_later(void *data)
{
    loop_post(((struct rig *)data)->loop, open_gate, data);
}

TEST(a_full_lane_delays_and_loses_nothing)
{
    struct rig rig = {0};
    struct error err = {0};

    rig_open(&rig, 0);
    while (workers_submit(rig.workers, WORKERS_SLOW, hold, &rig, &err) == 0)
        rig.held++;
    loop_post(rig.loop, say, rig.body);
    loop_post(rig.loop, end, rig.body);
    loop_post(rig.loop, open_gate_later, &rig);
    rig_close(&rig);
    CHECK(rig.is_whole);
}
