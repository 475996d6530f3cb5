/* SPDX-License-Identifier: Apache-2.0 */
/* The engine called as a library: cold and warm runs, runs a second, memory of a spare box. */
#include "bench.h"

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/spare_boxes.h"

#include <fcntl.h>
#include <string.h>
#include <sys/wait.h>

#define MIB (1ULL << 20)
#define READY_NETWORKS 4

static const char *const program[] = {"/bin/true", NULL};
static const char *const no_environment[] = {NULL};
static const struct box_bind host_usr = {.host = "/usr", .box = "/usr"};

struct library {
    struct engine *engine;
    struct spare_boxes *spares;
    const struct bench *bench;
    unsigned users; // rows that share it
};

static int open_engine(const struct bench *bench, uint64_t *step_ns, struct engine **out,
                       struct error *err)
{
    struct engine_options options = {
        .data_dir = bench->data_dir, .is_long_lived = true, .step_ns = step_ns};
    options.volume.size_bytes = 16384 * MIB;
    return engine_open(&options, out, err);
}

static struct box_spec make_spec(const struct bench *bench, bool is_one_shot)
{
    return (struct box_spec){
        .layers = &bench->root,
        .n_layers = 1,
        .binds = &host_usr,
        .n_binds = bench->has_host_usr,
        .hold_fd = -1,
        .limits = {.memory_bytes = 256 * MIB,
                   .cpu_millicores = 1000,
                   .disk_bytes = 256 * MIB,
                   .max_processes = 256},
        .max_inodes = 65536,
        .owner_loss = BOX_END,
        .is_one_shot = is_one_shot,
        .has_network = bench->has_network,
    };
}

/* Namespaces for the launches that come: with a wire each, or without. */
static int fill_networks(struct engine *engine, const struct bench *bench, struct error *err)
{
    return bench->has_network ? engine_fill_wires(engine, READY_NETWORKS, err)
                              : engine_fill_networks(engine, READY_NETWORKS, err);
}

static int launch(struct engine *engine, const struct bench *bench, struct box **out,
                  struct error *err)
{
    struct box_spec spec = make_spec(bench, true);
    return box_launch(engine, &spec, out, err);
}

static int open_spares(struct engine *engine, const struct bench *bench, bool is_one_shot,
                       unsigned count, struct spare_boxes **out, struct error *err)
{
    struct box_spec spec = make_spec(bench, is_one_shot);
    struct spare_boxes_options options = {.spec = &spec, .count = count, .warm_up = program};
    return spare_boxes_new(engine, &options, out, err);
}

static int run_program(struct box *box, struct error *err)
{
    struct process_spec spec = {.id = 1,
                                .command.argv = program,
                                .command.env = no_environment,
                                .command.directory = "/",
                                .output = OUTPUT_PIPE,
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1};
    struct process_exit end;
    if (box_spawn(box, &spec, NULL, err) < 0 || box_wait(box, spec.id, -1, &end, err) < 0)
        return -1;
    if (end.code)
        return error_set(err, ERROR_SYSTEM, "the program ended with %d %s", end.code, end.text);
    return 0;
}

static int end_box(struct box **box, struct error *err)
{
    int failed = *box ? box_end(*box, err) : 0;
    box_freep(box);
    *box = NULL;
    return failed;
}

struct library_row {
    struct library *library;
    struct box *box;
    bool is_warm;
};

static int library_prepare(struct row *row, struct error *err)
{
    struct library_row *own = row->data;
    struct library *library = own->library;
    unsigned made = 0;
    if (fill_networks(library->engine, library->bench, err) < 0)
        return -1;
    return own->is_warm ? spare_boxes_fill(library->spares, 1, false, &made, err) : 0;
}

static int library_run(struct row *row, struct error *err)
{
    struct library_row *own = row->data;
    struct box_spec spec = make_spec(own->library->bench, true);
    if (own->is_warm)
        own->box = spare_boxes_take(own->library->spares, &spec.limits);
    else if (launch(own->library->engine, own->library->bench, &own->box, err) < 0)
        return -1;
    if (!own->box)
        return error_set(err, ERROR_SYSTEM, "no box was waiting");
    return run_program(own->box, err);
}

