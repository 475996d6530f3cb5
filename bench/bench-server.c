/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures a running server over HTTP, as bench/server asks. Prints lines of tab-separated fields.
 * usage: bench-server rounds|sustained|sync ADDRESS KEY ROUNDS|SECONDS GAP_MS|CALLERS RUNTIME [ROW]
 * ROW: rounds of this one alone, for looking into the server meanwhile.
 */
#include "base/auto.h"
#include "base/mem.h"
#include "client.h"

#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { CALLS, POLLS, OUTPUTS, ERRORS, CLIENTS };

/* One caller: a connection for each thing that is waited for at once, as the SDK has. */
struct caller {
    struct client clients[CLIENTS];
    const char *key;
    const char *runtime;
    char sandbox[64]; // for execute
};

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int caller_open(struct caller *caller, const char *address, struct error *err)
{
    for (int i = 0; i < CLIENTS; i++) {
        if (client_open(&caller->clients[i], address, err) < 0)
            return -1;
    }
    return 0;
}

/* Behind the answer to a POST: its end and both its outputs, asked for at once. */
static int see_to_the_end(struct caller *caller, struct error *err)
{
    char execution[64], output[64], errors[64], path[200];
    const struct client *answer = &caller->clients[CALLS];

    if (client_field(answer, "executionId", execution, sizeof execution, err) < 0)
        return -1;
    const char *out = strstr(answer->body, "/stream/stream_");
    const char *second = out ? strstr(out + 8, "/stream/stream_") : NULL;
    if (!second)
        return error_set(err, ERROR_INVALID, "no streams in: %.200s", answer->body);
    (void)snprintf(output, sizeof output, "%.*s", (int)strcspn(out, "\""), out);
    (void)snprintf(errors, sizeof errors, "%.*s", (int)strcspn(second, "\""), second);
    (void)snprintf(path, sizeof path, "/sandbox/execution/%s?wait=1m", execution);
    if (client_send(&caller->clients[POLLS], "GET", path, caller->key, NULL, err) < 0 ||
        client_send(&caller->clients[OUTPUTS], "GET", output, caller->key, NULL, err) < 0 ||
        client_send(&caller->clients[ERRORS], "GET", errors, caller->key, NULL, err) < 0 ||
        client_receive(&caller->clients[OUTPUTS], err) < 0 ||
        client_receive(&caller->clients[ERRORS], err) < 0 ||
        client_receive(&caller->clients[POLLS], err) < 0)
        return -1;
    if (!strstr(caller->clients[POLLS].body, "\"exitCode\":0"))
        return error_set(err, ERROR_SYSTEM, "it did not end well: %.300s",
                         caller->clients[POLLS].body);
    return 0;
}

static int call(struct caller *caller, const char *path, const char *body, struct error *err)
{
    if (client_send(&caller->clients[CALLS], "POST", path, caller->key, body, err) < 0)
        return -1;
    return client_receive(&caller->clients[CALLS], err);
}

static int run_spawn(struct caller *caller, struct error *err)
{
    char *argv[] = {(char *)"/bin/true", NULL};
    pid_t pid = 0;
    int status = 0;

    (void)caller;
    int code = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
    if (code != 0)
        return error_sys_code(err, code, "start /bin/true");
    return waitpid(pid, &status, 0) < 0 ? error_sys(err, "wait for /bin/true") : 0;
}

static int run_one_shot(struct caller *caller, struct error *err)
{
    char body[256];
    (void)snprintf(body, sizeof body,
                   "{\"runtime\":\"%s\",\"command\":{\"exec\":[\"/bin/"
                   "true\"],\"mode\":\"oneshot\"},\"stream\":{}}",
                   caller->runtime);
    if (call(caller, "/sandbox", body, err) < 0)
        return -1;
    return see_to_the_end(caller, err);
}

