/* SPDX-License-Identifier: Apache-2.0 */
/* The server's HTTP layers with nothing on top, for bench/http to measure: /loop and /worker answer
 * a few bytes, /file a file, /flood a gibibyte made by a worker, /park waits. Usage: bench-http
 * ADDRESS:PORT FILE */
#include "base/mem.h"
#include "loop/loop.h"
#include "loop/workers.h"
#include "net/http_server.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct bench {
    struct loop *loop;
    struct workers *workers;
    struct http_server *server;
    int file;
    uint64_t file_bytes;
};

struct job {
    struct bench *bench;
    struct http_request *request;
    struct response *response;
    uint64_t left;
    atomic_int others; // that hold it, beside the first
};

static const struct http_header json[] = {{"Content-Type", "application/json"}, {0}};
static const char small[] = "{\"success\":true,\"data\":{\"sandboxId\":\"sbx_"
                            "0123456789abcdef0123456789abcdef\",\"status\":\"idle\"}}";

static void job_free(struct job *job)
{
    if (atomic_fetch_sub(&job->others, 1) > 0)
        return;
    http_request_free(job->request);
    response_free(job->response);
    free(job);
}

static void answer_small(void *data)
{
    struct job *job = data;
    (void)response_send(job->response, 200, json, small, sizeof small - 1);
    job_free(job);
}

static void flood(void *data)
{
    static const char piece[64 << 10];
    struct job *job = data;

    while (job->left > 0) {
        if (response_append(job->response, piece, sizeof piece) != RESPONSE_TAKEN) {
            job_free(job);
            return;
        }
        job->left -= sizeof piece;
    }
    response_finish(job->response, true);
    job_free(job);
}

static void submit(struct job *job, void (*fn)(void *data))
{
    struct error err;
    if (workers_submit(job->bench->workers, WORKERS_QUICK, fn, job, &err) == 0)
        return;
    (void)response_send(job->response, 429, NULL, err.text, strlen(err.text));
    job_free(job);
}

static void on_room(void *data)
{
    struct job *job = data;
    atomic_fetch_add(&job->others, 1);
    submit(job, flood);
}

static void on_end(void *data, bool is_delivered)
{
    job_free(data);
}

static const struct response_events flood_events = {.on_room = on_room, .on_end = on_end};

static void start_flood(struct job *job)
{
    job->left = 1u << 30;
    response_watch(job->response, &flood_events, job);
    (void)response_begin(job->response, 200, NULL, RESPONSE_LENGTH_UNKNOWN);
    on_room(job);
}

static void park(struct job *job)
{
    // Held by nobody who will answer; the request's memory is given back.
    http_request_free(take(job->request));
    (void)take(job->response);
    job_free(job);
}

static void on_request(void *owner, struct http_request *request, struct response *response)
{
    struct bench *bench = owner;
    struct job *job = xnew(struct job);

    *job = (struct job){.bench = bench, .request = request, .response = response};
    if (strcmp(request->path, "/worker") == 0) {
        submit(job, answer_small);
    } else if (strcmp(request->path, "/flood") == 0) {
        start_flood(job);
    } else if (strcmp(request->path, "/park") == 0) {
        park(job);
    } else if (strcmp(request->path, "/file") == 0) {
        struct file_range range = {.fd = bench->file, .length = bench->file_bytes};
        (void)response_send_file(response, 200, NULL, &range);
        job_free(job);
    } else {
        answer_small(job);
    }
}

static const struct http_handler handler = {.on_request = on_request};

static int start(struct bench *bench, const char *address, const char *path, struct error *err)
{
    static const struct workers_settings settings = {.lane = {{4, 4096}, {2, 64}}};
    struct stat info;

    bench->file = open(path, O_RDONLY | O_CLOEXEC);
    if (bench->file < 0 || fstat(bench->file, &info) < 0)
        return error_sys(err, "open '%s'", path);
    bench->file_bytes = (uint64_t)info.st_size;
    if (loop_new(&bench->loop, err) < 0 || workers_new(&settings, &bench->workers, err) < 0)
        return -1;
    struct http_limits limits = http_limits_default;
    limits.idle_ms = 60000;
    if (http_server_new(bench->loop, &limits, &handler, bench, &bench->server, err) < 0)
        return -1;
    return http_server_listen_tcp(bench->server, address, NULL, err);
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    struct error err = {0};

    if (argc != 3) {
        (void)fprintf(stderr, "usage: bench-http ADDRESS:PORT FILE\n");
        return 2;
    }
    if (start(&bench, argv[1], argv[2], &err) < 0) {
        (void)fprintf(stderr, "bench-http: %s\n", err.text);
        return 1;
    }
    loop_run(bench.loop);
    return 0;
}