static int library_settle(struct row *row, struct error *err)
{
    struct library_row *own = row->data;
    return end_box(&own->box, err);
}

static void library_clear(struct row *row)
{
    struct library_row *own = row->data;
    struct error err = {0};

    (void)end_box(&own->box, &err);
    if (--own->library->users == 0) {
        spare_boxes_free(own->library->spares);
        engine_free(own->library->engine);
        free(own->library);
    }
    free(own);
}

static void add_row(struct rows *rows, struct library *library, const char *name, bool is_warm)
{
    struct row *row = rows_add(rows, name);
    struct library_row *own = xnew(struct library_row);

    *own = (struct library_row){.library = library, .is_warm = is_warm};
    library->users++;
    row->prepare = library_prepare;
    row->run = library_run;
    row->settle = library_settle;
    row->clear = library_clear;
    row->data = own;
}

int library_add(struct rows *rows, const struct bench *bench, struct error *err)
{
    struct engine *engine = NULL;
    if (!bench->data_dir || !bench->root)
        return 0;
    if (open_engine(bench, NULL, &engine, err) < 0)
        return error_wrap(err, "open the engine");
    struct library *library = xnew(struct library);
    *library = (struct library){.engine = engine, .bench = bench};
    if (open_spares(engine, bench, true, 1, &library->spares, err) < 0) {
        engine_free(engine);
        free(library);
        return -1;
    }
    add_row(rows, library, "library cold", false);
    add_row(rows, library, "library warm", true);
    return 0;
}

/* One process's share of the sustained load: the number of runs until the deadline. */
static int work(const struct bench *bench, uint64_t deadline, uint64_t *runs, struct error *err)
{
    autoptr(engine) engine = NULL;
    if (open_engine(bench, NULL, &engine, err) < 0)
        return -1;
    while (bench_now_ns() < deadline && !bench_is_stopped()) {
        struct box *box = NULL;
        if (fill_networks(engine, bench, err) < 0 || launch(engine, bench, &box, err) < 0)
            return -1;
        int failed = run_program(box, err);
        if (end_box(&box, err) < 0 || failed)
            return -1;
        (*runs)++;
    }
    return 0;
}

static _Noreturn void work_and_exit(const struct bench *bench, uint64_t deadline, int report)
{
    struct error err = {0};
    uint64_t runs = 0;
    if (work(bench, deadline, &runs, &err) < 0) {
        (void)fprintf(stderr, "bench-launch: %s\n", err.text);
        _exit(1);
    }
    _exit(write(report, &runs, sizeof runs) != sizeof runs);
}

int bench_sustained(const struct bench *bench, struct error *err)
{
    int fds[2];
    uint64_t total = 0;
    uint64_t runs = 0;
    int failed = 0;

    if (pipe2(fds, O_CLOEXEC) < 0)
        return error_sys(err, "make a pipe");
    autofd reports = fds[0];
    autofd report = fds[1];
    uint64_t start = bench_now_ns();
    for (unsigned i = 0; i < bench->workers; i++) {
        pid_t pid = fork();
        if (pid == 0)
            work_and_exit(bench, start + bench->seconds * 1000000000ULL, report);
        if (pid < 0)
            return error_sys(err, "start a worker");
    }
    closep(&report);
    for (unsigned i = 0; i < bench->workers; i++) {
        int status = 0;
        failed |= wait(&status) < 0 || status;
    }
    double seconds = (double)(bench_now_ns() - start) / 1e9;
    if (failed)
        return error_set(err, ERROR_SYSTEM, "a worker failed");
    while (read(reports, &runs, sizeof runs) == sizeof runs)
        total += runs;
    printf("sustained\t%llu\t%.1f\t%.1f\n", (unsigned long long)total, seconds,
           (double)total / seconds);
    return 0;
}

enum { MAX_STEPS = 64 };

static int compare_numbers(const void *left, const void *right)
{
    const uint64_t *a = left;
    const uint64_t *b = right;
    return *a < *b ? -1 : *a > *b;
}

