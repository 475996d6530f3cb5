/* SPDX-License-Identifier: Apache-2.0 */
#include "web/poll.h"

#include "base/mem.h"
#include "core/core.h"
#include "web/reply.h"
#include "test.h"
#include "unit/web/front_fixture.h"

#include <sys/socket.h>

/* One thing to wait for, and what was seen of those who do. */
struct rig {
    struct core core; // with a hub, and nothing else
    struct front front;
    struct front_fixture *fixture;
    atomic_bool is_there;   // the condition
    atomic_bool is_broken;  // looking fails
    atomic_bool is_unknown; // the quick look cannot tell
    atomic_bool is_kept;    // it goes on when its client has gone
    atomic_int quick_looks, looks, last_looks, gone;
};

static void answer(const struct poll *poll, const struct rig *rig)
{
    autofree char *text =
        xasprintf("%s %s %s %s", poll->id, (const char *)poll->data, poll_base_url(poll),
                  atomic_load(&rig->is_there) ? "there" : "not yet");

    (void)response_send(poll->call->response, 200, NULL, text, strlen(text));
}

static enum poll_look tell(const struct poll *poll, struct rig *rig, bool is_last)
{
    if (!atomic_load(&rig->is_there) && !is_last)
        return POLL_WAITS;
    atomic_fetch_add(&rig->last_looks, is_last);
    answer(poll, rig);
    return POLL_ANSWERED;
}

static enum poll_look look_quick(const struct poll *poll, bool is_last)
{
    struct rig *rig = poll->call->settings;

    atomic_fetch_add(&rig->quick_looks, 1);
    return atomic_load(&rig->is_unknown) || atomic_load(&rig->is_broken) ? POLL_ELSEWHERE
                                                                         : tell(poll, rig, is_last);
}

static int look(const struct poll *poll, bool is_last, struct error *err)
{
    struct rig *rig = poll->call->settings;

    atomic_fetch_add(&rig->looks, 1);
    if (atomic_load(&rig->is_broken))
        return error_set(err, ERROR_CONFLICT, "it is broken");
    return tell(poll, rig, is_last);
}

static const struct poll_kind kind = {.look_quick = look_quick, .look = look};
static const struct poll_kind slow_kind = {.look = look};

/* Nobody wants it any more, so it ends. */
static bool end_it(const struct poll *poll)
{
    struct rig *rig = poll->call->settings;

    atomic_fetch_add(&rig->gone, 1);
    return !atomic_load(&rig->is_kept);
}
static const struct poll_kind ending_kind = {
    .look_quick = look_quick, .look = look, .on_gone = end_it};

static int wait_quick(struct call *call, struct error *err)
{
    return poll_call(call, &kind, "thing", query_integer(call->query, "ms", 0), "data", 5, err);
}

static int wait_slow(struct call *call, struct error *err)
{
    return poll_call(call, &slow_kind, "thing", query_integer(call->query, "ms", 0), "data", 5,
                     err);
}

static int wait_alone(struct call *call, struct error *err)
{
    return poll_call(call, &ending_kind, "thing", 60000, "data", 5, err);
}

static sem_t *block_gate(void)
{
    static sem_t gate;

    return &gate;
}

/* Keeps a worker of the quick lane. */
static int block(struct call *call, struct error *err)
{
    struct rig *rig = call->settings;

    atomic_fetch_add(&rig->fixture->blocked, 1);
    while (sem_wait(block_gate()) < 0)
        continue;
    (void)response_send(call->response, 200, NULL, "", 0);
    return 0;
}

static const struct route routes[] = {
    {"GET", "/wait", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, wait_quick, "on the loop"},
    {"GET", "/wait/slow", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, wait_slow, "on a worker"},
    {"GET", "/wait/alone", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, wait_alone, "ends with its client"},
    {"GET", "/block", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, block, "waits"},
    {0},
};

static void on_error(struct call *call, const struct error *err)
{
    (void)response_send(call->response, error_status(err), NULL, err->text, strlen(err->text));
}

static void rig_start(struct rig *rig)
{
    rig->core.hub = hub_new();
    rig->front = (struct front){
        .name = "test", .title = "Tests.", .routes = routes, .on_error = on_error, .settings = rig};
    rig->fixture =
        front_fixture_new(&(struct front_options){.core = &rig->core, .front = &rig->front});
}

static void rig_stop(struct rig *rig)
{
    front_fixture_free(rig->fixture);
    hub_free(rig->core.hub); // whoever still watches is found by the sanitizer
}
#define autorig __attribute__((cleanup(rig_stop))) struct rig

static int say(struct rig *rig, const char *target)
{
    int fd = client_connect(rig->fixture);
    autofree char *text = xasprintf("GET %s HTTP/1.1\r\nHost: h:1\r\n\r\n", target);

    client_say(fd, text);
    return fd;
}

static void check(int fd, int status, const char *body)
{
    autoanswer got = {0};

    client_read(fd, &got);
    CHECK_INT(got.status, status);
    CHECK_STR(got.body.data, body);
}

static void make_true(struct rig *rig)
{
    atomic_store(&rig->is_there, true);
    hub_announce(rig->core.hub, "thing");
}

TEST(what_holds_already_is_answered_at_once)
{
    autorig rig = {.is_there = true};

    rig_start(&rig);
    autofd quick = say(&rig, "/wait?ms=60000");
    check(quick, 200, "thing data http://h:1 there");
    CHECK_INT(atomic_load(&rig.quick_looks), 1);
    CHECK_INT(atomic_load(&rig.looks), 0);
    autofd slow = say(&rig, "/wait/slow?ms=60000");
    check(slow, 200, "thing data http://h:1 there");
    CHECK_INT(atomic_load(&rig.looks), 1);
}

