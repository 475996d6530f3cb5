/* SPDX-License-Identifier: Apache-2.0 */
/* A program of somebody who has read burrow.h and nothing else: every part of it once, and how each fails. Prints "fine"; else what was not. */
#define _GNU_SOURCE
#include <burrow.h>

#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define WANT(claim)                                                                                \
    do {                                                                                           \
        if (!(claim)) {                                                                            \
            printf("line %d: %s; last failure: %d %s\n", __LINE__, #claim, err.kind, err.text);    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static struct burrow_error err;

static int on_output(void *context, int stream, const void *data, size_t length)
{
    char *text = context;

    (void)snprintf(text + strlen(text), 100, "%d:%.*s", stream, (int)length, (const char *)data);
    return 0;
}

static int stop_at_once(void *context, int stream, const void *data, size_t length)
{
    (void)context, (void)stream, (void)data, (void)length;
    return -1;
}

static int on_item(void *context, const struct burrow_value *item, struct burrow_error *failure)
{
    (void)failure;
    return strcmp(burrow_text(burrow_get(item, "id")), context) == 0; // 1: enough
}

static int refuse_item(void *context, const struct burrow_value *item, struct burrow_error *failure)
{
    (void)context;
    (void)item;
    *failure = (struct burrow_error){.kind = BURROW_LOCAL, .text = "not this one"};
    return -1;
}

static void on_progress(void *context, uint64_t done, uint64_t total)
{
    *(uint64_t *)context = done;
    WANT(total == 6);
}

static void transfers(struct burrow_client *client, const char *sandbox, int in, int out)
{
    struct burrow_transfer what = {.sandbox = sandbox,
                                   .path = "/tour/new/f",
                                   .fd = in,
                                   .makes_parents = true,
                                   .on_progress = on_progress};
    uint64_t limit = 0, bytes = 0, seen = 0;

    what.context = &seen;
    WANT(burrow_file_limit(client, &limit, &err) == 0 && limit == 1 << 30);
    WANT(lseek(in, 0, SEEK_SET) == 0 && burrow_file_send(client, &what, &bytes, &err) == 0 &&
         bytes == 6 && seen == 6);
    what.fd = out;
    seen = 0;
    WANT(burrow_file_fetch(client, &what, &bytes, &err) == 0 && bytes == 6 && seen == 6);
    what.most_bytes = 5;
    WANT(burrow_file_fetch(client, &what, &bytes, &err) < 0 && err.kind == BURROW_LIMIT &&
         err.status == 0);
}

static void files(struct burrow_client *client, const char *sandbox)
{
    int in = memfd_create("in", MFD_CLOEXEC), out = memfd_create("out", MFD_CLOEXEC);
    char text[32] = "";
    struct burrow_answer *answer = NULL;

    WANT(write(in, "hello\n", 6) == 6 && lseek(in, 0, SEEK_SET) == 0);
    WANT(burrow_directory_make(client, sandbox, "/tour/deep", true, &err) == 0);
    WANT(burrow_file_write(client, sandbox, "/tour/a b?&c", in, 0640, false, &err) == 0);
    WANT(burrow_file_read(client, sandbox, "/tour/a b?&c", out, &err) == 0);
    WANT(pread(out, text, sizeof text, 0) == 6 && strcmp(text, "hello\n") == 0);
    WANT(burrow_file_stat(client, sandbox, "/tour/a b?&c", &answer, &err) == 0);
    WANT(burrow_integer(burrow_get(burrow_answer_value(answer), "sizeBytes"), -1) == 6);
    WANT(strcmp(burrow_text(burrow_get(burrow_answer_value(answer), "mode")), "0640") == 0);
    burrow_answer_free(answer);
    transfers(client, sandbox, in, out);
    WANT(burrow_file_remove(client, sandbox, "/tour/nothing", false, &err) < 0);
    WANT(err.kind == BURROW_NOT_FOUND && err.status == 404 && *err.text && *err.request_id);
    WANT(burrow_file_remove(client, sandbox, "/tour", true, &err) == 0);
    (void)close(in);
    (void)close(out);
}

static void commands(struct burrow_client *client, const char *sandbox)
{
    const char *const say[] = {"sh", "-c", "echo out; cat >&2; exit 7", NULL};
    const char *const last[] = {"sleep", "1000", NULL};
    struct burrow_command command = {
        .sandbox = sandbox, .argv = say, .input = "in", .input_length = 2};
    struct burrow_result result;
    char text[200] = "", id[BURROW_ID];

    WANT(burrow_run(client, &command, on_output, text, &result, &err) == 0);
    WANT(result.exit_code == 7 && strcmp(result.cause, "exited") == 0 && !result.output_lost);
    WANT(strstr(text, "1:out\n") && strstr(text, "2:in"));
    command = (struct burrow_command){.sandbox = sandbox, .argv = last};
    WANT(burrow_start(client, &command, true, id, &err) == 0);
    WANT(burrow_wait(client, id, 10, &result, &err) == 0); // it goes on
    WANT(burrow_signal(client, id, "KILL", &err) == 0);
    WANT(burrow_wait(client, id, 60000, &result, &err) == 1 && result.exit_code != 0);
    const char *const endless[] = {"sh", "-c", "echo begun; sleep 1000", NULL};
    command.argv = endless;
    WANT(burrow_run(client, &command, stop_at_once, NULL, &result, &err) < 0);
    WANT(err.kind == BURROW_CANCELLED && *result.id && *result.sandbox_id);
    WANT(burrow_signal(client, result.id, "KILL", &err) == 0); // it went on
    (void)snprintf(id, sizeof id, "%s", result.id);
    WANT(burrow_wait(client, id, 60000, &result, &err) == 1);
    command.argv = last;
    command.timeout_ms = 50;
    WANT(burrow_run(client, &command, NULL, NULL, &result, &err) == 0);
    WANT(strcmp(result.cause, "timeout") == 0);
}

static void streams(struct burrow_client *client, const char *sandbox)
{
    const char *const argv[] = {"sh", "-c", "seq 1000", NULL};
    const struct burrow_command command = {.sandbox = sandbox, .argv = argv};
    struct burrow_stream *stream = NULL;
    const struct burrow_value *record = NULL;
    char id[BURROW_ID], bytes[100];
    int got;

    WANT(burrow_start(client, &command, false, id, &err) == 0);
    char *path = burrow_path("/executions/%s/output?follow=true", id, NULL);
    WANT(burrow_stream_open(client, "GET", path, "application/x-ndjson", NULL, &stream, &err) == 0);
    WANT(burrow_stream_next(stream, &record, &err) == 1 && burrow_get(record, "event"));
    while ((got = burrow_stream_next(stream, &record, &err)) == 1)
        continue;
    WANT(got == 0);
    burrow_stream_close(stream);
    free(path);
    path = burrow_path("/sandboxes/%s/files?path=%s", sandbox, "/etc/hostname", NULL);
    WANT(burrow_stream_open(client, "GET", path, NULL, NULL, &stream, &err) == 0);
    WANT(burrow_stream_length(stream) > 0 && burrow_stream_header(stream, "ETag"));
    WANT(!burrow_stream_header(stream, "X-Nothing"));
    WANT(burrow_stream_read(stream, bytes, 1, &err) == 1);
    burrow_stream_close(stream); // in the middle
    free(path);
}

/* Two requests under way at once, answered in either order; one that nobody waits for. */
static void sent_ahead(struct burrow_client *client, const char *sandbox)
{
    struct burrow_stream *first = NULL, *second = NULL, *third = NULL;
    struct burrow_answer *answer = NULL;
    char *path = burrow_path("/sandboxes/%s", sandbox, NULL);

    WANT(burrow_send_ahead(client, "GET", path, NULL, &first, &err) == 0);
    WANT(burrow_send_ahead(client, "GET", "/sandboxes/sbx_nothing", NULL, &second, &err) == 0);
    WANT(burrow_send_ahead(client, "GET", path, NULL, &third, &err) == 0);
    WANT(burrow_finish(second, &answer, &err) < 0 && err.status == 404 && !answer);
    WANT(burrow_finish(first, &answer, &err) == 0);
    WANT(burrow_get(burrow_answer_value(answer), "id"));
    burrow_answer_free(answer);
    burrow_stream_close(third);
    free(path);
}

/* Until it has said so, or ended. */
static void await_text(struct burrow_socket *socket, const char *text)
{
    char seen[4096] = "";
    struct burrow_event event;

    while (!strstr(seen, text)) {
        WANT(burrow_socket_next(socket, 60000, &event, &err) == 1);
        WANT(event.kind == BURROW_MESSAGE_STARTED || event.kind == BURROW_MESSAGE_OUTPUT);
        if (event.kind == BURROW_MESSAGE_OUTPUT)
            (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%.*s",
                           (int)event.length, (const char *)event.data);
    }
}

/* A terminal over a WebSocket: input, its size, leaving, coming back to what it showed, its end. */
static void terminals(struct burrow_client *client, const char *sandbox)
{
    struct burrow_socket *socket = NULL;
    struct burrow_answer *answer = NULL;
    struct burrow_event event = {0};
    char id[BURROW_ID];
    int got;
    char *path = burrow_path("/sandboxes/%s/executions", sandbox, NULL);

    WANT(burrow_ask(client, "POST", path,
                    "{\"command\":[\"sh\"],\"terminal\":{\"rows\":20,\"cols\":70}}", &answer,
                    &err) == 0);
    (void)snprintf(id, sizeof id, "%s", burrow_text(burrow_get(burrow_answer_value(answer), "id")));
    burrow_answer_free(answer);
    free(path);
    WANT(burrow_attach(client, id, NULL, &socket, &err) == 0 && burrow_socket_fd(socket) >= 0);
    WANT(burrow_socket_input(socket, "stty size\n", 10, &err) == 0);
    await_text(socket, "20 70");
    WANT(burrow_socket_resize(socket, 33, 44, &err) == 0);
    WANT(burrow_socket_input(socket, "stty size\n", 10, &err) == 0);
    await_text(socket, "33 44");
    while ((got = burrow_socket_next(socket, 50, &event, &err)) == 1) // the prompt
        continue;
    WANT(got == 0); // nothing comes, and that is no failure
    burrow_socket_close(socket);
    WANT(burrow_attach(client, id, NULL, &socket, &err) == 0);
    await_text(socket, "33 44"); // what was shown before
    WANT(burrow_socket_input(socket, "exit 6\n", 7, &err) == 0);
    while ((got = burrow_socket_next(socket, 60000, &event, &err)) == 1 &&
           event.kind != BURROW_MESSAGE_EXIT)
        continue;
    WANT(got == 1 && burrow_integer(burrow_get(event.value, "exitCode"), -1) == 6);
    burrow_socket_close(socket);
    WANT(burrow_attach(client, "exe_nothing", NULL, &socket, &err) < 0);
    WANT(err.kind == BURROW_NOT_FOUND);
}

/* Input that is sent piece by piece beside the output, which is polled for. */
static void uploads(struct burrow_client *client, const char *sandbox)
{
    struct burrow_upload *upload = NULL;
    struct burrow_stream *stream = NULL;
    const struct burrow_value *record = NULL;
    char seen[100] = "";
    int got, n_waits = 0;
    struct burrow_answer *answer = NULL;
    char *path = burrow_path("/sandboxes/%s/executions", sandbox, NULL);

    WANT(burrow_ask(client, "POST", path, "{\"command\":[\"cat\"],\"keepStdinOpen\":true}", &answer,
                    &err) == 0);
    free(path);
    const char *id = burrow_text(burrow_get(burrow_answer_value(answer), "id"));
    path = burrow_path("/executions/%s/output?follow=true", id, NULL);
    WANT(burrow_stream_open(client, "GET", path, "application/x-ndjson", NULL, &stream, &err) == 0);
    free(path);
    path = burrow_path("/executions/%s/stdin?close=true", id, NULL);
    WANT(burrow_upload_open(client, "POST", path, &upload, &err) == 0);
    WANT(burrow_upload_send(upload, "piece", 5, &err) == 5);
    while (burrow_upload_is_full(upload)) {
        struct pollfd fd = {.fd = burrow_upload_fd(upload), .events = POLLOUT};
        WANT(poll(&fd, 1, 60000) == 1 && burrow_upload_send(upload, "", 0, &err) == 0);
    }
    while (!strstr(seen, "piece")) { // before the input has ended
        while ((got = burrow_stream_next_now(stream, &record, &err)) == 2) {
            struct pollfd fd = {.fd = burrow_stream_fd(stream), .events = POLLIN};
            n_waits++;
            WANT(burrow_stream_is_ready(stream) || poll(&fd, 1, 60000) == 1);
        }
        WANT(got == 1);
        const char *text = burrow_text(burrow_get(record, "data.text"));
        (void)snprintf(seen + strlen(seen), sizeof seen - strlen(seen), "%s", text ? text : "");
    }
    while ((got = burrow_upload_finish(upload, &err)) == 0) {
        struct pollfd fd = {.fd = burrow_upload_fd(upload), .events = POLLOUT};
        WANT(poll(&fd, 1, 60000) == 1);
    }
    WANT(got == 1);
    while ((got = burrow_stream_next(stream, &record, &err)) == 1)
        continue;
    WANT(got == 0 && strcmp(seen, "piece") == 0 && n_waits < 1000);
    burrow_upload_close(upload);
    burrow_stream_close(stream);
    burrow_answer_free(answer);
    free(path);
}

/* Who listens and says nothing; who hangs up in the middle of an answer. */
static void patience(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char url[64], head[4096];
    struct burrow_client *client = NULL;
    struct burrow_stream *stream = NULL;
    struct burrow_answer *answer = NULL;

    WANT(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 4) == 0);
    WANT(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    (void)snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    const struct burrow_options options = {.url = url, .timeout_ms = 100};
    WANT(burrow_open(&options, &client, &err) == 0);
    WANT(burrow_ask(client, "GET", "/sandboxes", NULL, &answer, &err) < 0 && !answer);
    WANT(err.kind == BURROW_TIMEOUT && err.status == 0 && *err.text);
    (void)close(accept(listener, NULL, NULL));
    burrow_set_timeout(client, 60000);
    WANT(burrow_send_ahead(client, "GET", "/sandboxes", NULL, &stream, &err) == 0);
    int peer = accept(listener, NULL, NULL);
    WANT(read(peer, head, sizeof head) > 0);
    WANT(dprintf(peer, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{") > 0);
    (void)close(peer);
    WANT(burrow_finish(stream, &answer, &err) < 0 && err.kind == BURROW_BROKEN && !answer);
    burrow_close(client);
    (void)close(listener);
}

static void snapshots(struct burrow_client *client, const char *sandbox)
{
    const char *const look[] = {"cat", "/kept", NULL}, *const keep[] = {"sh", "-c", "echo k >/kept",
                                                                        NULL};
    struct burrow_command command = {.sandbox = sandbox, .argv = keep};
    struct burrow_result result;
    struct burrow_answer *answer = NULL;
    char id[BURROW_ID], text[200] = "";

    WANT(burrow_run(client, &command, NULL, NULL, &result, &err) == 0 && result.exit_code == 0);
    WANT(burrow_snapshot_create(client, sandbox, "tour", "one", id, &err) == 0);
    WANT(burrow_snapshot_get(client, "tour:one", &answer, &err) == 0);
    WANT(strcmp(burrow_text(burrow_get(burrow_answer_value(answer), "id")), id) == 0);
    burrow_answer_free(answer);
    command = (struct burrow_command){.snapshot = id, .argv = look};
    WANT(burrow_run(client, &command, on_output, text, &result, &err) == 0);
    WANT(strcmp(text, "1:k\n") == 0);
    WANT(burrow_snapshot_delete(client, id, &err) == 0);
    WANT(burrow_snapshot_get(client, id, &answer, &err) < 0 && err.kind == BURROW_NOT_FOUND);
}

static void cancelling(const char *sandbox)
{
    const char *const argv[] = {"sleep", "1000", NULL};
    const struct burrow_command command = {.sandbox = sandbox, .argv = argv};
    struct burrow_client *client = NULL;
    struct burrow_result result;
    struct burrow_answer *answer = NULL;
    int ends[2];

    WANT(pipe(ends) == 0 && write(ends[1], "x", 1) == 1);
    const struct burrow_options options = {.cancel_fd = ends[0]};
    WANT(burrow_open(&options, &client, &err) == 0);
    WANT(burrow_run(client, &command, NULL, NULL, &result, &err) < 0);
    WANT(err.kind == BURROW_CANCELLED);
    burrow_set_cancel_fd(client, -1); // and what is left is looked at
    WANT(burrow_sandbox_get(client, sandbox, &answer, &err) == 0);
    burrow_answer_free(answer);
    burrow_close(client);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

static void failing(void)
{
    const struct burrow_options nobody = {.url = "http://127.0.0.1:1"},
                                nonsense = {.url = "nonsense"};
    const struct burrow_options wrong_key = {.api_key = "wrong"};
    struct burrow_client *client = NULL;
    struct burrow_answer *answer = NULL;

    WANT(burrow_open(&nonsense, &client, &err) < 0 && err.kind == BURROW_INVALID && !client);
    burrow_close(client);
    WANT(burrow_open(&nobody, &client, &err) == 0); // connects to nobody yet
    WANT(burrow_connect(client, &err) < 0 && err.kind == BURROW_UNREACHABLE);
    WANT(burrow_ask(client, "GET", "/sandboxes", NULL, &answer, &err) < 0 && !answer);
    burrow_close(client);
    WANT(burrow_open(&wrong_key, &client, &err) == 0);
    WANT(burrow_ask(client, "GET", "/sandboxes", NULL, &answer, &err) < 0);
    WANT(err.kind == BURROW_DENIED && err.status == 401 && *err.remedy);
    burrow_close(client);
}

int main(void)
{
    const struct burrow_sandbox_options wanted = {.name = "tour", .never_idle = true};
    struct burrow_client *client = NULL;
    struct burrow_answer *answer = NULL;
    char id[BURROW_ID];

    WANT(burrow_open(NULL, &client, &err) == 0 && *burrow_version() && *burrow_url(client));
    WANT(burrow_sandbox_create(client, &wanted, id, &err) == 0);
    WANT(burrow_sandbox_create(client, &wanted, id, &err) < 0 && err.kind == BURROW_CONFLICT);
    WANT(burrow_sandbox_get(client, "tour", &answer, &err) == 0);
    WANT(strcmp(burrow_text(burrow_get(burrow_answer_value(answer), "id")), id) == 0);
    WANT(burrow_integer(burrow_get(burrow_answer_value(answer), "limits.memoryBytes"), 0) > 0);
    burrow_answer_free(answer);
    WANT(burrow_list(client, "/sandboxes", 0, on_item, id, &err) == 0);
    WANT(burrow_list(client, "/sandboxes", 0, refuse_item, NULL, &err) < 0);
    WANT(strcmp(err.text, "not this one") == 0);
    files(client, id);
    commands(client, "tour");
    streams(client, id);
    sent_ahead(client, id);
    terminals(client, id);
    uploads(client, id);
    patience();
    snapshots(client, id);
    WANT(burrow_sandbox_pause(client, id, &err) == 0 &&
         burrow_sandbox_resume(client, id, &err) == 0);
    cancelling(id);
    failing();
    WANT(burrow_sandbox_delete(client, id, &err) == 0);
    burrow_close(client);
    (void)puts("fine");
    return 0;
}
