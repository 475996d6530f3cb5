/* SPDX-License-Identifier: Apache-2.0 */
/* What the paths do: /hello on the loop, /worker by a worker, /echo the body, /stream an uploaded
 * body counted by a worker, /park, /flood?MIB in pieces, /file by sendfile, /follow parts of it in
 * chunks, /early before its body ends, /ask a body that is decided about later, /vouch as somebody with a key, /drop no answer, /half a part of one, /refuse in the plan.
 */
#include "unit/net/net_fixture.h"

#include "base/clock.h"
#include "base/mem.h"
#include "net/body.h"
#include "test.h"

#include <signal.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/socket.h>

struct parked {
    struct parked *next;
    struct response *response;
    struct fixture *fixture;
};

static const struct http_header text_headers[] = {{"Content-Type", "text/plain"}, {0}};

static void on_gone(void *data)
{
    atomic_fetch_add(&((struct fixture *)data)->gone, 1);
}

static void on_end(void *data, bool is_delivered)
{
    struct fixture *fixture = data;
    atomic_fetch_add(is_delivered ? &fixture->delivered : &fixture->undelivered, 1);
}

static const struct response_events count_events = {.on_gone = on_gone, .on_end = on_end};

struct job {
    struct fixture *fixture;
    struct http_request *request;
    struct response *response;
    uint64_t left;
    atomic_int others; // that hold it, beside the first
};

static void job_free(struct job *job)
{
    if (atomic_fetch_sub(&job->others, 1) > 0)
        return;
    http_request_free(job->request);
    response_free(job->response);
    free(job);
}

static void say_hello(struct response *response)
{
    (void)response_send(response, 200, text_headers, "hello\n", 6);
}

static void work_hello(void *data)
{
    struct job *job = data;
    response_watch(job->response, &count_events, job->fixture);
    say_hello(job->response);
    job_free(job);
}

/* Counts a streamed body in straight-line code. */
static void work_stream(void *data)
{
    struct job *job = data;
    char piece[4096];
    char text[64];
    size_t total = 0;
    ssize_t length;
    struct error err = {0};

    while ((length = body_read(job->request->stream, piece, sizeof piece, 10000, &err)) > 0)
        total += (size_t)length;
    if (length < 0)
        atomic_fetch_add(&job->fixture->read_failed, 1);
    if (length < 0)
        (void)snprintf(text, sizeof text, "%s", error_reason_name(error_kind(&err)));
    else
        (void)snprintf(text, sizeof text, "%zu", total);
    (void)response_send(job->response, length < 0 ? 400 : 200, NULL, text, strlen(text));
    job_free(job);
}

/* Appends until there is no room; on_room queues it again. */
static void work_flood(void *data);

static void on_flood_room(void *data)
{
    struct job *job = data;
    struct error err;
    atomic_fetch_add(&job->others, 1);
    if (workers_submit(job->fixture->workers, WORKERS_QUICK, work_flood, job, &err) < 0)
        job_free(job);
}

static void on_flood_end(void *data, bool is_delivered)
{
    struct job *job = data;
    on_end(job->fixture, is_delivered);
    job_free(job);
}

static const struct response_events flood_events = {.on_room = on_flood_room,
                                                    .on_end = on_flood_end};

static void work_flood(void *data)
{
    struct job *job = data;
    char piece[16384];
    memset(piece, 'x', sizeof piece);
    while (job->left > 0) {
        if (response_append(job->response, piece, sizeof piece) != RESPONSE_TAKEN) {
            job_free(job);
            return;
        }
        job->left -= sizeof piece;
        if (job->left % (1 << 20) == 0)
            atomic_fetch_add(&job->fixture->produced_mib, 1);
    }
    response_finish(job->response, true);
    job_free(job);
}

static void start_flood(struct job *job)
{
    job->left = (uint64_t)(job->request->query ? atoi(job->request->query) : 1) << 20;
    response_watch(job->response, &flood_events, job);
    (void)response_begin(job->response, 200, text_headers, RESPONSE_LENGTH_UNKNOWN);
    on_flood_room(job);
}

static void on_park_deadline(void *data)
{
    struct parked *parked = data;
    (void)response_send(parked->response, 200, NULL, "deadline", 8);
}

static void on_park_gone(void *data)
{
    on_gone(((struct parked *)data)->fixture);
}

