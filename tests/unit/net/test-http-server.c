/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that are as they should be, and answers of every kind. */
#include "unit/net/net_fixture.h"

#include "base/mem.h"
#include "test.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define HOST "Host: x\r\n"

TEST(a_request_is_answered_on_the_loop_and_by_a_worker_and_the_connection_stays)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    for (int i = 0; i < 10; i++) {
        client_say(fd, i % 2 ? "GET /worker HTTP/1.1\r\n" HOST "\r\n"
                             : "GET /hello HTTP/1.1\r\n" HOST "\r\n");
        client_read(fd, &reply, false);
        CHECK_INT(reply.status, 200);
        CHECK_STR(reply.body.data, "hello\n");
        CHECK(strstr(reply.head, "Connection: keep-alive\r\nKeep-Alive: timeout=5\r\n"));
        CHECK(strstr(reply.head, "\r\nDate: "));
        CHECK(strstr(reply.head, "\r\nContent-Type: text/plain\r\n"));
    }
    fixture_wait(&fixture->delivered, 5);
    CHECK_INT(atomic_load(&fixture->undelivered), 0);
}

TEST(pipelined_requests_are_answered_in_order)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};
    autobuffer all = {0};
    struct error err;

    for (int i = 0; i < 200; i++)
        (void)buffer_addf(&all, &err,
                          "POST /echo HTTP/1.1\r\n" HOST
                          "Content-Length: 4\r\n\r\n%04dGET /worker HTTP/1.1\r\n" HOST "\r\n",
                          i);
    client_send(fd, all.data, all.length);
    for (int i = 0; i < 200; i++) {
        client_read(fd, &reply, false);
        CHECK_INT(reply.status, 200);
        CHECK_INT(atoi(reply.body.data), i);
        client_read(fd, &reply, false);
        CHECK_STR(reply.body.data, "hello\n");
    }
}

TEST(bodies_come_with_a_length_or_in_chunks)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autoreply reply = {0};

    CHECK_INT(client_ask(fixture,
                         "POST /echo HTTP/1.1\r\n" HOST
                         "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
                         &reply),
              200);
    CHECK_STR(reply.body.data, "abcde");
    CHECK_INT(
        client_ask(fixture, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", &reply),
        200);
    CHECK_INT(reply.body.length, 0);
}

TEST(expect_continue_is_told_to_go_on_and_a_refusal_comes_instead)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    client_say(fd,
               "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 100);
    client_say(fd, "abc");
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK_STR(reply.body.data, "abc");
    client_say(fd, "POST /refuse HTTP/1.1\r\n" HOST
                   "Content-Length: 3\r\nExpect: 100-continue\r\n\r\n");
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 401);
    CHECK_STR(reply.body.data, "who are you");
}

TEST(HEAD_gets_the_head_only_and_the_connection_goes_on)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    client_say(fd, "HEAD /hello HTTP/1.1\r\n" HOST "\r\nHEAD /flood?1 HTTP/1.1\r\n" HOST
                   "\r\nHEAD /file HTTP/1.1\r\n" HOST "\r\n"
                   "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(fd, &reply, true);
    CHECK(strstr(reply.head, "Content-Length: 6\r\n"));
    client_read(fd, &reply, true);
    CHECK(reply.is_chunked);
    client_read(fd, &reply, true);
    CHECK(strstr(reply.head, "Content-Length: 33554432\r\n"));
    client_read(fd, &reply, false);
    CHECK_STR(reply.body.data, "hello\n");
}

TEST(HTTP_1_0_gets_no_chunks_and_is_closed_unless_it_asks)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    client_say(fd, "GET /hello HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    client_read(fd, &reply, false);
    CHECK(!reply.is_closing);
    client_say(fd, "GET /flood?2 HTTP/1.0\r\n\r\n");
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK(reply.is_closing && !reply.is_chunked);
    CHECK_INT(reply.body.length, 2 << 20);
    CHECK(client_is_closed(fd));
}

