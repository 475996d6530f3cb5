/* SPDX-License-Identifier: Apache-2.0 */
/* The test front's handlers, its server, and clients. */
#include "unit/web/front_fixture.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/execution/execution.h"
#include "front/ops/ops.h"
#include "web/reply.h"
#include "net/body.h"
#include "test.h"
#include "web/upgrade.h"

#include <signal.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- the front ---- */

static void put(struct reply *reply, const char *key, const char *text)
{
    json_key(&reply->json, key);
    json_string(&reply->json, text);
}

static int answer_text(struct call *call, const char *text)
{
    autoreply reply;

    reply_init(&reply);
    json_map_begin(&reply.json);
    put(&reply, "text", text);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, 200);
    atomic_fetch_add(&((struct front_fixture *)call->settings)->handled, 1);
    return 0;
}

static int where(struct call *call, struct error *err)
{
    return answer_text(call, loop_is_here(call_loop(call)) ? "loop" : "worker");
}

static int elsewhere(struct call *call, struct error *err)
{
    return loop_is_here(call_loop(call)) ? CALL_ELSEWHERE : where(call, err);
}

struct named {
    const char *name;
    struct field_list files;
};
struct named_file {
    struct bytes_field content;
};
static const struct field file_fields[] = {
    {"content", FIELD_BYTES, offsetof(struct named_file, content), .is_needed = true},
    {0},
};
static const char *const colours[] = {"red", "green", NULL};
static const struct field named_fields[] = {
    {"name", FIELD_TEXT, offsetof(struct named, name), .is_needed = true,
     .help = "what it is called"},
    {"files", FIELD_LIST, offsetof(struct named, files), .fields = file_fields,
     .item_size = sizeof(struct named_file)},
    {0},
};

static int name(struct call *call, struct error *err)
{
    struct named named = {0};
    size_t bytes = 0;

    if (fields_read(call->body, named_fields, &named, err) < 0)
        return -1;
    const struct named_file *files = named.files.items;
    for (size_t i = 0; i < named.files.count; i++)
        bytes += files[i].content.length;
    return answer_text(call, call_print(call, "%s %zu", named.name, bytes));
}

static int upload(struct call *call, struct error *err)
{
    struct front_fixture *fixture = call->settings;
    char piece[4096];
    ssize_t length;

    while ((length = body_read(call->request->stream, piece, sizeof piece, 10000, err)) > 0)
        atomic_fetch_add(&fixture->bytes, (int)length);
    return length < 0 ? -1
                      : answer_text(call, call_print(call, "%d", atomic_load(&fixture->bytes)));
}

static int get_thing(struct call *call, struct error *err)
{
    return answer_text(call, call_print(call, "%s|%s", call->parameters[0], call->parameters[1]));
}

static int get_known(struct call *call, struct error *err)
{
    const char *id;

    if (call_id(call, 0, "thing_", "thing", &id, err) < 0)
        return -1;
    return answer_text(call, id);
}

static int list(struct call *call, struct error *err)
{
    const char *colour = query_text(call->query, "colour");

    return answer_text(call, call_print(call, "%lld %s",
                                        (long long)query_integer(call->query, "limit", 50),
                                        colour ? colour : "none"));
}

static int fail(struct call *call, struct error *err)
{
    return error_set(err, ERROR_SYSTEM, "the disk is on fire");
}

static int forget(struct call *call, struct error *err)
{
    return 0;
}

static void answer_later(void *data)
{
    struct response *response = data;

    (void)response_send(response, 200, NULL, "later", 5);
    response_free(response);
}

static int park(struct call *call, struct error *err)
{
    struct front_fixture *fixture = call->settings;

    atomic_fetch_add(&fixture->parked, 1);
    loop_post(call_loop(call), answer_later, response_ref(call->response));
    return 0;
}

static int block(struct call *call, struct error *err)
{
    struct front_fixture *fixture = call->settings;

    atomic_fetch_add(&fixture->blocked, 1);
    while (sem_wait(&fixture->unblock) < 0)
        continue;
    return where(call, err);
}

static int get_url(struct call *call, struct error *err)
{
    return answer_text(call, call_base_url(call));
}

static int once(struct call *call, struct error *err)
{
    const struct once *key;

    if (call_once(call, &key, err) < 0)
        return -1;
    if (!key)
        return answer_text(call, "none");
    return answer_text(call, call_print(call, "%s|%s|%02x%02x%02x%02x", key->realm, key->key,
                                        key->request_hash[0], key->request_hash[1],
                                        key->request_hash[2], key->request_hash[3]));
}

static int whoami(struct call *call, struct error *err)
{
    const struct actor *actor = &call->actor;

    return answer_text(
        call, call_print(call, "%s of %s", *actor->key_id ? "key" : "local", actor->organisation));
}

