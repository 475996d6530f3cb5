/* SPDX-License-Identifier: Apache-2.0 */
#include "web/router.h"

#include "base/mem.h"
#include "test.h"
#include "unit/web/front_fixture.h"

static const struct front_options open_options = {.is_open = true};
static const struct front_options closed_options = {0};

static void check(struct front_fixture *fixture, const char *what, const char *body, int status,
                  const char *want)
{
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, what, NULL, body, &answer), status);
    CHECK_STR(answer.body.data, want);
}

TEST(handlers_run_where_their_lane_says)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET /loop", NULL, 200, "{\"text\":\"loop\"}");
    check(fixture, "GET /quick", NULL, 200, "{\"text\":\"worker\"}");
    check(fixture, "GET /slow", NULL, 200, "{\"text\":\"worker\"}");
    check(fixture, "GET /elsewhere", NULL, 200, "{\"text\":\"worker\"}");
}

TEST(path_parameters_are_decoded)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET //things/a%20b/of/c%2Fd", NULL, 200, "{\"text\":\"a b|c/d\"}");
    check(
        fixture, "GET /things/a%00/of/b", NULL, 400,
        "{\"kind\":\"invalid\",\"reason\":null,\"route\":null,\"error\":\"the path holds a NUL\"}");
}

TEST(an_id_with_another_spelling_is_not_found)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET /known/thing_0123456789abcdefghjkmnpqrs", NULL, 200,
          "{\"text\":\"0123456789abcdefghjkmnpqrs\"}");
    check(fixture, "GET /known/thing_x", NULL, 404,
          "{\"kind\":\"not found\",\"reason\":null,\"route\":\"/known/{id}\",\"error\":\"thing "
          "'thing_x' not found\"}");
    check(fixture, "GET /known/0123456789abcdefghjkmnpqrs", NULL, 404,
          "{\"kind\":\"not found\",\"reason\":null,\"route\":\"/known/{id}\","
          "\"error\":\"thing '0123456789abcdefghjkmnpqrs' not found\"}");
}

TEST(unknown_paths_get_the_first_fronts_words)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET /nothing", NULL, 404,
          "{\"kind\":\"not found\",\"reason\":null,\"route\":null,\"error\":\"there is nothing at "
          "'/nothing'\"}");
    check(fixture, "GET /quick/", NULL, 404,
          "{\"kind\":\"not found\",\"reason\":null,\"route\":null,\"error\":\"there is nothing at "
          "'/quick/'\"}");
}

TEST(a_known_path_says_which_methods_it_takes)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "POST /known/x", NULL, "{}", &answer), 405);
    CHECK(strstr(answer.head, "\r\nAllow: GET, HEAD, DELETE\r\n"));
    CHECK(strstr(answer.body.data, "'/known/x' takes GET, HEAD, DELETE, not POST"));
    CHECK_INT(ask(fixture, "DELETE /health", "X-Request-Id: mine\r\n", NULL, &answer), 405);
    CHECK_STR(
        answer.body.data,
        "{\"success\":false,\"code\":\"METHOD_NOT_ALLOWED\",\"message\":\"'/health' takes GET, "
        "HEAD, not DELETE\","
        "\"requestId\":\"mine\"}");
}

TEST(a_head_is_a_get_without_its_body)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autofd fd = client_connect(fixture);
    autoanswer answer = {0};

    client_say(fd, "HEAD /loop HTTP/1.1\r\nHost: a\r\n\r\nGET /quick HTTP/1.1\r\nHost: a\r\n\r\n");
    client_read_head(fd, &answer);
    CHECK_INT(answer.status, 200);
    CHECK(strstr(answer.head, "Content-Length: 15\r\n"));
    client_read(fd, &answer); // the next one follows at once
    CHECK_STR(answer.body.data, "{\"text\":\"worker\"}");
}

