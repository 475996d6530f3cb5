/* SPDX-License-Identifier: Apache-2.0 */
/* Tests src/web/access.c and src/web/request_id.c, over a router. */
#include "web/access.h"

#include "base/log.h"
#include "test.h"
#include "unit/web/front_fixture.h"

#include <fcntl.h>
#include <poll.h>
#include <string.h>

static const struct front_options open_options = {.is_open = true};
static const struct front_options closed_options = {0};

static char line[4096];

/* The reading end of what is logged from now on. */
static int log_to_pipe(enum log_level level)
{
    int ends[2];

    CHECK(pipe2(ends, O_CLOEXEC) == 0);
    log_configure(level, LOG_FORMAT_JSON, ends[1]);
    return ends[0];
}

/* The next line that was logged. */
static const char *next_line(int fd)
{
    size_t used = 0;

    while (used < sizeof line - 1 && read(fd, &line[used], 1) == 1 && line[used] != '\n')
        used++;
    line[used] = '\0';
    return line;
}

static bool is_logged(int fd, const char *const *words)
{
    const char *text = next_line(fd);

    for (; *words; words++) {
        if (!strstr(text, *words)) {
            printf("# '%s' is not in %s\n", *words, text);
            return false;
        }
    }
    return true;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void stop_logging(int fd)
{
    log_configure(LOG_LEVEL_WARN, LOG_FORMAT_TEXT, STDERR_FILENO);
    (void)close(fd);
}

static void check_id(const char *head, const char *want)
{
    char text[300];

    (void)snprintf(text, sizeof text, "\r\nX-Request-Id: %s\r\n", want);
    CHECK(strstr(head, text));
}

TEST(each_request_is_one_line_with_its_facts_and_without_its_path)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    int log = log_to_pipe(LOG_LEVEL_INFO);
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "DELETE /known/private?token=hidden",
                  "X-Request-Id: mine-7\r\nX-Api-Key: "
                  "brw_0123456789abcdefghjkmnpqrs0123456789abcdefghjkmnpqrs\r\n",
                  NULL, &answer),
              404);
    CHECK(
        is_logged(log, WORDS("\"level\":\"info\",\"message\":\"request\"", "\"method\":\"DELETE\"",
                             "\"status\":404", "\"route\":\"/known/{other}\"",
                             "\"key\":\"brw_01234567\"", "\"bytes\":95", "\"whole\":true",
                             "\"us\":", "\"peer\":\"127.0.0.1:", "\"request\":\"mine-7\"")));
    CHECK(!strstr(line, "private") && !strstr(line, "hidden") && !strstr(line, "brw_012345678"));
    stop_logging(log);
}

TEST(the_sandbox_in_the_path_is_told_as_its_clients_know_it)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    int log = log_to_pipe(LOG_LEVEL_INFO);
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "GET /known/thing_0123456789abcdefghjkmnpqrs", NULL, NULL, &answer),
              200);
    CHECK(is_logged(log, WORDS("\"sandbox\":\"thing_0123456789abcdefghjkmnpqrs\"")));
    CHECK_INT(ask(fixture, "GET /known/thing_x", NULL, NULL, &answer), 404);
    CHECK(is_logged(log, WORDS("\"status\":404", "\"sandbox\":null")));
    stop_logging(log);
}

TEST(refused_and_malformed_requests_are_told_too)
{
    autoptr(front_fixture) fixture = front_fixture_new(&closed_options);
    int log = log_to_pipe(LOG_LEVEL_INFO);
    autofd fd = -1;
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "GET /whoami", NULL, NULL, &answer), 401);
    CHECK(is_logged(log, WORDS("\"status\":401", "\"route\":\"/whoami\"", "\"key\":null")));
    CHECK_INT(ask(fixture, "GET /nothing/secret", NULL, NULL, &answer), 404);
    CHECK(is_logged(log, WORDS("\"status\":404", "\"route\":null")));
    CHECK(!strstr(line, "secret"));
    fd = client_connect(fixture);
    client_say(fd, "GET /quick HTTP/1.1\r\nbroken\r\n\r\n");
    client_read(fd, &answer);
    CHECK_INT(answer.status, 400);
    CHECK(strstr(answer.head, "\r\nX-Request-Id: "));
    CHECK(is_logged(log, WORDS("\"method\":null", "\"status\":400", "\"peer\":null")));
    stop_logging(log);
}

TEST(a_failure_of_the_server_is_told_with_the_requests_id)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    int log = log_to_pipe(LOG_LEVEL_WARN);
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "GET /fail", "X-Request-Id: mine-8\r\n", NULL, &answer), 500);
    CHECK(is_logged(log, WORDS("\"level\":\"error\",\"message\":\"request failed\"",
                               "\"error\":\"the disk is on fire\"", "\"request\":\"mine-8\"")));
    stop_logging(log);
}

TEST(at_warn_nothing_is_said_of_requests)
{
    autoptr(front_fixture) fixture = front_fixture_new(&open_options);
    int log = log_to_pipe(LOG_LEVEL_WARN);
    struct pollfd ready = {.fd = log, .events = POLLIN};
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "GET /loop", NULL, NULL, &answer), 200);
    CHECK_INT(ask(fixture, "GET /nothing", NULL, NULL, &answer), 404);
    CHECK_INT(poll(&ready, 1, 0), 0);
    stop_logging(log);
}

TEST(an_answer_says_what_its_request_is_called)
{
    autoptr(front_fixture) fixture = front_fixture_new(&closed_options);
    autoanswer answer = {0};

    CHECK_INT(ask(fixture, "GET /version", "X-Request-Id:  a b/c=7 \r\n", NULL, &answer), 200);
    check_id(answer.head, "a b/c=7");
    CHECK_INT(ask(fixture, "DELETE /version", "X-Request-Id: x\r\n", NULL, &answer), 405);
    check_id(answer.head, "x");
    CHECK(strstr(answer.head, "\r\nAllow: GET, HEAD\r\n"));
    CHECK(strstr(answer.body.data, "\"requestId\":\"x\""));
    CHECK_INT(ask(fixture, "GET /whoami", "X-Request-Id: y\r\n", NULL, &answer), 401);
    check_id(answer.head, "y");
    CHECK(strstr(answer.head, "\r\nWWW-Authenticate: Bearer\r\n"));
}

static void read_id(struct request_ids *ids, const char *sent, char out[REQUEST_ID_TEXT])
{
    struct http_header header = {"x-request-ID", sent};
    struct http_request request = {.headers = &header, .header_count = sent ? 1 : 0};

    request_id_read(ids, &request, out);
}

TEST(an_id_that_is_no_short_printable_text_is_replaced_by_a_uuid)
{
    static const char *const bad[] = {NULL, "", "  ", "a\x01z", "\xc3\xa4", "a\tb"};
    struct request_ids ids;
    char id[REQUEST_ID_TEXT], before[REQUEST_ID_TEXT] = "", longer[200];

    request_ids_init(&ids);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        read_id(&ids, bad[i], id);
        CHECK_INT(strlen(id), 36);
        CHECK_INT(strspn(id, "0123456789abcdef-"), 36);
        CHECK(id[8] == '-' && id[13] == '-' && id[14] == '4' && strchr("89ab", id[19]));
        CHECK(strcmp(id, before) != 0);
        memcpy(before, id, sizeof before);
    }
    memset(longer, 'x', sizeof longer);
    longer[128] = '\0';
    read_id(&ids, longer, id);
    CHECK_INT(strlen(id), 36);
    longer[127] = '\0';
    read_id(&ids, longer, id);
    CHECK_STR(id, longer);
}