static void on_park_end(void *data, bool is_delivered)
{
    on_end(((struct parked *)data)->fixture, is_delivered);
}

static const struct response_events park_events = {
    .on_gone = on_park_gone, .on_deadline = on_park_deadline, .on_end = on_park_end};

static void park(struct job *job)
{
    struct fixture *fixture = job->fixture;
    struct parked *parked = xnew(struct parked);

    parked->fixture = fixture;
    parked->response = response_ref(job->response);
    response_watch(parked->response, &park_events, parked);
    response_set_deadline(parked->response,
                          job->request->query ? (uint64_t)atoi(job->request->query) : 300000);
    (void)pthread_mutex_lock(&fixture->lock);
    parked->next = fixture->parked;
    fixture->parked = parked;
    (void)pthread_mutex_unlock(&fixture->lock);
    atomic_fetch_add(&fixture->parked_count, 1);
    job_free(job);
}

static void answer_half(struct job *job)
{
    (void)response_begin(job->response, 200, NULL, 100);
    (void)response_append(job->response, "only this", 9);
    job_free(job);
}

/* Parts of the file and bytes in turn, as a follower of growing output gets them. */
static void follow(struct job *job)
{
    struct fixture *fixture = job->fixture;

    (void)response_begin(job->response, 200, NULL, RESPONSE_LENGTH_UNKNOWN);
    for (unsigned i = 0; i < RESPONSE_RANGES; i++) {
        struct file_range range = {.fd = dup(fixture->file_fd),
                                   .is_owned = true,
                                   .offset = i * 1000000,
                                   .length = 1000000};
        CHECK(response_append_file(job->response, &range) == RESPONSE_TAKEN);
        CHECK(response_append(job->response, "|", 1) == RESPONSE_TAKEN);
    }
    response_finish(job->response, true);
    job_free(job);
}

static void hand_to_worker(struct job *job, enum workers_lane lane, void (*fn)(void *))
{
    struct error err;
    if (workers_submit(job->fixture->workers, lane, fn, job, &err) == 0)
        return;
    (void)response_send(job->response, 429, NULL, err.text, strlen(err.text));
    job_free(job);
}

static void on_request(void *owner, struct http_request *request, struct response *response)
{
    struct fixture *fixture = owner;
    const char *path = request->path;
    struct job *job = xnew(struct job);

    *job = (struct job){.fixture = fixture, .request = request, .response = response};
    atomic_fetch_add(&fixture->requests, 1);
    if (strcmp(path, "/worker") == 0) {
        hand_to_worker(job, WORKERS_QUICK, work_hello);
        return;
    }
    if (strcmp(path, "/stream") == 0) {
        hand_to_worker(job, WORKERS_SLOW, work_stream);
        return;
    }
    if (strcmp(path, "/flood") == 0) {
        start_flood(job);
        return;
    }
    if (strcmp(path, "/park") == 0) {
        park(job);
        return;
    }
    if (strcmp(path, "/follow") == 0) {
        follow(job);
        return;
    }
    if (strcmp(path, "/socket") == 0) {
        fixture->on_socket(fixture, response_ref(response));
        job_free(job);
        return;
    }
    if (strcmp(path, "/half") == 0) {
        answer_half(job);
        return;
    }
    if (strcmp(path, "/vouch") == 0)
        response_vouch(response, 1);
    if (request->is_body_refused)
        (void)response_send(response, 401, NULL, "who are you", 11);
    else if (strcmp(path, "/echo") == 0 || strcmp(path, "/ask") == 0)
        (void)response_send(response, 200, NULL, request->body.data, request->body.length);
    else if (strcmp(path, "/host") == 0)
        (void)response_send(response, 200, NULL, request->host ? request->host : "none",
                            request->host ? strlen(request->host) : 4);
    else if (strcmp(path, "/early") == 0)
        (void)response_send(response, 200, NULL, "early", 5);
    else if (strcmp(path, "/inject") == 0)
        (void)response_send(response, 200,
                            (const struct http_header[]){{"X-A", "b\r\nX-Evil: c"}, {0}}, "", 0);
    else if (strcmp(path, "/file") == 0)
        (void)response_send_file(
            response, 200, text_headers,
            &(struct file_range){.fd = fixture->file_fd, .length = FILE_BYTES});
    else if (strcmp(path, "/drop") != 0)
        say_hello(response);
    job_free(job);
}