static int run_execute(struct caller *caller, struct error *err)
{
    char path[128];

    if (!caller->sandbox[0]) {
        char body[128];
        (void)snprintf(body, sizeof body, "{\"runtime\":\"%s\"}", caller->runtime);
        if (call(caller, "/sandbox", body, err) < 0 ||
            client_field(&caller->clients[CALLS], "sandboxId", caller->sandbox,
                         sizeof caller->sandbox, err) < 0)
            return -1;
    }
    (void)snprintf(path, sizeof path, "/sandbox/%s/execute", caller->sandbox);
    if (call(caller, path, "{\"command\":[\"/bin/true\"]}", err) < 0)
        return -1;
    return see_to_the_end(caller, err);
}

/* burrow's own API: one call is the whole run, outputs and all. */
static int run_run(struct caller *caller, struct error *err)
{
    char body[256];

    (void)snprintf(body, sizeof body, "{\"runtime\":\"%s\",\"command\":[\"/bin/true\"]}",
                   caller->runtime);
    if (call(caller, "/api/v1/run", body, err) < 0)
        return -1;
    if (!strstr(caller->clients[CALLS].body, "\"exitCode\":0"))
        return error_set(err, ERROR_SYSTEM, "it did not end well: %.300s",
                         caller->clients[CALLS].body);
    return 0;
}

static const struct row {
    const char *name;
    int (*run)(struct caller *caller, struct error *err);
    bool may_be_absent; // earlier servers have no such route
} rows[] = {
    {"posix_spawn", run_spawn},
    {"one-shot", run_one_shot},
    {"run", run_run, .may_be_absent = true},
    {"execute", run_execute},
};
#define N_ROWS (sizeof rows / sizeof *rows)

static int rounds(struct caller *caller, unsigned count, unsigned gap_ms, const char *only,
                  struct error *err)
{
    const struct timespec gap = {gap_ms / 1000, (long)(gap_ms % 1000) * 1000000};
    bool is_absent[N_ROWS] = {0};

    for (unsigned round = 0; round < count + 2; round++) {
        for (unsigned i = 0; i < N_ROWS; i++) {
            if (is_absent[i] || (only && strcmp(only, rows[i].name) != 0))
                continue;
            if (gap_ms)
                (void)nanosleep(&gap, NULL);
            uint64_t start = now_ns();
            bool is_done = rows[i].run(caller, err) == 0;
            is_absent[i] = !is_done && round == 0 && rows[i].may_be_absent;
            if (!is_done && !is_absent[i])
                return error_wrap(err, "%s", rows[i].name);
            if (round >= 2) // the first ones warm up
                (void)printf("round\t%s\t%llu\n", rows[i].name,
                             (unsigned long long)(now_ns() - start));
        }
    }
    return 0;
}

/* Aionis: one call is the whole run. */
static int run_sync(struct caller *caller, struct error *err)
{
    char body[256];

    if (!caller->sandbox[0] && (call(caller, "/v1/memory/sandbox/sessions", "{}", err) < 0 ||
                                client_field(&caller->clients[CALLS], "session_id", caller->sandbox,
                                             sizeof caller->sandbox, err) < 0))
        return -1;
    (void)snprintf(body, sizeof body,
                   "{\"session_id\":\"%s\",\"mode\":\"sync\",\"action\":{\"kind\":\"command\","
                   "\"argv\":[\"echo\",\"hi\"]}}",
                   caller->sandbox);
    if (call(caller, "/v1/memory/sandbox/execute", body, err) < 0)
        return -1;
    if (!strstr(caller->clients[CALLS].body, "\"stdout\":\"hi\\n\""))
        return error_set(err, ERROR_SYSTEM, "it did not end well: %.300s",
                         caller->clients[CALLS].body);
    return 0;
}