/* What the 101 would say. */
static int upgrade(struct call *call, struct error *err)
{
    struct upgrade upgrade;

    if (upgrade_check(call, "https://good.example, http://dev.example:3000", &upgrade, err) < 0)
        return -1;
    const struct http_header *protocol = &upgrade.headers[2];
    return answer_text(
        call, call_print(call, "%s %s", upgrade.accept, protocol->name ? protocol->value : "-"));
}

static const struct parameter list_query[] = {
    {"limit", PARAMETER_INTEGER, .help = "how many", .minimum = 0, .maximum = 100},
    {"colour", PARAMETER_WORD, .words = colours},
    {0},
};

static const struct route routes[] = {
    {"GET", "/quick", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, where, "on a worker"},
    {"GET", "/slow", ROUTE_SLOW, ACCESS_OPEN, BODY_NONE, where, "on a worker"},
    {"GET", "/loop", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, where, "on the loop"},
    {"GET", "/elsewhere", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, elsewhere,
     "on the loop, then on a worker"},
    {"POST", "/name", ROUTE_QUICK, ACCESS_KEY, BODY_JSON, name, "reads JSON", named_fields},
    {"PUT", "/upload", ROUTE_SLOW, ACCESS_KEY, BODY_STREAM, upload, "reads a stream"},
    {"PUT", "/small", ROUTE_SLOW, ACCESS_KEY, BODY_STREAM, upload, "reads a small stream",
     .body_limit = 1000},
    {"POST", "/none", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, where, "reads nothing"},
    {"GET", "/things/{a}/of/{b}", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, get_thing, "two parameters"},
    {"GET", "/known/{id}", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, get_known, "an id"},
    {"DELETE", "/known/{other}", ROUTE_QUICK, ACCESS_KEY, BODY_NONE, get_known,
     "the same, with a key"},
    {"GET", "/list", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, list, "a query", .query = list_query},
    {"GET", "/fail", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, fail, "fails"},
    {"GET", "/forget", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, forget, "answers nothing"},
    {"GET", "/park", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, park, "answers later"},
    {"GET", "/block", ROUTE_SLOW, ACCESS_OPEN, BODY_NONE, block, "waits"},
    {"GET", "/url", ROUTE_LOOP, ACCESS_OPEN, BODY_NONE, get_url, "where it was reached"},
    {"POST", "/once", ROUTE_QUICK, ACCESS_OPEN, BODY_JSON, once, "an Idempotency-Key"},
    {"GET", "/upgrade", ROUTE_QUICK, ACCESS_OPEN, BODY_NONE, upgrade, "would be a WebSocket"},
    {"GET", "/whoami", ROUTE_LOOP, ACCESS_KEY, BODY_NONE, whoami, "who asks"},
    {0},
};

static void on_error(struct call *call, const struct error *err)
{
    autoreply reply;

    reply_init(&reply);
    json_map_begin(&reply.json);
    put(&reply, "kind", error_reason_name(error_kind(err)));
    put(&reply, "reason", err->reason == error_kind(err) ? NULL : error_reason_name(err->reason));
    put(&reply, "route", call->route ? call->route->pattern : NULL);
    put(&reply, "error", err->text);
    json_map_end(&reply.json);
    reply_send(&reply, call->response, error_status(err));
}

/* ---- the server ---- */

static void *run_loop(void *data)
{
    (void)signal(SIGPIPE, SIG_IGN); // as in the server: sendfile has no flag for it
    loop_run(((struct front_fixture *)data)->loop);
    return NULL;
}

static struct http_limits limits(void)
{
    struct http_limits limits = http_limits_default;

    limits.linger_ms = 100;
    limits.head_ms = 100;
    limits.idle_ms = 60000;
    return limits;
}

static void start_router(struct front_fixture *fixture, const struct front_options *options)
{
    static const struct workers_settings settings = {.lane = {{2, 100}, {1, 1}, {1, 100}}};
    struct front *front = xnew(struct front);
    const struct front **fronts = xcalloc(3, sizeof *fronts);
    struct error err = {0};

    *front = (struct front){.name = "test",
                            .title = "Tests.",
                            .routes = routes,
                            .on_error = on_error,
                            .sandbox_prefix = "thing_",
                            .settings = fixture};
    if (options->front)
        *front = *options->front;
    fronts[0] = front;
    fronts[1] = &ops_front;
    fixture->fronts = fronts;
    CHECK_OK(workers_new(&settings, &fixture->workers, &err), err);
    CHECK_OK(router_new(&(struct router_settings){.core = options->core,
                                                  .loop = fixture->loop,
                                                  .workers = fixture->workers,
                                                  .fronts = fronts,
                                                  .public_url = options->public_url,
                                                  .is_open = options->is_open},
                        &fixture->router, &err),
             err);
}

struct front_fixture *front_fixture_new(const struct front_options *options)
{
    struct front_fixture *fixture = xnew(struct front_fixture);
    struct http_limits with = limits();
    struct error err = {0};