TEST(bodies_are_read_by_workers_and_faults_are_told)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "POST /name", "{\"name\":\"x\",\"files\":[{\"content\":\"AAAA\"}]}", 200,
          "{\"text\":\"x 3\"}");
    check(fixture, "POST /name", "{\"name\":7,\"files\":[{\"content\":\"A\"}]}", 400,
          "{\"kind\":\"invalid\",\"reason\":null,\"route\":\"/name\",\"error\":\"name: must be a "
          "string, not a number; "
          "files[0].content: is not base64: its length or its padding is wrong\"}");
    check(fixture, "POST /name", "", 400,
          "{\"kind\":\"invalid\",\"reason\":null,\"route\":\"/name\",\"error\":\"name: is "
          "missing\"}");
    check(fixture, "POST /name", "[1]", 400,
          "{\"kind\":\"invalid\",\"reason\":null,\"route\":\"/name\",\"error\":\"the body must be "
          "a JSON object\"}");
    check(fixture, "POST /name", "{\"name\":", 400,
          "{\"kind\":\"invalid\",\"reason\":null,\"route\":\"/name\","
          "\"error\":\"the body is not JSON: line 1, column 9: the text ends where a value should "
          "be\"}");
}

TEST(a_large_body_does_not_take_the_quick_lane)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autofd fd = client_connect(fixture);
    autofree char *content = xcalloc(1, (2 << 20) + 1);
    autoanswer answer = {0};

    client_say(fd, "GET /block HTTP/1.1\r\nHost: a\r\n\r\n"); // takes the only slow worker
    fixture_wait(&fixture->blocked, 1);
    memset(content, 'A', 2 << 20);
    autofree char *body = xasprintf("{\"name\":\"x\",\"files\":[{\"content\":\"%s\"}]}", content);
    autofree char *head =
        xasprintf("POST /name HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", strlen(body));
    autofd large = client_connect(fixture);
    client_say(large, head);
    client_say(large, body);
    while (router_running(fixture->router) < 2)
        (void)sched_yield();
    check(fixture, "POST /name", "{\"name\":\"x\"}", 200, "{\"text\":\"x 0\"}");
    CHECK_INT(atomic_load(&fixture->handled), 1); // and not the large one, which came first
    (void)sem_post(&fixture->unblock);
    client_read(fd, &answer);
    client_read(large, &answer);
    CHECK_STR(answer.body.data, "{\"text\":\"x 1572864\"}");
}

TEST(queries_are_checked_before_the_handler)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET /list?limit=7&colour=red&x=%20", NULL, 200, "{\"text\":\"7 red\"}");
    check(fixture, "GET /list", NULL, 200, "{\"text\":\"50 none\"}");
    check(fixture, "GET /list?limit=many", NULL, 400,
          "{\"kind\":\"invalid\",\"reason\":null,\"route\":\"/list\","
          "\"error\":\"limit: must be a whole number, not 'many'\"}");
    check(fixture, "GET /list?x=%zz", NULL, 400,
          "{\"kind\":\"invalid\",\"reason\":null,\"route\":\"/list\","
          "\"error\":\"the query has a '%' that is not followed by two hexadecimal digits\"}");
}

TEST(streams_are_read_as_they_come)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autofd fd = client_connect(fixture);
    autoanswer answer = {0};

    client_say(
        fd, "PUT /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n");
    fixture_wait(&fixture->bytes, 5); // before the end is there
    client_say(fd, "6\r\n world\r\n0\r\n\r\n");
    client_read(fd, &answer);
    CHECK_INT(answer.status, 200);
    CHECK_STR(answer.body.data, "{\"text\":\"11\"}");
    client_say(fd, "PUT /upload HTTP/1.1\r\nHost: a\r\n\r\n"); // none at all is an empty one
    client_read(fd, &answer);
    CHECK_STR(answer.body.data, "{\"text\":\"11\"}");
}

TEST(a_body_beyond_the_rows_limit_is_413)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autofd fd = client_connect(fixture);
    autofd other = client_connect(fixture);
    autofd third = client_connect(fixture);
    autoanswer answer = {0};

    client_say(fd, "PUT /small HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n");
    client_read(fd, &answer);
    CHECK_INT(answer.status, 413);
    CHECK(strstr(answer.body.data, "\"reason\":\"too large\""));
    client_say(other, "POST /none HTTP/1.1\r\nHost: a\r\nContent-Length: 1048577\r\n\r\n");
    client_read(other, &answer);
    CHECK_INT(answer.status, 413);
    client_say(third, "POST /name HTTP/1.1\r\nHost: a\r\nContent-Length: 67108865\r\n\r\n");
    client_read(third, &answer);
    CHECK_INT(answer.status, 413);
}