TEST(Connection_close_is_heeded)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};

    client_say(fd, "GET /hello HTTP/1.1\r\n" HOST
                   "Connection: close\r\n\r\nGET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(fd, &reply, false);
    CHECK(reply.is_closing);
    CHECK(client_is_closed(fd));
    CHECK_INT(atomic_load(&fixture->requests), 1);
}

TEST(a_file_is_sent_whole)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autoreply reply = {0};

    CHECK_INT(client_ask(fixture, "GET /file HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    CHECK_INT(reply.body.length, FILE_BYTES);
    CHECK(memcmp(reply.body.data, fixture->file, FILE_BYTES) == 0);
}

TEST(parts_of_a_file_and_bytes_are_sent_in_chunks_in_their_order)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autoreply reply = {0};

    CHECK_INT(client_ask(fixture, "GET /follow HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    CHECK(reply.is_chunked);
    CHECK_INT(reply.body.length, RESPONSE_RANGES * 1000001);
    for (size_t i = 0; i < RESPONSE_RANGES; i++) {
        const char *part = reply.body.data + i * 1000001;
        CHECK(memcmp(part, fixture->file + i * 1000000, 1000000) == 0 && part[1000000] == '|');
    }
}

TEST(a_streamed_body_reaches_a_worker_whole_and_is_not_held_in_memory)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};
    static char piece[1 << 20];
    size_t before = memory_kib();

    client_say(fd, "PUT /stream HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n");
    for (int i = 0; i < 100; i++) {
        client_say(fd, "100000\r\n");
        client_send(fd, piece, sizeof piece);
        client_say(fd, "\r\n");
    }
    client_say(fd, "0\r\n\r\n");
    client_read(fd, &reply, false);
    CHECK_STR(reply.body.data, "104857600");
    CHECK(!reply.is_closing);
    CHECK(MEMORY_IS_KEPT || memory_kib() < before + (16 << 10));
}

TEST(a_parked_response_is_answered_by_whoever_comes_first)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd early = client_connect(fixture);
    autofd late = client_connect(fixture);
    autoreply reply = {0};

    client_say(early, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    client_say(late, "GET /park?30 HTTP/1.1\r\n" HOST "\r\n");
    client_read(late, &reply, false);
    CHECK_STR(reply.body.data, "deadline");
    fixture_release(fixture, 2); // the second time for one of them, without effect
    client_read(early, &reply, false);
    CHECK_STR(reply.body.data, "hello\n");
    fixture_wait(&fixture->delivered, 2);
    client_say(late, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(late, &reply, false);
    CHECK_STR(reply.body.data, "hello\n");
}

TEST(an_answer_before_the_end_of_its_body_arrives_and_closes)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd fd = client_connect(fixture);
    autoreply reply = {0};
    static char piece[1 << 20];

    client_say(fd, "PUT /early HTTP/1.1\r\n" HOST "Content-Length: 10000000\r\n\r\n");
    client_send(fd, piece, sizeof piece);
    client_read(fd, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK(reply.is_closing);
    CHECK_STR(reply.body.data, "early");
    client_send(fd, piece, sizeof piece);
    CHECK(client_is_closed(fd));
}

TEST(a_request_without_an_answer_gets_a_500_and_half_an_answer_is_cut)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autoreply reply = {0};

    CHECK_INT(client_ask(fixture, "GET /drop HTTP/1.1\r\n" HOST "\r\n", &reply), 500);
    CHECK_INT(client_ask(fixture, "GET /half HTTP/1.1\r\n" HOST "\r\n", &reply), -1);
    CHECK_STR(reply.body.data, "only this");
}