    log_set_level(LOG_LEVEL_WARN); // no line for every request
    (void)sem_init(&fixture->unblock, 0, 0);
    CHECK_OK(loop_new(&fixture->loop, &err), err);
    start_router(fixture, options);
    CHECK_OK(http_server_new(fixture->loop, &with, &router_handler, fixture->router,
                             &fixture->server, &err),
             err);
    CHECK_OK(http_server_listen_tcp(fixture->server, "127.0.0.1:0", &fixture->address, &err), err);
    (void)snprintf(fixture->dir, sizeof fixture->dir, "/tmp/front-XXXXXX");
    CHECK(mkdtemp(fixture->dir));
    (void)snprintf(fixture->unix_path, sizeof fixture->unix_path, "%s/socket", fixture->dir);
    CHECK_OK(http_server_listen_unix(fixture->server, fixture->unix_path, 0600, &err), err);
    CHECK(pthread_create(&fixture->thread, NULL, run_loop, fixture) == 0);
    return fixture;
}

static void stop(void *data)
{
    struct front_fixture *fixture = data;

    http_server_free(fixture->server);
    loop_stop(fixture->loop);
}

void front_fixture_free(struct front_fixture *fixture)
{
    if (!fixture)
        return;
    loop_post(fixture->loop, stop, fixture);
    (void)pthread_join(fixture->thread, NULL);
    workers_stop(fixture->workers);
    loop_free(fixture->loop);
    router_free(fixture->router);
    workers_free(fixture->workers);
    (void)rmdir(fixture->dir);
    (void)sem_destroy(&fixture->unblock);
    free((void *)fixture->fronts[0]);
    free(fixture->fronts);
    free(fixture);
}

void fixture_wait(atomic_int *counter, int value)
{
    uint64_t end = clock_monotonic_ms() + 10000;

    while (atomic_load(counter) < value) {
        if (clock_monotonic_ms() > end)
            test_fail(__FILE__, __LINE__, "only %d of %d came", atomic_load(counter), value);
        (void)sched_yield();
    }
}

/* ---- clients ---- */

static int connected(int fd, const void *to, socklen_t length)
{
    struct timeval patience = {.tv_sec = 20};

    CHECK(fd >= 0 && connect(fd, to, length) == 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return fd;
}

int client_connect(struct front_fixture *fixture)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)atoi(strchr(fixture->address, ':') + 1)),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

    return connected(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), &to, sizeof to);
}

int client_connect_unix(struct front_fixture *fixture)
{
    struct sockaddr_un to = {.sun_family = AF_UNIX};

    (void)snprintf(to.sun_path, sizeof to.sun_path, "%s", fixture->unix_path);
    return connected(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), &to, sizeof to);
}

void client_send(int fd, const void *data, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t part = send(fd, (const char *)data + sent, length - sent, MSG_NOSIGNAL);
        if (part <= 0)
            return; // a server that has had enough may close: what it answered counts
        sent += (size_t)part;
    }
}

void client_say(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

void answer_clear(struct answer *answer)
{
    free(answer->head);
    buffer_clear(&answer->body);
    *answer = (struct answer){0};
}

static bool read_head(int fd, struct buffer *head)
{
    struct error err;
    char c;

    while (head->length < 4 || memcmp(head->data + head->length - 4, "\r\n\r\n", 4) != 0) {
        if (recv(fd, &c, 1, 0) != 1)
            return false;
        (void)buffer_add(head, &c, 1, &err);
    }
    return true;
}

void client_read_head(int fd, struct answer *answer)
{
    struct buffer head = {0};

    answer_clear(answer);
    answer->status = read_head(fd, &head) ? atoi(head.data + 9) : -1;
    answer->head = head.data;
}

void client_read(int fd, struct answer *answer)
{
    struct error err;

    client_read_head(fd, answer);
    bool is_whole = answer->status > 0;
    const char *length = is_whole ? strcasestr(answer->head, "\r\nContent-Length: ") : NULL;
    size_t left = length ? strtoul(length + 18, NULL, 10) : 0;
    answer->is_closing = is_whole && strcasestr(answer->head, "\r\nConnection: close");
    CHECK(buffer_reserve(&answer->body, left + 1, &err) == 0);
    while (left > 0) {
        ssize_t got = recv(fd, answer->body.data + answer->body.length, left, 0);
        if (got <= 0)
            break;
        buffer_grew(&answer->body, (size_t)got);
        left -= (size_t)got;
    }
    if (left)
        answer->status = -1;
}

int ask(struct front_fixture *fixture, const char *what, const char *headers, const char *body,
        struct answer *answer)
{
    autofd fd = client_connect(fixture);
    autofree char *text =
        xasprintf("%s HTTP/1.1\r\nHost: test:1\r\n%s", what, headers ? headers : "");
    autofree char *length = xasprintf("Content-Length: %zu\r\n\r\n", body ? strlen(body) : 0);

    client_say(fd, text);
    client_say(fd, body ? length : "\r\n");
    client_say(fd, body ? body : "");
    client_read(fd, answer);
    return answer->status;
}