/* What a program does that wants the output of another: starts it with a pipe, reads that to its end, waits. */
static int run_spawn_echo(struct caller *caller, struct error *err)
{
    char *argv[] = {(char *)"/bin/echo", (char *)"hi", NULL};
    posix_spawn_file_actions_t actions;
    int ends[2], status = 0;
    char text[16];
    pid_t pid = 0;

    (void)caller;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    (void)posix_spawn_file_actions_init(&actions);
    (void)posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    int code = posix_spawn(&pid, argv[0], &actions, NULL, argv, environ);
    (void)posix_spawn_file_actions_destroy(&actions);
    (void)close(ends[1]);
    while (code == 0 && read(ends[0], text, sizeof text) > 0)
        ;
    (void)close(ends[0]);
    if (code != 0)
        return error_sys_code(err, code, "start /bin/echo");
    return waitpid(pid, &status, 0) < 0 ? error_sys(err, "wait for /bin/echo") : 0;
}

struct load {
    struct caller caller;
    int (*run)(struct caller *caller, struct error *err);
    const char *row; // whose times are printed; NULL: none are
    const char *address;
    uint64_t until_ns;
    atomic_uint *runs;
    struct error err;
    bool has_failed;
};

static void *run_load(void *data)
{
    struct load *load = data;

    if (caller_open(&load->caller, load->address, &load->err) < 0) {
        load->has_failed = true;
        return NULL;
    }
    for (uint64_t start; (start = now_ns()) < load->until_ns && !load->has_failed;) {
        if (load->run(&load->caller, &load->err) < 0)
            load->has_failed = true;
        else
            (*load->runs)++;
        if (load->row)
            (void)printf("call\t%s\t%llu\n", load->row, (unsigned long long)(now_ns() - start));
    }
    return NULL;
}

static int sustained(const struct load *like, unsigned seconds, unsigned callers, struct error *err)
{
    autofree struct load *loads = xcalloc(callers, sizeof *loads);
    autofree pthread_t *threads = xcalloc(callers, sizeof *threads);
    atomic_uint runs = 0;
    uint64_t start = now_ns();

    for (unsigned i = 0; i < callers; i++) {
        loads[i] = *like;
        loads[i].runs = &runs;
        loads[i].until_ns = start + (uint64_t)seconds * 1000000000u;
        (void)pthread_create(&threads[i], NULL, run_load, &loads[i]);
    }
    for (unsigned i = 0; i < callers; i++)
        (void)pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < callers; i++) {
        if (loads[i].has_failed) {
            *err = loads[i].err;
            return -1;
        }
    }
    (void)printf("%s\t%u\t%.1f\n", like->row ? like->row : "sustained", callers,
                 runs / ((double)(now_ns() - start) / 1e9));
    return 0;
}

/* Both with as many callers, one after the other. */
static int sync_runs(struct load *load, unsigned seconds, unsigned callers, struct error *err)
{
    load->run = run_spawn_echo;
    load->row = "posix_spawn";
    if (sustained(load, seconds, callers, err) < 0)
        return -1;
    load->run = run_sync;
    load->row = "sync execute";
    return sustained(load, seconds, callers, err);
}

int main(int argc, char **argv)
{
    struct caller caller = {0};
    struct load load = {.run = run_one_shot};
    struct error err = {0};
    int result = -1;

    if (argc != 7 && argc != 8) {
        (void)fputs("usage: bench-server rounds|sustained|sync ADDRESS KEY ROUNDS|SECONDS "
                    "GAP_MS|CALLERS RUNTIME [ROW]\n",
                    stderr);
        return 2;
    }
    caller.key = argv[3];
    caller.runtime = argv[6];
    unsigned first = (unsigned)atoi(argv[4]);
    unsigned second = (unsigned)atoi(argv[5]);
    load.caller = caller;
    load.address = argv[2];
    if (strcmp(argv[1], "sustained") == 0)
        result = sustained(&load, first, second, &err);
    else if (strcmp(argv[1], "sync") == 0)
        result = sync_runs(&load, first, second, &err);
    else if (caller_open(&caller, argv[2], &err) == 0)
        result = rounds(&caller, first, second, argv[7], &err);
    if (result < 0)
        (void)fprintf(stderr, "bench-server: %s\n", err.text);
    return result < 0;
}