TEST(a_header_cannot_smuggle_in_another)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autoreply reply = {0};

    CHECK_INT(client_ask(fixture, "GET /inject HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    CHECK(!strstr(reply.head, "\nX-Evil"));
}

struct drain {
    struct fixture *fixture;
    int client;
    atomic_int done;
};

static void on_drained(void *data)
{
    atomic_store(&((struct drain *)data)->done, 1);
}

static void start_drain(void *data)
{
    struct drain *drain = data;
    http_server_drain(drain->fixture->server, 10000, on_drained, drain);
}

TEST(draining_lets_answers_out_and_answers_whoever_asks_meanwhile)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd idle = client_connect(fixture);
    autofd busy = client_connect(fixture);
    autoreply reply = {0};
    struct drain drain = {.fixture = fixture};

    client_say(busy, "GET /park HTTP/1.1\r\n" HOST "\r\n");
    fixture_wait(&fixture->parked_count, 1);
    loop_post(fixture->loop, start_drain, &drain);
    CHECK_INT(client_ask(fixture, "GET /hello HTTP/1.1\r\n" HOST "\r\n", &reply), 200);
    CHECK(reply.is_closing);
    client_say(idle, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(idle, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK(reply.is_closing && client_is_closed(idle));
    CHECK_INT(atomic_load(&drain.done), 0);
    fixture_release(fixture, 1);
    client_read(busy, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK(reply.is_closing);
    CHECK(client_is_closed(busy));
    fixture_wait(&drain.done, 1);
}

/* Whoever asks at the very moment is answered too: the loop sees the end first. */
static void drain_after_a_request(void *data)
{
    struct drain *drain = data;

    client_say(drain->client, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    start_drain(drain);
}

TEST(a_request_that_meets_the_end_is_answered)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    autofd kept = client_connect(fixture);
    autoreply reply = {0};
    struct drain drain = {.fixture = fixture, .client = kept};

    client_say(kept, "GET /hello HTTP/1.1\r\n" HOST "\r\n");
    client_read(kept, &reply, false);
    loop_post(fixture->loop, drain_after_a_request, &drain);
    client_read(kept, &reply, false);
    CHECK_INT(reply.status, 200);
    CHECK(reply.is_closing);
    fixture_wait(&drain.done, 1);
}

struct opening {
    struct fixture *fixture;
    const char *path;
    struct error err;
    int status;
    atomic_int done;
};

static void open_local(void *data)
{
    struct opening *opening = data;
    opening->status =
        http_server_listen_unix(opening->fixture->server, opening->path, 0600, &opening->err);
    atomic_fetch_add(&opening->done, 1);
}

TEST(a_unix_socket_is_private_and_takes_the_place_of_a_dead_one_only)
{
    autoptr(fixture) fixture = fixture_new(NULL);
    char dir[] = "/tmp/burrow-net-XXXXXX";
    CHECK(mkdtemp(dir));
    autofree char *path = xasprintf("%s/s", dir);
    struct opening opening = {.fixture = fixture, .path = path};
    struct sockaddr_un where = {.sun_family = AF_UNIX};
    struct stat info;
    autoreply reply = {0};

    (void)snprintf(where.sun_path, sizeof where.sun_path, "%s", path);
    autofd dead = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(dead, (struct sockaddr *)&where, sizeof where) == 0);
    loop_post(fixture->loop, open_local, &opening);
    fixture_wait(&opening.done, 1);
    CHECK_OK(opening.status, opening.err);
    CHECK(stat(path, &info) == 0 && (info.st_mode & 07777) == 0600);

    autofd fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(connect(fd, (struct sockaddr *)&where, sizeof where) == 0);
    client_say(fd, "GET /worker HTTP/1.1\r\n" HOST "\r\nGET /file HTTP/1.1\r\n" HOST "\r\n");
    client_read(fd, &reply, false);
    CHECK_STR(reply.body.data, "hello\n");
    client_read(fd, &reply, false);
    CHECK(reply.body.length == FILE_BYTES &&
          memcmp(reply.body.data, fixture->file, FILE_BYTES) == 0);

    loop_post(fixture->loop, open_local, &opening);
    fixture_wait(&opening.done, 2);
    CHECK(opening.status < 0);
    CHECK_INT(error_kind(&opening.err), ERROR_CONFLICT);
    fixture_free(take(fixture));
    CHECK(stat(path, &info) < 0);
    (void)rmdir(dir);
}