static void on_head(void *owner, const struct http_request *request, struct http_plan *plan)
{
    if (strcmp(request->path, "/stream") == 0 || strcmp(request->path, "/early") == 0) {
        plan->body = HTTP_BODY_STREAM;
        plan->body_bytes = 1u << 30;
    }
    if (strcmp(request->path, "/ask") == 0)
        plan->body = HTTP_BODY_ASK;
    if (strcmp(request->path, "/refuse") == 0) {
        plan->refuse_status = 401;
        plan->refuse_text = "who are you";
    }
}

static void on_ask(void *owner, struct http_request *request, struct response *response)
{
    struct fixture *fixture = owner;

    fixture->question = request;
    fixture->questioner = response;
    atomic_fetch_add(&fixture->asked, 1);
}

void fixture_decide(struct fixture *fixture, enum http_body body)
{
    const struct http_plan plan = {.body = body, .body_bytes = 1 << 20};

    response_decide(fixture->questioner, take(fixture->question), &plan);
    response_free(take(fixture->questioner));
}

static void on_bad_request(void *owner, const struct http_request *request,
                           struct response *response, int status, const char *text)
{
    struct fixture *fixture = owner;
    atomic_fetch_add(&fixture->bad, 1);
    (void)response_send(response, status, text_headers, text, strlen(text));
    response_free(response);
}

static const struct http_handler handler = {.on_head = on_head,
                                            .on_ask = on_ask,
                                            .on_request = on_request,
                                            .on_bad_request = on_bad_request};

static void *run_loop(void *data)
{
    (void)signal(SIGPIPE, SIG_IGN); // as in the server: sendfile has no flag for it
    loop_run(((struct fixture *)data)->loop);
    return NULL;
}

struct http_limits quick_limits(void)
{
    struct http_limits limits = http_limits_default;
    limits.head_ms = limits.body_ms = limits.linger_ms = 100;
    limits.idle_ms = 60000;
    return limits;
}

static void fill_file(struct fixture *fixture)
{
    fixture->file_fd = memfd_create("file", MFD_CLOEXEC);
    CHECK(fixture->file_fd >= 0 && ftruncate(fixture->file_fd, FILE_BYTES) == 0);
    fixture->file = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fixture->file_fd, 0);
    CHECK(fixture->file != MAP_FAILED);
    for (size_t i = 0; i < FILE_BYTES; i++)
        fixture->file[i] = (char)(i * 7 + i / 4096);
}

struct fixture *fixture_new(const struct http_limits *limits)
{
    static const struct workers_settings settings = {.lane = {{2, 20000}, {2, 4}, {1, 100}}};
    struct fixture *fixture = xnew(struct fixture);
    struct error err = {0};

    (void)pthread_mutex_init(&fixture->lock, NULL);
    fill_file(fixture);
    CHECK_OK(loop_new(&fixture->loop, &err), err);
    CHECK_OK(workers_new(&settings, &fixture->workers, &err), err);
    CHECK_OK(http_server_new(fixture->loop, limits ? limits : &http_limits_default, &handler,
                             fixture, &fixture->server, &err),
             err);
    CHECK_OK(http_server_listen_tcp(fixture->server, "127.0.0.1:0", &fixture->address, &err), err);
    fixture->port = atoi(strchr(fixture->address, ':') + 1);
    CHECK(pthread_create(&fixture->thread, NULL, run_loop, fixture) == 0);
    return fixture;
}

void fixture_release(struct fixture *fixture, int count)
{
    fixture_wait(&fixture->parked_count, count);
    (void)pthread_mutex_lock(&fixture->lock);
    for (struct parked *parked = fixture->parked; parked; parked = parked->next)
        say_hello(parked->response);
    (void)pthread_mutex_unlock(&fixture->lock);
}

static void stop(void *data)
{
    struct fixture *fixture = data;
    http_server_free(fixture->server);
    loop_stop(fixture->loop);
}

void fixture_free(struct fixture *fixture)
{
    if (!fixture)
        return;
    loop_post(fixture->loop, stop, fixture);
    (void)pthread_join(fixture->thread, NULL);
    workers_free(fixture->workers);
    for (struct parked *parked = fixture->parked, *next; parked; parked = next) {
        next = parked->next;
        response_free(parked->response);
        free(parked);
    }
    loop_free(fixture->loop);
    (void)munmap(fixture->file, FILE_BYTES);
    (void)close(fixture->file_fd);
    (void)pthread_mutex_destroy(&fixture->lock);
    free(fixture);
}

