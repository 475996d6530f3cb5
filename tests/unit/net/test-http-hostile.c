/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that are slow, greedy, gone or malicious. */
#include "unit/net/net_fixture.h"

#include "base/clock.h"
#include "test.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define HOST "Host: x\r\n"

TEST(malformed_requests_are_answered_by_the_owner_and_the_connection_closes)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"GET / HTTP/1.1\r\n" HOST "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx", 400},
        {"complete and utter\r\ngarbage\r\n\r\n", 400},
        {"BREW /coffee HTTP/1.1\r\n" HOST "\r\n", 501},
        {"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n", 413},
        {"POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFF\r\nx", 413},
    };
    struct http_limits limits = quick_limits();
    limits.body_bytes = 1 << 20;
    autoptr(fixture) fixture = fixture_new(&limits);
    static char much[2 << 20];

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        autofd fd = client_connect(fixture);
        autoreply reply = {0};
        client_say(fd, cases[i].text);
        if (i == 4)
            client_send(fd, much, sizeof much);
        client_read(fd, &reply, false);
        CHECK_INT(reply.status, cases[i].status);
        CHECK(reply.is_closing && reply.body.length > 0);
        (void)shutdown(fd, SHUT_WR);
        CHECK(client_is_closed(fd));
    }
    CHECK_INT(atomic_load(&fixture->bad), 5);
    CHECK_INT(atomic_load(&fixture->requests), 0);
}

TEST(garbage_behind_a_request_does_not_spoil_its_answer)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    client_say(fd, "GET /worker HTTP/1.1\r\n" HOST
                   "\r\n\x01\x02garbage\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(fd, &reply, false);
    CHECK_STR(reply.body.data, "hello\n");
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 400);
    CHECK_INT(atomic_load(&fixture->requests), 1);
}

TEST(a_head_or_a_body_that_never_ends_is_given_up)
{
    struct http_limits limits = quick_limits();
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd head = client_connect(fixture);
    autofd body = client_connect(fixture);
    autoreply reply = {0};

    client_say(head, "GET / HTTP/1.1\r\nHost: x\r\nX");
    client_say(body, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 10\r\n\r\n123");
    client_read(head, &reply, false);
    CHECK_INT(reply.status, 408);
    client_read(body, &reply, false);
    CHECK_INT(reply.status, 408);
}

TEST(a_byte_now_and_then_does_not_prolong_a_head)
{
    struct http_limits limits = quick_limits();
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd fd = client_connect(fixture);
    struct timeval short_wait = {.tv_usec = 5000};
    autoreply reply = {0};
    int bytes = 0;
    char c;

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &short_wait, sizeof short_wait);
    client_say(fd, "GET / HTTP/1.1\r\nX: ");
    while (recv(fd, &c, 1, MSG_PEEK) < 0 && bytes++ < 4000)
        client_say(fd, "y");
    CHECK(bytes < 4000);
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 408);
}

TEST(an_idle_connection_is_closed_without_a_word)
{
    struct http_limits limits = quick_limits();
    limits.idle_ms = 50;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd fresh = client_connect(fixture);
    autofd used = client_connect(fixture);
    autoreply reply = {0};

    client_say(used, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(used, &reply, false);
    CHECK(client_is_closed(fresh));
    CHECK(client_is_closed(used));
    CHECK_INT(atomic_load(&fixture->bad), 0);
}

TEST(a_half_closed_client_gets_its_answer_and_counts_as_served)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    client_say(fd, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    (void)shutdown(fd, SHUT_WR);
    fixture_wait(&fixture->gone, 1);
    fixture_release(fixture, 1);
    client_read(fd, &reply, false);
    CHECK_STR(reply.body.data, "hello\n");
    CHECK(client_is_closed(fd));
    fixture_wait(&fixture->delivered, 1);
}

TEST(a_half_closed_client_gets_all_answers_it_asked_for)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    for (int i = 0; i < 50; i++)
        client_say(fd, "GET /worker HTTP/1.1\r\n" HOST "\r\n");
    (void)shutdown(fd, SHUT_WR);
    for (int i = 0; i < 50; i++) {
        client_read(fd, &reply, false);
        CHECK_INT(reply.status, 200);
    }
    CHECK(client_is_closed(fd));
    fixture_wait(&fixture->delivered, 50);
}