TEST(who_is_refused_for_its_head_does_not_send_its_body)
{
    static const char *const heads[] = {
        "POST /name HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n",
        "POST /name HTTP/1.1\r\nHost: a\r\nAuthorization: Basic eA==\r\nContent-Length: "
        "60000000\r\n\r\n",
        "POST /name HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer \r\nContent-Length: "
        "60000000\r\n\r\n",
        "PUT /upload HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n",
        "PATCH /name HTTP/1.1\r\nHost: a\r\nContent-Length: 60000000\r\n\r\n",
    };
    static const int statuses[] = {401, 401, 401, 401, 404, 405};
    autoptr(front_fixture) fixture = front_fixture_new(&closed_options);

    for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
        autofd fd = client_connect(fixture);
        autoanswer answer = {0};
        client_say(fd, heads[i]);
        client_read(fd, &answer);
        CHECK_INT(answer.status, statuses[i]);
        if (statuses[i] == 401)
            CHECK(strstr(answer.head, "\r\nWWW-Authenticate: Bearer\r\n"));
    }
    CHECK_INT(atomic_load(&fixture->handled), 0);
}

TEST(a_refused_request_without_a_body_leaves_its_connection_open)
{
    autoptr(front_fixture) fixture = front_fixture_new(&closed_options);
    autofd fd = client_connect(fixture);
    autoanswer answer = {0};

    client_say(fd, "GET /whoami HTTP/1.1\r\nHost: a\r\n\r\n");
    client_read(fd, &answer);
    CHECK_INT(answer.status, 401);
    CHECK(!answer.is_closing);
    client_say(fd, "POST /name HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}");
    client_read(fd, &answer);
    CHECK_INT(answer.status, 401);
    client_say(fd, "GET /loop HTTP/1.1\r\nHost: a\r\n\r\n");
    client_read(fd, &answer);
    CHECK_INT(answer.status, 200);
}

TEST(what_is_no_request_gets_the_first_fronts_words_too)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    static const struct {
        const char *text;
        int status;
        const char *reason;
    } cases[] = {
        {"NONSENSE\r\n\r\n", 400, "null"},
        {"GET / HTTP/1.1\r\nHost: a\r\nExpect: cake\r\n\r\n", 417, "\"expectation\""},
        {"GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505, "\"version\""},
        {"GET / HTTP/1.1\r\nHost: a\r\nX", 408, "\"slow\""},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        autofd fd = client_connect(fixture);
        autoanswer answer = {0};
        autofree char *want = xasprintf("\"reason\":%s,\"route\":null,", cases[i].reason);
        client_say(fd, cases[i].text);
        client_read(fd, &answer);
        CHECK_INT(answer.status, cases[i].status);
        CHECK(answer.is_closing && strstr(answer.body.data, want));
    }
}

TEST(full_workers_are_429_and_the_rest_goes_on)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autofd running = client_connect(fixture);
    autofd waiting = client_connect(fixture);
    autofd late = client_connect(fixture);
    autoanswer answer = {0};

    client_say(running, "GET /block HTTP/1.1\r\nHost: a\r\n\r\n");
    fixture_wait(&fixture->blocked, 1);
    client_say(waiting, "GET /block HTTP/1.1\r\nHost: a\r\n\r\n");
    while (router_running(fixture->router) < 2)
        (void)sched_yield();
    client_say(late, "GET /block HTTP/1.1\r\nHost: a\r\n\r\n");
    client_read(late, &answer);
    CHECK_INT(answer.status, 429);
    CHECK(strstr(answer.body.data, "\"kind\":\"limit\",\"reason\":\"full\""));
    check(fixture, "GET /quick", NULL, 200, "{\"text\":\"worker\"}");
    (void)sem_post(&fixture->unblock);
    (void)sem_post(&fixture->unblock);
    client_read(running, &answer);
    CHECK_INT(answer.status, 200);
    client_read(waiting, &answer);
    CHECK_INT(answer.status, 200);
}

