/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures layers and pausing, called as a library:  bench-layer PART --data DIR [--quick]
 * Prints a line each: "figure", what, rounds, and min, p50 and p90 in ns. Rows of one table are measured in turns, so that other work on
 * the machine meets all of them. The program is static and is also what runs in the boxes:  bench-layer guest WORD...
 */
#include "base/fd.h"
#include "base/mem.h"
#include "engine/files.h"
#include "layer.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct engine *engine;
struct volume *volume;
struct error err;
bool is_quick;

static char root_dir[4096];
static volatile sig_atomic_t is_stopped;

uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

void figure_note(struct figure *figure, uint64_t since_ns)
{
    if (figure->count < MAX_ROUNDS)
        figure->ns[figure->count++] = now_ns() - since_ns;
}

void figure_print(struct figure *figure, const char *name)
{
    if (figure->count == 0)
        return;
    qsort(figure->ns, figure->count, sizeof *figure->ns, compare);
    printf("figure\t%s\t%u\t%llu\t%llu\t%llu\n", name, figure->count,
           (unsigned long long)figure->ns[0], (unsigned long long)figure->ns[figure->count / 2],
           (unsigned long long)figure->ns[figure->count * 9 / 10]);
    (void)fflush(stdout);
    figure->count = 0;
}

void fail(const char *text)
{
    (void)fprintf(stderr, "bench-layer: %s\n", text);
    exit(is_stopped ? 130 : 1);
}

static void on_signal(int number)
{
    is_stopped = number;
}

void check_stopped(void)
{
    if (is_stopped)
        fail("stopped");
}

// ---- boxes ----

struct box *start(const char *const *saved, size_t n_saved)
{
    static const char *layers[] = {root_dir};
    struct box *box = NULL;
    struct box_spec spec = {
        .layers = layers,
        .n_layers = 1,
        .saved = saved,
        .n_saved = n_saved,
        .hold_fd = -1,
        .limits = {.memory_bytes = 1024 * MIB, .disk_bytes = 8192 * MIB, .max_processes = 1024}};
    check_stopped();
    DO(box_launch(engine, &spec, &box, &err));
    return box;
}

void stop(struct box *box)
{
    DO(box_end(box, &err));
    box_free(box);
}

static void spawn(struct box *box, uint32_t id, const char *const *argv)
{
    const char *const none[] = {NULL};
    struct process_spec spec = {.id = id,
                                .command.argv = argv,
                                .command.env = none,
                                .command.directory = "/",
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1};
    DO(box_spawn(box, &spec, NULL, &err));
}

void run(struct box *box, uint32_t id, const char *word, const char *more)
{
    const char *const argv[] = {"/bin/program", "guest", word, more, NULL};
    struct process_exit end;

    spawn(box, id, argv);
    DO(box_wait(box, id, -1, &end, &err));
    if (end.code != 0)
        fail("a command in a box failed");
}

// ---- pausing ----

static void freeze_some(unsigned count)
{
    static const char *const sleeper[] = {"/bin/program", "guest", "sleep", NULL};
    struct figure *frozen = xnew(struct figure), *woken = xnew(struct figure);
    char name[64];

    struct box *box = start(NULL, 0);
    for (uint32_t id = 1; id <= count; id++)
        spawn(box, id, sleeper);
    run(box, count + 1, "true", NULL); // those before it run by then
    for (unsigned round = 0; round < (is_quick ? 10 : 200); round++) {
        uint64_t begun = now_ns();
        DO(box_freeze(box, &err));
        figure_note(frozen, begun);
        begun = now_ns();
        DO(box_thaw(box, &err));
        figure_note(woken, begun);
    }
    stop(box);
    (void)snprintf(name, sizeof name, "freeze %u", count);
    figure_print(frozen, name);
    (void)snprintf(name, sizeof name, "wake %u", count);
    figure_print(woken, name);
    free(frozen);
    free(woken);
}

static void measure_freeze(void)
{
    freeze_some(1);
    freeze_some(10);
    freeze_some(100);
}

// ---- the guest ----

static int read_files(const char *directory)
{
    char name[64], bytes[64];

    for (unsigned i = 0; i < FILES_TO_READ; i++) {
        (void)snprintf(name, sizeof name, "%s/file-%u", directory, i);
        autofd fd = open(name, O_RDONLY | O_CLOEXEC);
        if (fd < 0 || read(fd, bytes, sizeof bytes) <= 0)
            return 1;
    }
    return 0;
}

static int guest(const char *word, const char *more)
{
    if (strcmp(word, "sleep") == 0)
        return (int)sleep(1000);
    if (strcmp(word, "read") == 0)
        return read_files(more);
    if (strcmp(word, "fill") == 0)
        return fill_for_guest(more);
    return 0;
}

// ---- from start to end ----

/* A root with nothing but this program in it. */
static void make_root(const char *data_dir)
{
    static const char *const dirs[] = {"", "/bin", "/etc", "/root"};
    char name[4200];

    (void)snprintf(root_dir, sizeof root_dir, "%s/root", data_dir);
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        (void)snprintf(name, sizeof name, "%s%s", root_dir, dirs[i]);
        DO(fd_make_dirs(name, 0755, &err));
    }
    autobuffer bytes = {.maximum = 64 * MIB};
    autofd from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    DO(fd_read_buffer(from, &bytes, &err));
    (void)snprintf(name, sizeof name, "%s/bin/program", root_dir);
    autofd to = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (to < 0 || fd_write_all(to, bytes.data, bytes.length) < 0)
        fail("the boxes' program could not be written");
}

static const struct {
    const char *name;
    void (*measure)(void);
} parts[] = {
    {"freeze", measure_freeze},
    {"chains", measure_chains},
    {"saves", measure_saves},
};

static void open_engine(const char *data_dir)
{
    struct engine_options options = {
        .data_dir = data_dir, .is_long_lived = true, .volume = {.size_bytes = 24576 * MIB}};
    const struct sigaction stop_at = {.sa_handler = on_signal};

    (void)sigaction(SIGINT, &stop_at, NULL);
    (void)sigaction(SIGTERM, &stop_at, NULL);
    make_root(data_dir);
    DO(engine_open(&options, &engine, &err));
    volume = engine_volume(engine);
}

int main(int argc, char **argv)
{
    if (argc >= 3 && strcmp(argv[1], "guest") == 0)
        return guest(argv[2], argc > 3 ? argv[3] : "");
    is_quick = argc == 5 && strcmp(argv[4], "--quick") == 0;
    if ((argc != 4 && !is_quick) || strcmp(argv[2], "--data") != 0) {
        (void)fprintf(stderr,
                      "usage: bench-layer freeze|chains|saves|detach --data DIR [--quick]\n");
        return 2;
    }
    if (strcmp(argv[1], "detach") == 0)
        return engine_detach(argv[3], &err) < 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        if (strcmp(argv[1], parts[i].name) != 0)
            continue;
        open_engine(argv[3]);
        parts[i].measure();
        engine_free(engine);
        return 0;
    }
    return 2;
}