TEST(an_answer_to_a_client_that_left_counts_as_not_delivered)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd closed = client_connect(fixture);
    autofd reset = client_connect(fixture);
    struct linger now = {.l_onoff = 1};

    client_say(closed, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    client_say(reset, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    fixture_wait(&fixture->parked_count, 2);
    (void)setsockopt(reset, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(take_fd(closed));
    (void)close(take_fd(reset));
    fixture_wait(&fixture->gone, 2);
    fixture_release(fixture, 2);
    fixture_wait(&fixture->undelivered, 2);
    CHECK_INT(atomic_load(&fixture->delivered), 0);
}

TEST(a_client_that_leaves_in_the_middle_of_its_body_ends_the_reader)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);

    client_say(fd, "PUT /stream HTTP/1.1\r\n" HOST "Content-Length: 100\r\n\r\nabc");
    fixture_wait(&fixture->requests, 1);
    (void)close(take_fd(fd));
    fixture_wait(&fixture->read_failed, 1);
}

TEST(malformed_chunks_of_a_streamed_body_reach_its_reader_as_an_error)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autoreply reply = {0};

    CHECK_INT(client_ask(fixture,
                         "PUT /stream HTTP/1.1\r\n" HOST
                         "Transfer-Encoding: chunked\r\n\r\n3\r\nabcX",
                         &reply),
              400);
    CHECK(reply.is_closing);
    CHECK_STR(reply.body.data, error_reason_name(ERROR_INVALID));
}

TEST(full_workers_are_429)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    int fds[6];
    autoreply reply = {0};

    for (int i = 0; i < 6; i++) { // two run, four wait
        fds[i] = client_connect(fixture);
        client_say(fds[i], "PUT /stream HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n");
        fixture_wait(&fixture->requests, i + 1);
        while (i < 2 && workers_waiting(fixture->workers, WORKERS_SLOW) > 0)
            ;
    }
    CHECK_INT(
        client_ask(fixture, "PUT /stream HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\n", &reply),
        429);
    for (int i = 0; i < 6; i++) {
        client_say(fds[i], "x");
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 200);
        (void)close(fds[i]);
    }
}

struct gauge {
    struct fixture *fixture;
    struct http_stats stats;
    atomic_int done;
};

static void read_gauge(void *data)
{
    struct gauge *gauge = data;
    http_server_stats(gauge->fixture->server, &gauge->stats);
    atomic_fetch_add(&gauge->done, 1);
}

static struct http_stats stats_of(struct fixture *fixture)
{
    struct gauge gauge = {.fixture = fixture};
    loop_post(fixture->loop, read_gauge, &gauge);
    fixture_wait(&gauge.done, 1);
    return gauge.stats;
}

static void wait_for_bytes(struct fixture *fixture, uint64_t bytes)
{
    uint64_t until = clock_monotonic_ms() + 20000;

    while (stats_of(fixture).gathered_bytes < bytes)
        CHECK(clock_monotonic_ms() < until);
}

TEST(a_body_that_was_announced_takes_no_memory_until_it_comes)
{
    struct http_limits limits = http_limits_default;
    limits.gather_bytes = 1 << 20;
    autoptr(fixture) fixture = fixture_new(&limits);
    static char body[500000];
    autoreply reply = {0};
    int fds[20];

    for (int i = 0; i < 20; i++) {
        fds[i] = client_connect(fixture);
        client_say(fds[i], "POST /echo HTTP/1.1\r\n" HOST
                           "Expect: 100-continue\r\nContent-Length: 500000\r\n\r\n");
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 100);
    }
    CHECK_INT(stats_of(fixture).gathered_bytes, 0);
    for (int i = 0; i < 20; i++) {
        client_send(fds[i], body, sizeof body);
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 200);
        (void)close(fds[i]);
    }
}