TEST(without_a_time_there_is_no_wait)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd none = say(&rig, "/wait");
    check(none, 200, "thing data http://h:1 not yet");
    autofd past = say(&rig, "/wait/slow?ms=-5");
    check(past, 200, "thing data http://h:1 not yet");
}

TEST(when_the_time_is_up_the_answer_is_what_is)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd quick = say(&rig, "/wait?ms=20");
    autofd slow = say(&rig, "/wait/slow?ms=20");
    check(quick, 200, "thing data http://h:1 not yet");
    check(slow, 200, "thing data http://h:1 not yet");
    CHECK_INT(atomic_load(&rig.last_looks), 2);
}

TEST(news_wakes_all_who_wait)
{
    enum { POLLS = 300 };
    autorig rig = {0};
    int fds[POLLS];

    rig_start(&rig);
    for (int i = 0; i < POLLS; i++)
        fds[i] = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.quick_looks, 2 * POLLS); // each has looked once more after it began to watch
    make_true(&rig);
    for (int i = 0; i < POLLS; i++) {
        check(fds[i], 200, "thing data http://h:1 there");
        (void)close(fds[i]);
    }
    CHECK_INT(atomic_load(&rig.last_looks), 0);
}

TEST(news_of_something_else_changes_nothing)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd fd = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.quick_looks, 2);
    hub_announce(rig.core.hub, "other");
    hub_announce(rig.core.hub, "thing");
    fixture_wait(&rig.quick_looks, 3);
    make_true(&rig);
    check(fd, 200, "thing data http://h:1 there");
    CHECK_INT(atomic_load(&rig.quick_looks), 4);
}

TEST(what_memory_does_not_know_is_asked_of_a_worker)
{
    autorig rig = {.is_unknown = true};

    rig_start(&rig);
    autofd fd = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.looks, 2);
    make_true(&rig);
    check(fd, 200, "thing data http://h:1 there");
}

TEST(news_that_comes_all_the_time_is_never_lost)
{
    autorig rig = {.is_unknown = true};
    enum { POLLS = 20 };
    int fds[POLLS];

    rig_start(&rig);
    for (int i = 0; i < POLLS; i++)
        fds[i] = say(&rig, "/wait/slow?ms=60000");
    for (int i = 0; i < 20000; i++)
        hub_announce(rig.core.hub, "thing");
    make_true(&rig);
    for (int i = 0; i < POLLS; i++) {
        check(fds[i], 200, "thing data http://h:1 there");
        (void)close(fds[i]);
    }
}

TEST(a_look_that_fails_is_answered_by_the_front)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd fd = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.quick_looks, 2);
    atomic_store(&rig.is_broken, true);
    hub_announce(rig.core.hub, "thing");
    check(fd, 409, "it is broken");
}

TEST(a_client_that_goes_ends_its_poll_and_no_other)
{
    autorig rig = {0};

    rig_start(&rig);
    int gone = say(&rig, "/wait?ms=60000");
    autofd stays = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.quick_looks, 4);
    (void)close(gone);
    fixture_wait(&rig.last_looks, 1);
    make_true(&rig);
    check(stays, 200, "thing data http://h:1 there");
}

TEST(a_client_that_only_stops_sending_gets_what_is)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd fd = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.quick_looks, 2);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    check(fd, 200, "thing data http://h:1 not yet");
}

TEST(what_ends_with_its_client_is_waited_for)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd fd = say(&rig, "/wait/alone");
    fixture_wait(&rig.quick_looks, 2);
    CHECK(shutdown(fd, SHUT_WR) == 0);
    fixture_wait(&rig.gone, 1);
    CHECK_INT(atomic_load(&rig.last_looks), 0);
    make_true(&rig);
    check(fd, 200, "thing data http://h:1 there");

    atomic_store(&rig.is_there, false);
    atomic_store(&rig.is_kept, true);
    autofd other = say(&rig, "/wait/alone");
    fixture_wait(&rig.quick_looks, 5);
    CHECK(shutdown(other, SHUT_WR) == 0);
    check(other, 200, "thing data http://h:1 not yet");
    CHECK_INT(atomic_load(&rig.gone), 2);
}

TEST(busy_workers_delay_an_answer_and_do_not_refuse_it)
{
    enum { BLOCKED = 120 }; // more than the two workers and their queue of a hundred
    autorig rig = {0};
    int fds[BLOCKED];

    (void)sem_init(block_gate(), 0, 0);
    rig_start(&rig);
    autofd fd = say(&rig, "/wait?ms=60000");
    fixture_wait(&rig.quick_looks, 2);
    for (int i = 0; i < BLOCKED; i++) {
        fds[i] = say(&rig, "/block");
        fixture_wait(&rig.fixture->blocked,
                     i < 2 ? i + 1 : 2); // the workers first, then their queue
    }
    while (workers_waiting(rig.fixture->workers, WORKERS_QUICK) < 100)
        (void)sched_yield();
    atomic_store(&rig.is_unknown, true);
    make_true(&rig);
    fixture_wait(&rig.quick_looks, 4); // it has tried, and tried again
    for (int i = 0; i < BLOCKED; i++)
        (void)sem_post(block_gate());
    check(fd, 200, "thing data http://h:1 there");
    for (int i = 0; i < BLOCKED; i++)
        (void)close(fds[i]);
}

TEST(polls_that_wait_do_not_keep_a_server_from_stopping)
{
    autorig rig = {0};

    rig_start(&rig);
    autofd quick = say(&rig, "/wait?ms=60000");
    autofd slow = say(&rig, "/wait/slow?ms=60000");
    fixture_wait(&rig.quick_looks, 2);
    fixture_wait(&rig.looks, 1);
}
