/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Terminals through the core, without HTTP: how long a key takes to come back, and what living terminals cost. Prints lines of tab-separated fields.
 * usage: bench-terminal echo DATA_DIR ROUNDS FLOODS | memory DATA_DIR COUNT
 * DATA_DIR must be empty; everything in it is ended when the program ends.
 */
#include "base/auto.h"
#include "base/error.h"
#include "base/id.h"
#include "base/mem.h"
#include "core/account/account.h"
#include "core/core.h"
#include "core/create.h"
#include "core/execution/execution.h"
#include "core/sandbox/sandbox.h"
#include "core/stream/stream.h"
#include "engine/box.h"

#include <dirent.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define GAP_US 20000  // between keys: a quick typist's are 60,000
#define PATIENCE_S 10 // for one key
#define FLOOD_WARMUP_S 2

static struct core *core;
static struct actor actor;

_Noreturn static void fail(const struct error *err)
{
    (void)fprintf(stderr, "bench-terminal: %s\n", err->text);
    exit(1);
}

#define MUST(call)                                                                                 \
    do {                                                                                           \
        struct error err = {0};                                                                    \
        if ((call) < 0)                                                                            \
            fail(&err);                                                                            \
    } while (0)

static double now_us(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void open_core(const char *data_dir)
{
    struct core_settings settings = core_settings_default;

    settings.data_dir = data_dir;
    settings.default_runtime = "host:latest";
    MUST(core_open(&settings, &core, &err));
    accounts_local_actor(core->accounts, &actor);
}

static void make_sandbox(char id[ID_TEXT])
{
    struct sandbox_request request = {.mode = SANDBOX_INTERACTIVE,
                                      .home = "/root",
                                      .usual.directory = "/root",
                                      .usual.timeout_ms = SANDBOX_DEFAULT,
                                      .idle_timeout_ms = SANDBOX_DEFAULT,
                                      .paused_timeout_ms = SANDBOX_DEFAULT};
    autoclear(sandbox_info) made = {0};

    MUST(sandbox_create(core, &actor, &request, &made, NULL, &err));
    (void)snprintf(id, ID_TEXT, "%s", made.id);
}

static void start(const char *sandbox, enum execution_kind kind, const char *script,
                  struct execution_info *out)
{
    const char *argv[] = {"sh", "-c", script, NULL};
    struct execution_request request = {
        .kind = kind, .command.argv = argv, .has_input = kind != EXECUTION_TERMINAL};

    MUST(execution_start(core->executions, &actor, sandbox, &request, out, &err));
}

// ---- how long a key takes ----

static sem_t has_news;

static void on_announce(void *data)
{
    (void)data;
    (void)sem_post(&has_news);
}

/* Until the stream has that many bytes and that was announced. */
static void await_size(struct stream *stream, uint64_t size)
{
    struct stream_progress progress;
    struct timespec end;

    (void)clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += PATIENCE_S;
    for (stream_progress(stream, &progress); progress.size_bytes < size;
         stream_progress(stream, &progress)) {
        if (sem_timedwait(&has_news, &end) < 0) {
            (void)fprintf(stderr, "bench-terminal: a key did not come back\n");
            exit(1);
        }
    }
}

static double press(const char *id, struct stream *stream, uint64_t size)
{
    size_t taken = 0;

    while (sem_trywait(&has_news) == 0)
        ;
    double before = now_us();
    MUST(execution_write_input(core->executions, &actor, id, "x", 1, &taken, &err));
    // Announced, and not only written: that is when a follower begins to send.
    (void)sem_wait(&has_news);
    await_size(stream, size);
    return now_us() - before;
}

static int compare(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void measure_echo(const char *name, const char *script, unsigned rounds)
{
    char sandbox[ID_TEXT];
    autoclear(execution_info) info = {0};
    autofree double *times = xcalloc(rounds, sizeof *times);
    autoptr(stream) stream = NULL;

    make_sandbox(sandbox);
    start(sandbox, EXECUTION_TERMINAL, script, &info);
    MUST(stream_open(core->streams, info.stdout_stream, &stream, &err));
    struct watch *watch = hub_watch(core->hub, info.stdout_stream, on_announce, NULL);
    await_size(stream, strlen("ready\r\n"));
    for (unsigned i = 0; i < rounds; i++) {
        (void)usleep(GAP_US);
        times[i] = press(info.id, stream, strlen("ready\r\n") + i + 1);
    }
    watch_free(watch);
    qsort(times, rounds, sizeof *times, compare);
    (void)printf("echo\t%s\t%.0f\t%.0f\t%.0f\t%.0f\n", name, times[rounds / 2],
                 times[rounds * 9 / 10], times[rounds * 99 / 100], times[rounds - 1]);
    (void)fflush(stdout);
}

static void run_echo(unsigned rounds, unsigned floods)
{
    char sandbox[ID_TEXT];

    (void)sem_init(&has_news, 0, 0);
    for (unsigned i = 0; i < floods; i++) {
        autoclear(execution_info) info = {0};
        make_sandbox(sandbox);
        start(sandbox, EXECUTION_JOB, "exec yes 'a line of a flood that nobody reads'", &info);
    }
    if (floods)
        (void)sleep(FLOOD_WARMUP_S);
    (void)printf("#\tby\tp50 us\tp90\tp99\tmax\t(%u keys, beside %u floods)\n", rounds, floods);
    measure_echo("the kernel (cooked)", "echo ready; exec sleep 100000", rounds);
    measure_echo("a program (raw, cat)", "stty raw -echo -onlcr; printf 'ready\\r\\n'; exec cat",
                 rounds);
}

// ---- what they cost ----

struct cost {
    double server_kib;  // resident
    double machine_kib; // that others could have had
    unsigned fds;
};

static double read_kib(const char *path, const char *label)
{
    autofree char *line = NULL;
    size_t size = 0;
    double value = 0;
    FILE *file = fopen(path, "re");

    while (file && getline(&line, &size, file) > 0) {
        if (strncmp(line, label, strlen(label)) == 0)
            value = strtod(line + strlen(label), NULL);
    }
    if (file)
        (void)fclose(file);
    return value;
}

static struct cost cost_now(void)
{
    struct cost cost = {.server_kib = read_kib("/proc/self/status", "VmRSS:"),
                        .machine_kib = read_kib("/proc/meminfo", "MemAvailable:")};
    DIR *dir = opendir("/proc/self/fd");

    while (dir && readdir(dir))
        cost.fds++;
    if (dir)
        (void)closedir(dir);
    return cost;
}

/* `count` of them, `EXECUTION_MAX_TERMINALS` to a sandbox, each with a byte sent and one shown. */
static void measure_cost(const char *name, enum execution_kind kind, unsigned count)
{
    unsigned n_boxes = (count + EXECUTION_MAX_TERMINALS - 1) / EXECUTION_MAX_TERMINALS;
    autofree char *boxes = xcalloc(n_boxes, ID_TEXT);
    size_t taken = 0;

    for (unsigned i = 0; i < n_boxes; i++)
        make_sandbox(boxes + (size_t)i * ID_TEXT);
    (void)sleep(1); // spare boxes are made again
    struct cost before = cost_now();
    for (unsigned i = 0; i < count; i++) {
        autoclear(execution_info) info = {0};
        start(boxes + (size_t)(i / EXECUTION_MAX_TERMINALS) * ID_TEXT, kind, "exec cat", &info);
        MUST(execution_write_input(core->executions, &actor, info.id, "x\n", 2, &taken, &err));
    }
    (void)sleep(1);
    struct cost after = cost_now();
    (void)printf(
        "memory\t%s\t%.1f\t%.1f\t%.2f\n", name, (after.server_kib - before.server_kib) / count,
        (before.machine_kib - after.machine_kib) / count, (double)(after.fds - before.fds) / count);
    (void)fflush(stdout);
    for (unsigned i = 0; i < n_boxes; i++)
        MUST(sandbox_delete(core->sandboxes, &actor, boxes + (size_t)i * ID_TEXT, &err));
    (void)sleep(2);
}

static void run_memory(unsigned count)
{
    (void)printf("#\teach\tserver KiB\tmachine KiB\tserver descriptors\t(%u living)\n", count);
    measure_cost("job with an input (cat)", EXECUTION_JOB, count);
    measure_cost("terminal (cat)", EXECUTION_TERMINAL, count);
}

/* What is still running goes with its sandbox. */
static void end_all(void)
{
    struct sandbox_filter filter = {.page = {.limit = 1000}};
    autoclear(sandbox_infos) found = {0};
    struct error err = {0};

    if (sandbox_list(core->sandboxes, &actor, &filter, &found, &err) < 0)
        fail(&err);
    for (size_t i = 0; i < found.count; i++)
        (void)sandbox_delete(core->sandboxes, &actor, found.items[i].id, &err);
    core_free(core);
}

int main(int argc, char **argv)
{
    bool is_echo = argc == 5 && strcmp(argv[1], "echo") == 0;
    bool is_memory = argc == 4 && strcmp(argv[1], "memory") == 0;
    struct error err = {0};

    if (!is_echo && !is_memory) {
        (void)fprintf(stderr, "usage: bench-terminal echo DATA_DIR ROUNDS FLOODS | "
                              "memory DATA_DIR COUNT\n");
        return 2;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    open_core(argv[2]);
    if (is_echo)
        run_echo((unsigned)atoi(argv[3]), (unsigned)atoi(argv[4]));
    else
        run_memory((unsigned)atoi(argv[3]));
    end_all();
    if (engine_end_boxes(argv[2], &err) < 0 || engine_detach(argv[2], &err) < 0)
        fail(&err);
    return 0;
}
