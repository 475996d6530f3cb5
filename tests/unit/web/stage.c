/* SPDX-License-Identifier: Apache-2.0 */
/* Streams over HTTP for tests; see stage.h. */
#include "unit/web/stage.h"

#include "base/log.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/sandbox/temporary.h"
#include "front/agentuity/agentuity_impl.h"
#include "test.h"

#include <signal.h>
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdarg.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>

static char left_behind[64]; // the directory of a test that failed

static void remove_directory(void)
{
    struct error err;

    if (left_behind[0])
        (void)fd_remove_tree(AT_FDCWD, left_behind, &err);
    left_behind[0] = '\0';
}

static void *run_loop(void *data)
{
    (void)signal(SIGPIPE, SIG_IGN); // as in the server: sendfile has no flag for it
    loop_run(((struct stage *)data)->loop);
    return NULL;
}

static void open_core(struct stage *stage)
{
    const struct streams_settings streams = {
        .data_dir = stage->directory, .limit_bytes = 1 << 30, .keep_ms = 24 * 3600 * 1000};
    struct core *core = &stage->core;
    struct error err = {0};

    core->settings = core_settings_default;
    core->settings.data_dir = stage->directory;
    core->hub = hub_new();
    core->temporaries = temporaries_new(&core->settings);
    CHECK_OK(store_open(stage->directory, &core->store, &err), err);
    CHECK_OK(accounts_open(core->store, &core->accounts, &err), err);
    CHECK_OK(streams_open(core->store, core->hub, &streams, &core->streams, &err), err);
    accounts_local_actor(core->accounts, &stage->actor);
}

static void open_server(struct stage *stage)
{
    static const struct workers_settings settings = {.lane = {{2, 20000}, {2, 4}, {1, 100}}};
    struct http_limits limits = http_limits_default;
    const char *address = NULL;
    struct error err = {0};

    log_set_level(LOG_LEVEL_WARN); // no line for every request
    stage->front = (struct front){.name = "agentuity",
                                  .title = "streams",
                                  .routes = agentuity_stream_routes,
                                  .on_error = envelope_error};
    stage->fronts[0] = &stage->front;
    limits.linger_ms = 100;
    limits.connections = 20000;
    CHECK_OK(loop_new(&stage->loop, &err), err);
    CHECK_OK(workers_new(&settings, &stage->workers, &err), err);
    struct router_settings router = {.core = &stage->core,
                                     .loop = stage->loop,
                                     .workers = stage->workers,
                                     .fronts = stage->fronts,
                                     .is_open = true};
    CHECK_OK(router_new(&router, &stage->router, &err), err);
    CHECK_OK(
        http_server_new(stage->loop, &limits, &router_handler, stage->router, &stage->server, &err),
        err);
    CHECK_OK(http_server_listen_tcp(stage->server, "127.0.0.1:0", &address, &err), err);
    stage->port = atoi(strchr(address, ':') + 1);
}

struct stage *stage_new(void)
{
    struct stage *stage = xnew(struct stage);
    char directory[] = "/tmp/burrow-streams-XXXXXX";

    if (!left_behind[0])
        (void)atexit(remove_directory);
    remove_directory();
    CHECK(mkdtemp(directory));
    (void)snprintf(left_behind, sizeof left_behind, "%s", directory);
    stage->directory = xstrdup(directory);
    open_core(stage);
    open_server(stage);
    CHECK(pthread_create(&stage->thread, NULL, run_loop, stage) == 0);
    return stage;
}

static void stop(void *data)
{
    struct stage *stage = data;

    http_server_free(stage->server);
    loop_stop(stage->loop);
}

void stage_free(struct stage *stage)
{
    if (!stage)
        return;
    loop_post(stage->loop, stop, stage);
    (void)pthread_join(stage->thread, NULL);
    workers_stop(stage->workers);
    loop_free(stage->loop);
    router_free(stage->router);
    workers_free(stage->workers);
    streams_free(stage->core.streams);
    accounts_free(stage->core.accounts);
    store_free(stage->core.store);
    temporaries_free(stage->core.temporaries);
    hub_free(stage->core.hub);
    remove_directory();
    free(stage->directory);
    free(stage);
}