int client_connect(struct fixture *fixture)
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    client_dial(fixture, fd);
    return fd;
}

void client_dial(struct fixture *fixture, int fd)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)fixture->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 20};

    CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
}

/* A server that has had enough may close meanwhile: what it answered is what counts. */
void client_send(int fd, const void *data, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t part = send(fd, (const char *)data + sent, length - sent, MSG_NOSIGNAL);
        if (part <= 0)
            return;
        sent += (size_t)part;
    }
}

void client_say(int fd, const char *text)
{
    client_send(fd, text, strlen(text));
}

void reply_clear(struct reply *reply)
{
    free(reply->head);
    buffer_clear(&reply->body);
    *reply = (struct reply){0};
}

/* Up to and with `ending`; byte for byte, so that nothing of the next answer is taken. */
static bool read_until(int fd, struct buffer *to, const char *ending)
{
    struct error err;
    size_t length = strlen(ending);
    char c;

    while (to->length < length || memcmp(to->data + to->length - length, ending, length) != 0) {
        if (recv(fd, &c, 1, 0) != 1)
            return false;
        (void)buffer_add(to, &c, 1, &err);
    }
    return true;
}

static bool read_exactly(int fd, struct buffer *to, size_t length)
{
    struct error err;

    CHECK(buffer_reserve(to, length, &err) == 0);
    while (length) {
        ssize_t part = recv(fd, to->data + to->length, length, 0);
        if (part <= 0)
            return false;
        buffer_grew(to, (size_t)part);
        length -= (size_t)part;
    }
    return true;
}

static bool read_chunks(int fd, struct buffer *to)
{
    for (;;) {
        autobuffer line = {0};
        autobuffer end = {0};
        if (!read_until(fd, &line, "\r\n"))
            return false;
        size_t length = strtoul(line.data, NULL, 16);
        if (!read_exactly(fd, to, length) || !read_until(fd, &end, "\r\n"))
            return false;
        if (length == 0)
            return true;
    }
}

void client_read(int fd, struct reply *reply, bool is_to_head)
{
    autobuffer head = {0};

    reply_clear(reply);
    reply->status = -1;
    if (!read_until(fd, &head, "\r\n\r\n"))
        return;
    reply->head = xstrdup(head.data);
    reply->is_chunked = strstr(head.data, "Transfer-Encoding: chunked") != NULL;
    reply->is_closing = strstr(head.data, "Connection: close") != NULL;
    const char *length = strstr(head.data, "Content-Length: ");
    bool is_whole = true;
    int status = atoi(head.data + 9);
    if (is_to_head || status == 100 || status == 204)
        ;
    else if (reply->is_chunked)
        is_whole = read_chunks(fd, &reply->body);
    else if (length)
        is_whole = read_exactly(fd, &reply->body, strtoul(length + 16, NULL, 10));
    else
        (void)read_until(fd, &reply->body, "\x01never\x01");
    if (is_whole)
        reply->status = status;
}

bool client_is_closed(int fd)
{
    char c;
    ssize_t length = recv(fd, &c, 1, 0);
    return length == 0 || (length < 0 && errno == ECONNRESET);
}

int client_ask(struct fixture *fixture, const char *text, struct reply *reply)
{
    autofd fd = client_connect(fixture);
    client_say(fd, text);
    client_read(fd, reply, strncmp(text, "HEAD", 4) == 0);
    return reply->status;
}

void fixture_wait(atomic_int *counter, int value)
{
    uint64_t until = clock_monotonic_ms() + 20000;

    while (atomic_load(counter) < value) {
        if (clock_monotonic_ms() > until)
            test_fail(__FILE__, __LINE__, "waited for %d, is %d", value, atomic_load(counter));
        (void)usleep(500);
    }
}

size_t memory_kib(void)
{
    char line[256];
    size_t kib = 0;
    autofile file = fopen("/proc/self/status", "re");

    while (file && fgets(line, sizeof line, file)) {
        if (sscanf(line, "VmRSS: %zu", &kib) == 1)
            break;
    }
    return kib;
}