/* Where the time of a cold launch goes: p50 of each step in nanoseconds, in order. */
int bench_steps(const struct bench *bench, struct error *err)
{
    uint64_t began[MAX_STEPS + 1];
    autoptr(engine) engine = NULL;
    const char *const *names = engine_launch_steps();
    unsigned n_steps = 0;
    unsigned rounds = bench->rounds ? bench->rounds : 200;

    while (names[n_steps])
        n_steps++;
    autofree uint64_t *times = xcalloc((size_t)n_steps * rounds, sizeof *times);
    if (n_steps > MAX_STEPS || open_engine(bench, began, &engine, err) < 0)
        return -1;
    for (unsigned round = 0; round < rounds && !bench_is_stopped(); round++) {
        struct box *box = NULL;
        if (fill_networks(engine, bench, err) < 0 || launch(engine, bench, &box, err) < 0)
            return -1;
        began[n_steps] = bench_now_ns();
        for (unsigned i = 0; i < n_steps; i++)
            times[i * rounds + round] = began[i + 1] - began[i];
        if (end_box(&box, err) < 0)
            return -1;
    }
    for (unsigned i = 0; i < n_steps; i++) {
        qsort(times + i * rounds, rounds, sizeof *times, compare_numbers);
        printf("step\t%s\t%llu\n", names[i], (unsigned long long)times[i * rounds + rounds / 2]);
    }
    return 0;
}

static int read_available_bytes(uint64_t *out, struct error *err)
{
    char text[4096];
    if (fd_read_knob(AT_FDCWD, "/proc/meminfo", text, sizeof text, err) < 0)
        return -1;
    const char *line = strstr(text, "MemAvailable:");
    if (!line)
        return error_set(err, ERROR_SYSTEM, "/proc/meminfo has no MemAvailable");
    *out = strtoull(line + strlen("MemAvailable:"), NULL, 10) << 10;
    return 0;
}

static int fill(struct engine *engine, const struct bench *bench, struct spare_boxes *spares,
                struct error *err)
{
    unsigned count = bench->boxes;
    unsigned made = 0;
    while (spare_boxes_count(spares) < count && !bench_is_stopped()) {
        if (fill_networks(engine, bench, err) < 0 ||
            spare_boxes_fill(spares, READY_NETWORKS, false, &made, err) < 0)
            return error_wrap(err, "box %u", spare_boxes_count(spares));
    }
    return 0;
}

static int measure_memory(struct engine *engine, const struct bench *bench,
                          struct spare_boxes *spares, struct error *err)
{
    uint64_t before = 0;
    uint64_t after = 0;
    struct box *first = NULL;

    // the first box makes what all share; networks and dead superblocks are freed a moment later
    if (launch(engine, bench, &first, err) < 0 || end_box(&first, err) < 0)
        return -1;
    bench_sleep_ms(2000);
    if (read_available_bytes(&before, err) < 0 || fill(engine, bench, spares, err) < 0)
        return -1;
    bench_sleep_ms(2000);
    if (read_available_bytes(&after, err) < 0)
        return -1;
    printf("memory\t%u\t%.3f\n", bench->boxes,
           ((double)before - (double)after) / (double)bench->boxes / MIB);
    return 0;
}

int bench_memory(const struct bench *bench, struct error *err)
{
    autoptr(engine) engine = NULL;
    autoptr(spare_boxes) spares = NULL;

    if (open_engine(bench, NULL, &engine, err) < 0 ||
        open_spares(engine, bench, false, bench->boxes, &spares, err) < 0)
        return -1;
    return measure_memory(engine, bench, spares, err);
}

int bench_detach(const struct bench *bench, struct error *err)
{
    autoptr(engine) engine = NULL;
    if (open_engine(bench, false, &engine, err) < 0 || engine_sweep(engine, err) < 0 ||
        cgroup_root_remove(engine_cgroups(engine), err) < 0)
        return -1;
    engine_freep(&engine);
    engine = NULL;
    return volume_detach(bench->data_dir, err);
}