TEST(bodies_that_together_take_too_much_memory_are_429_and_small_ones_pass)
{
    struct http_limits limits = http_limits_default;
    limits.gather_bytes = 1 << 20;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd first = client_connect(fixture);
    autofd second = client_connect(fixture);
    autoreply reply = {0};
    static char body[700000];

    client_say(first, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 700000\r\n\r\n");
    client_send(first, body, sizeof body - 1);
    wait_for_bytes(fixture, sizeof body - 1);
    client_say(second, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 300000\r\n\r\n");
    client_send(second, body, 300000);
    client_read(second, &reply, false);
    CHECK_INT(reply.status, 429);
    CHECK_INT(
        client_ask(fixture, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc", &reply),
        200);
    client_send(first, body, 1);
    client_read(first, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK_INT(stats_of(fixture).gathered_bytes, 0);
}

TEST(nothing_of_a_body_is_read_until_it_was_decided_what_to_do_with_it)
{
    struct http_limits limits = http_limits_default;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd good = client_connect(fixture);
    autofd wrong = client_connect(fixture);
    autoreply reply = {0};

    client_say(good, "POST /ask HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nabc");
    fixture_wait(&fixture->asked, 1);
    client_say(good, "def");
    fixture_decide(fixture, HTTP_BODY_GATHER);
    client_read(good, &reply, false);
    CHECK_STR(reply.body.data, "abcdef");
    CHECK(!reply.is_closing);
    client_say(wrong, "POST /ask HTTP/1.1\r\n" HOST "Content-Length: 1000000\r\n\r\nabc");
    fixture_wait(&fixture->asked, 2);
    fixture_decide(fixture, HTTP_BODY_REFUSE);
    client_read(wrong, &reply, false);
    CHECK_INT(reply.status, 401);
    CHECK(reply.is_closing);
    CHECK_INT(stats_of(fixture).gathered_bytes, 0);
}

TEST(a_client_that_leaves_while_it_is_decided_about_costs_nothing)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    struct linger now = {.l_onoff = 1};

    client_say(fd, "POST /ask HTTP/1.1\r\n" HOST "Content-Length: 6\r\n\r\nabc");
    fixture_wait(&fixture->asked, 1);
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
    (void)close(take_fd(fd));
    while (stats_of(fixture).connections > 0)
        ;
    fixture_decide(fixture, HTTP_BODY_GATHER);
    CHECK_INT(stats_of(fixture).gathered_bytes, 0);
}

TEST(a_slow_reader_of_a_hundred_mebibytes_costs_no_memory_and_holds_up_its_producer)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd slow = client_connect(fixture);
    autoreply reply = {0};
    static char piece[64 << 10];
    int small = 64 << 10;
    size_t before = memory_kib();
    size_t got = 0;

    (void)setsockopt(slow, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    client_say(slow, "GET /flood?100 HTTP/1.1\r\n" HOST "\r\n");
    for (int i = 0; i < 20; i++) { // others are served while it does not read
        CHECK_INT(client_ask(fixture, "GET /worker HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
        CHECK(atomic_load(&fixture->produced_mib) < 20);
    }
    while (got < (100u << 20)) {
        ssize_t part = recv(slow, piece, sizeof piece, 0);
        CHECK(part > 0);
        got += (size_t)part;
    }
    CHECK(MEMORY_IS_KEPT || memory_kib() < before + (16 << 10));
    fixture_wait(&fixture->produced_mib, 100);
}

TEST(a_reader_that_stops_reading_is_cut_off)
{
    struct http_limits limits = quick_limits();
    limits.write_ms = 100;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd flood = client_connect(fixture);
    autofd file = client_connect(fixture);

    client_say(flood, "GET /flood?100 HTTP/1.1\r\n" HOST "\r\n");
    client_say(file, "GET /file HTTP/1.1\r\n" HOST "\r\n");
    fixture_wait(&fixture->undelivered, 1);
}

/* It takes something all the time, and holds what it is sent from. */
TEST(a_reader_that_takes_less_than_it_has_to_is_cut_off)
{
    struct http_limits limits = quick_limits();
    limits.write_ms = limits.stranger_ms = 100;
    limits.write_pace = (uint64_t)1 << 40;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd slow = client_connect(fixture);
    static char piece[16 << 10];
    size_t got = 0;
    ssize_t part;

    client_say(slow, "GET /file HTTP/1.1\r\n" HOST "\r\n");
    while ((part = recv(slow, piece, sizeof piece, 0)) > 0) {
        got += (size_t)part;
        (void)poll(NULL, 0, 1);
    }
    CHECK(got < FILE_BYTES);
}

static void need_descriptors(rlim_t count)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    if (limit.rlim_cur >= count)
        return;
    limit.rlim_cur = count < limit.rlim_max ? count : limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur < count)
        SKIP("needs %llu open files", (unsigned long long)count);
}

/* Connections that do nothing cost less than a page each; 700 to 1,000 bytes were measured. */
static void check_cost(size_t before_kib, size_t count, const char *what)
{
    size_t now_kib = memory_kib();
    size_t each = now_kib > before_kib ? (now_kib - before_kib) * 1024 / count : 0;
    printf("# %zu bytes per %s\n", each, what);
    CHECK(MEMORY_IS_KEPT || each < 4096);
}

TEST(two_thousand_idle_connections_cost_little_and_get_in_nobodys_way)
{
    enum { COUNT = 2000 };
    struct http_limits limits = quick_limits();
    autoptr(fixture) fixture = fixture_new(&limits);
    static int fds[COUNT];
    autoreply reply = {0};

    need_descriptors(COUNT * 2 + 100);
    CHECK_INT(client_ask(fixture, "GET /hello HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    size_t before = memory_kib();
    for (int i = 0; i < COUNT; i++) {
        fds[i] = client_connect(fixture);
        client_say(fds[i], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 200);
    }
    check_cost(before, COUNT, "idle connection");
    CHECK(stats_of(fixture).idle >= COUNT);
    CHECK_INT(client_ask(fixture, "GET /worker HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    for (int i = 0; i < COUNT; i++)
        (void)close(fds[i]);
}

TEST(two_thousand_parked_requests_cost_memory_only_and_are_all_answered)
{
    enum { COUNT = 2000 };
    autoptr(fixture) fixture = fixture_new(NULL);
    static int fds[COUNT];
    autoreply reply = {0};

    need_descriptors(COUNT * 2 + 100);
    size_t before = memory_kib();
    for (int i = 0; i < COUNT; i++) {
        fds[i] = client_connect(fixture);
        client_say(fds[i], "GET /park HTTP/1.1\r\n" HOST
                           "Accept: application/json\r\nAuthorization: Bearer "
                           "0123456789012345678901234567890123456789\r\n\r\n");
    }
    fixture_wait(&fixture->parked_count, COUNT);
    check_cost(before, COUNT, "parked request");
    CHECK_INT(client_ask(fixture, "GET /worker HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    fixture_release(fixture, COUNT);
    for (int i = 0; i < COUNT; i++) {
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 200);
        (void)close(fds[i]);
    }
}

TEST(past_the_limit_of_connections_an_idle_one_makes_room)
{
    struct http_limits limits = quick_limits();
    limits.connections = 2;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd idle = client_connect(fixture);
    autofd busy = client_connect(fixture);
    autoreply reply = {0};

    client_say(idle, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(idle, &reply, false);
    client_say(busy, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    fixture_wait(&fixture->parked_count, 1);
    autofd third = client_connect(fixture);
    client_say(third, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    fixture_wait(&fixture->parked_count, 2);
    CHECK(client_is_closed(idle));
    autofd fourth = client_connect(fixture); // waits in the backlog
    client_say(fourth, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    fixture_release(fixture, 2);
    client_read(fourth, &reply, false);
    CHECK_INT(reply.status, 200);
}

TEST(past_the_limit_of_an_address_the_oldest_without_a_key_goes)
{
    struct http_limits limits = quick_limits();
    limits.connections = 16; // this machine's own may have 14 of them
    limits.strangers = 1;
    autoptr(fixture) fixture = fixture_new(&limits);
    autofd known = client_connect(fixture);
    autoreply reply = {0};
    int fds[15];

    client_say(known, "GET /vouch HTTP/1.1\r\n" HOST "\r\n");
    client_read(known, &reply, false);
    for (int i = 0; i < 15; i++) {
        fds[i] = client_connect(fixture);
        client_say(fds[i], "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 200);
    }
    CHECK(client_is_closed(fds[0]));
    CHECK_INT(stats_of(fixture).strangers, 14);
    client_say(known, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(known, &reply, false);
    CHECK_INT(reply.status, 200);
    for (int i = 0; i < 15; i++)
        (void)close(fds[i]);
}

TEST(a_crowd_that_sends_half_a_head_each_does_not_keep_others_out)
{
    enum { COUNT = 64 };
    struct http_limits limits = quick_limits();
    limits.connections = limits.strangers = COUNT;
    limits.head_ms = 60000;
    autoptr(fixture) fixture = fixture_new(&limits);
    autoreply reply = {0};
    int fds[COUNT];

    for (int i = 0; i < COUNT; i++) {
        fds[i] = client_connect(fixture);
        client_say(fds[i], "GET /hello HT");
    }
    CHECK_INT(client_ask(fixture, "GET /worker HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    for (int i = 0; i < COUNT; i++)
        (void)close(fds[i]);
}

/* So that no more descriptor can be had than those that are closed. */
static struct rlimit use_up_descriptors(void)
{
    struct rlimit before;
    int lowest = dup(STDERR_FILENO);

    CHECK(lowest >= 0 && close(lowest) == 0 && getrlimit(RLIMIT_NOFILE, &before) == 0);
    struct rlimit none = {.rlim_cur = (rlim_t)lowest, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    return before;
}

TEST(without_descriptors_an_idle_connection_makes_room)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd idle = client_connect(fixture);
    autofd second = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    autoreply reply = {0};

    client_say(idle, "GET /hello HTTP/1.1\r\n" HOST "\r\n"); // accepted before the limit falls
    client_read(idle, &reply, false);
    struct rlimit before = use_up_descriptors();
    client_dial(fixture, second);
    client_say(second, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(second, &reply, false);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK_INT(reply.status, 200);
    CHECK(client_is_closed(idle));
}

TEST(without_descriptors_there_are_some_left_to_accept_with_and_then_it_waits_and_goes_on)
{
    enum { COUNT = 12 }; // more than are kept for it
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd busy = client_connect(fixture);
    autoreply reply = {0};
    int fds[COUNT];

    for (int i = 0; i < COUNT; i++)
        fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    client_say(busy, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    fixture_wait(&fixture->parked_count, 1);
    struct rlimit before = use_up_descriptors();
    for (int i = 0; i < COUNT; i++) {
        client_dial(fixture, fds[i]);
        client_say(fds[i], "GET /park HTTP/1.1\r\n" HOST "\r\n");
    }
    fixture_wait(&fixture->parked_count, 1 + 4);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    fixture_release(fixture, 1 + COUNT);
    for (int i = 0; i < COUNT; i++) {
        client_read(fds[i], &reply, false);
        CHECK_INT(reply.status, 200);
        (void)close(fds[i]);
    }
}