const char *stage_stream(struct stage *stage, char id[ID_TEXT])
{
    struct stream_request request = {.name = "test"};
    autoclear(stream_info) record = {0};
    struct error err = {0};

    CHECK_OK(stream_create(stage->core.streams, &stage->actor, &request, &record, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", record.id);
    return id;
}

void stage_append(struct stage *stage, const char *id, const void *data, size_t length)
{
    struct error err = {0};
    CHECK_OK(stream_append(stage->core.streams, &stage->actor, id, data, length, &err), err);
}

void stage_say(struct stage *stage, const char *id, const char *text)
{
    stage_append(stage, id, text, strlen(text));
}

void stage_complete(struct stage *stage, const char *id)
{
    struct error err = {0};
    CHECK_OK(stream_complete(stage->core.streams, &stage->actor, id, &err), err);
}

struct stream *stage_take(struct stage *stage, const char *id)
{
    struct stream_place place = {.owner = actor_owner(&stage->actor), .kind = STREAM_STDIN};
    struct stream *stream = NULL;
    struct error err = {0};

    CHECK_OK(streams_take(stage->core.streams, &stage->actor, id, &place, &stream, &err), err);
    return stream;
}

void stage_end_command(struct stage *stage, struct stream *stream)
{
    struct error err = {0};

    CHECK_OK(streams_put_end(stage->core.streams, stream, false, 1767323045678, &err), err);
    streams_end(stage->core.streams, stream);
    stream_free(stream);
}

static struct stream_progress progress_of(struct stage *stage, const char *id)
{
    autoptr(stream) stream = NULL;
    struct stream_progress progress;
    struct error err = {0};

    CHECK_OK(stream_open(stage->core.streams, id, &stream, &err), err);
    stream_progress(stream, &progress);
    return progress;
}

uint64_t stage_size(struct stage *stage, const char *id)
{
    return progress_of(stage, id).size_bytes;
}

static void on_told(void *data)
{
    (void)sem_post(data);
}

/* Until the stream has so many bytes; fails the test after ten seconds. */
void stage_wait_size(struct stage *stage, const char *id, uint64_t size)
{
    struct timespec until;
    sem_t told;

    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 10;
    (void)sem_init(&told, 0, 0);
    struct watch *watch = hub_watch(stage->core.hub, id, on_told, &told);
    bool is_late = false;
    while (stage_size(stage, id) < size && !is_late)
        is_late = sem_timedwait(&told, &until) != 0 && errno == ETIMEDOUT;
    watch_free(watch);
    (void)sem_destroy(&told);
    CHECK(!is_late);
}

bool stage_is_complete(struct stage *stage, const char *id)
{
    return progress_of(stage, id).is_complete;
}

struct client *client_new(struct stage *stage)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_port = htons((uint16_t)stage->port),
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = 20};
    struct client *client = xnew(struct client);

    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(client->fd >= 0 && connect(client->fd, (struct sockaddr *)&to, sizeof to) == 0);
    (void)setsockopt(client->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    return client;
}

void client_free(struct client *client)
{
    if (!client)
        return;
    closep(&client->fd);
    free(client);
}

/* A server that has had enough may close meanwhile: what it answered is what counts. */
void client_send(struct client *client, const void *data, size_t length)
{
    for (size_t sent = 0; sent < length;) {
        ssize_t part = send(client->fd, (const char *)data + sent, length - sent, MSG_NOSIGNAL);
        if (part <= 0)
            return;
        sent += (size_t)part;
    }
}

void client_say(struct client *client, const char *format, ...)
{
    autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    int length = vasprintf(&text, format, args);
    va_end(args);
    CHECK(length >= 0);
    client_send(client, text, (size_t)length);
}

void client_ask(struct client *client, const char *method, const char *id, const char *tail,
                const char *lines)
{
    client_say(client, "%s /stream/stream_%s%s HTTP/1.1\r\nHost: here\r\n%s\r\n", method, id, tail,
               lines);
}

void client_chunk(struct client *client, const char *text)
{
    client_say(client, "%zx\r\n%s\r\n", strlen(text), text);
}

/* One more byte from the connection; -1 at its end. */
static int next_byte(struct client *client)
{
    if (client->start == client->length) {
        ssize_t length = recv(client->fd, client->ahead, sizeof client->ahead, 0);
        if (length <= 0)
            return -1;
        client->start = 0;
        client->length = (size_t)length;
    }
    return (unsigned char)client->ahead[client->start++];
}

static bool read_line(struct client *client, char *line, size_t size)
{
    size_t used = 0;
    int byte;

    while ((byte = next_byte(client)) >= 0 && used + 1 < size) {
        if (byte == '\n') {
            line[used && line[used - 1] == '\r' ? used - 1 : used] = '\0';
            return true;
        }
        line[used++] = (char)byte;
    }
    return false;
}

const char *client_header(const struct client *client, const char *name, char *value, size_t size)
{
    size_t length = strlen(name);

    for (const char *line = client->head; *line; line = strchr(line, '\n') + 1) {
        if (strncasecmp(line, name, length) == 0 && strncmp(line + length, ": ", 2) == 0) {
            const char *text = line + length + 2;
            (void)snprintf(value, size, "%.*s", (int)strcspn(text, "\n"), text);
            return value;
        }
    }
    return NULL;
}

int client_head(struct client *client)
{
    char line[512];
    char value[64];
    size_t used = 0;

    client->status = 0;
    if (!read_line(client, line, sizeof line) || sscanf(line, "HTTP/1.1 %d", &client->status) != 1)
        return 0;
    while (read_line(client, line, sizeof line) && line[0])
        used += (size_t)snprintf(client->head + used, sizeof client->head - used, "%s\n", line);
    client->head[used] = '\0';
    client->is_chunked = client_header(client, "Transfer-Encoding", value, sizeof value) != NULL;
    client->has_length = client_header(client, "Content-Length", value, sizeof value) != NULL;
    client->left = client->has_length ? strtoull(value, NULL, 10) : 0;
    return client->status;
}

/* 1: there is a chunk; 0: that was the last one; -1: the connection ended. */
static int next_chunk(struct client *client)
{
    char line[64];

    if (!read_line(client, line, sizeof line))
        return -1;
    client->left = strtoull(line, NULL, 16);
    if (client->left)
        return 1;
    return read_line(client, line, sizeof line) ? 0 : -1;
}

ssize_t client_read(struct client *client, void *data, size_t size)
{
    if (client->left == 0) {
        int more = client->is_chunked ? next_chunk(client) : 0;
        if (more <= 0)
            return more;
    }
    if (next_byte(client) < 0)
        return -1;
    client->start--;
    size_t length = client->length - client->start;
    length = length < size ? length : size;
    length = length < client->left ? length : (size_t)client->left;
    memcpy(data, client->ahead + client->start, length);
    client->start += length;
    client->left -= length;
    if (client->left == 0 && client->is_chunked &&
        (next_byte(client) != '\r' || next_byte(client) != '\n'))
        return -1;
    return (ssize_t)length;
}

bool client_gets(struct client *client, const char *text)
{
    size_t want = strlen(text);
    char got[4096];

    while (want > 0) {
        ssize_t length = client_read(client, got, want < sizeof got ? want : sizeof got);
        if (length <= 0 || memcmp(got, text, (size_t)length) != 0)
            return false;
        text += length;
        want -= (size_t)length;
    }
    return true;
}

bool client_gets_all(struct client *client, const char *text)
{
    char more;
    return client_gets(client, text) && client_read(client, &more, 1) == 0;
}

size_t memory_kib(void)
{
    unsigned long pages = 0;
    autofile file = fopen("/proc/self/statm", "re");

    CHECK(file && fscanf(file, "%*u %lu", &pages) == 1);
    return pages * (size_t)sysconf(_SC_PAGESIZE) / 1024;
}