TEST(a_draining_router_says_that_it_restarts)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autofd fd = client_connect(fixture);
    autoanswer answer = {0};

    client_say(fd, "GET /block HTTP/1.1\r\nHost: a\r\n\r\n");
    fixture_wait(&fixture->blocked, 1);
    CHECK_INT(router_running(fixture->router), 1);
    router_drain(fixture->router);
    CHECK_INT(ask(fixture, "GET /loop", NULL, NULL, &answer), 503);
    CHECK(answer.is_closing);
    CHECK(strstr(answer.body.data, "\"kind\":\"unavailable\",\"reason\":\"restarting\""));
    (void)sem_post(&fixture->unblock); // what was under way is finished
    client_read(fd, &answer);
    CHECK_INT(answer.status, 200);
}

TEST(a_call_may_be_answered_after_its_handler)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET /park", NULL, 200, "later");
    CHECK_INT(atomic_load(&fixture->parked), 1);
}

TEST(failures_and_forgotten_answers_are_500)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);

    check(fixture, "GET /fail", NULL, 500,
          "{\"kind\":\"system\",\"reason\":null,\"route\":\"/fail\",\"error\":\"the disk is on "
          "fire\"}");
    check(fixture, "GET /forget", NULL, 500,
          "{\"kind\":\"system\",\"reason\":null,\"route\":null,\"error\":\"no answer was given\"}");
}

TEST(the_url_is_how_the_client_came_unless_it_is_configured)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autoptr(front_fixture) known = front_fixture_new(
        &(struct front_options){.is_open = true, .public_url = "https://burrow.example/x//"});

    check(fixture, "GET /url", NULL, 200, "{\"text\":\"http://test:1\"}");
    check(known, "GET /url", NULL, 200, "{\"text\":\"https://burrow.example/x\"}");
}

static void ask_once(struct front_fixture *fixture, const char *what, const char *key,
                     const char *body, char text[128])
{
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, what, key, body, &answer), 200);
    (void)snprintf(text, 128, "%s", answer.body.data);
}

TEST(an_idempotency_key_comes_with_a_hash_of_what_was_asked)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    autoanswer answer = {0};
    char first[128], again[128], other[128], query[128], none[128],
        longer[400] = "Idempotency-Key: ";

    ask_once(fixture, "POST /once", "idempotency-key: k\r\n", "{\"a\":1}", first);
    ask_once(fixture, "POST /once", "idempotency-key: k\r\n", "{\"a\":1}", again);
    ask_once(fixture, "POST /once", "idempotency-key: k\r\n", "{\"a\":2}", other);
    ask_once(fixture, "POST /once?x", "idempotency-key: k\r\n", "{\"a\":1}", query);
    ask_once(fixture, "POST /once", NULL, "{\"a\":1}", none);
    CHECK(strncmp(first, "{\"text\":\"test POST /once|k|", 27) == 0);
    CHECK_STR(first, again);
    CHECK(strcmp(first, other) != 0 && strcmp(first, query) != 0);
    CHECK_STR(none, "{\"text\":\"none\"}");
    memset(longer + 17, 'x', 256);
    (void)strcat(longer, "\r\n");
    CHECK_INT(ask(fixture, "POST /once", longer, "{}", &answer), 400);
}

TEST(the_server_tells_about_itself)
{
    autoptr(front_fixture) fixture = front_fixture_new(&closed_options);

    check(fixture, "GET /health", NULL, 200,
          "{\"status\":\"ok\",\"version\":\"" BURROW_VERSION "\"}");
    check(fixture, "GET /version", NULL, 200, "{\"version\":\"" BURROW_VERSION "\"}");
}

TEST(two_fronts_with_one_route_make_no_router)
{
    static const struct route routes[] = {{"GET", "/a"}, {0}};
    static const struct front one = {.name = "one", .routes = routes},
                              two = {.name = "two", .routes = routes};
    static const struct front *const fronts[] = {&one, &two, NULL};
    struct router *router = NULL;
    struct error err = {0};

    CHECK(router_new(&(struct router_settings){.fronts = fronts}, &router, &err) < 0);
    CHECK_STR(err.text, "routes 'GET /a' of 'two' and '/a' of 'one' are one");
}
