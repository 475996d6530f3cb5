/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures layers and pausing, called as a library:  bench-layer DATA-DIR PROGRAM [WORD...]
 * PROGRAM is static and ends at once when called with WORD. Prints a line each: what, rounds, min, p50, p90 in µs.
 * Rows of one table are measured in turns, so that other work on the machine meets all of them.
 */
#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "engine/box.h"
#include "engine/files.h"
#include "engine/layer.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#define MIB (1ULL << 20)
#define MAX_ROUNDS 512

struct figure {
    const char *name;
    unsigned count;
    uint64_t ns[MAX_ROUNDS];
};

static struct engine *engine;
static struct volume *volume;
static char root_dir[4096];
static const char *const *program;
static struct error err;

#define DO(call)                                                                                   \
    do {                                                                                           \
        if ((call) < 0) {                                                                          \
            (void)fprintf(stderr, "bench-layer: %s\n", err.text);                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static uint64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void note(struct figure *figure, uint64_t since_ns)
{
    if (figure->count < MAX_ROUNDS)
        figure->ns[figure->count++] = now_ns() - since_ns;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static void print(struct figure *figure)
{
    if (figure->count == 0)
        return;
    qsort(figure->ns, figure->count, sizeof *figure->ns, compare);
    printf("%-44s %4u %9.0f %9.0f %9.0f\n", figure->name, figure->count,
           (double)figure->ns[0] / 1e3, (double)figure->ns[figure->count / 2] / 1e3,
           (double)figure->ns[figure->count * 9 / 10] / 1e3);
    (void)fflush(stdout);
}

/* Boxes */

static struct box *start(const char *const *saved, size_t n_saved, const char *scratch)
{
    static const char *layers[] = {root_dir};
    struct box *box = NULL;
    struct box_spec spec = {.layers = layers,
                            .n_layers = 1,
                            .saved = saved,
                            .n_saved = n_saved,
                            .hold_fd = -1,
                            .limits = {.memory_bytes = 1024 * MIB, .max_procs = 1024},
                            .disk = {.bytes = 8192 * MIB},
                            .scratch = scratch};
    DO(box_launch(engine, &spec, &box, &err));
    return box;
}

static void stop(struct box *box)
{
    DO(box_end(box, &err));
    box_free(box);
}

static void spawn(struct box *box, uint32_t id, const char *const *argv)
{
    const char *const none[] = {NULL};
    struct process_spec spec = {.id = id,
                                .argv = argv,
                                .env = none,
                                .cwd = "/",
                                .stdin_fd = -1,
                                .stdout_fd = -1,
                                .stderr_fd = -1};
    DO(box_spawn(box, &spec, NULL, &err));
}

static void run(struct box *box)
{
    struct process_exit end;
    spawn(box, 1, program);
    DO(box_wait(box, 1, -1, &end, &err));
}

/* Contents */

static void fill_bytes(int dir_fd, const char *name, uint64_t bytes)
{
    autofree char *chunk = xcalloc(1, MIB);
    autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    for (uint64_t done = 0; done < bytes; done += MIB) {
        memset(chunk, (int)(done >> 20) + 1, MIB);
        if (fd_write_all(fd, chunk, MIB) < 0) {
            perror("bench-layer: write");
            exit(1);
        }
    }
}

static void fill_files(int dir_fd, unsigned count)
{
    char name[24];
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "file-%u", i);
        autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        (void)!write(fd, name, strlen(name));
    }
}

static int make_scratch(const char *name)
{
    const struct volume_limits limits = {0};
    int fd = -1;
    DO(volume_scratch_create(volume, name, &limits, &fd, &err));
    int upper = openat(fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    (void)close(fd);
    return upper;
}

/* Saving and restoring */

static void measure_save(const char *name, unsigned rounds, uint64_t dirty_bytes)
{
    char title[4][64];
    const char *const words[] = {"save", "restore", "remove layer", "start from it"};
    struct figure *figures = xcalloc(4, sizeof *figures);
    const struct volume_limits none = {0};
    uint64_t bytes = 0;
    int fd = -1;

    for (unsigned i = 0; i < 4; i++) {
        (void)snprintf(title[i], sizeof title[i], "%s: %s", name, words[i]);
        figures[i].name = title[i];
    }
    DO(volume_scratch_open(volume, "bench", &fd, &err));
    for (unsigned i = 0; i < rounds; i++) {
        fill_bytes(fd, "upper/dirty", dirty_bytes);
        uint64_t begun = now_ns();
        DO(layer_save(volume, "bench", "bench", &bytes, &err));
        note(&figures[0], begun);
        begun = now_ns();
        DO(layer_restore(volume, "bench", bytes, "bench-2", &none, &err));
        note(&figures[1], begun);
        begun = now_ns();
        struct box *box = start((const char *const[]){"bench"}, 1, NULL);
        run(box);
        note(&figures[3], begun);
        stop(box);
        begun = now_ns();
        DO(layer_remove(volume, "bench", &err));
        note(&figures[2], begun);
    }
    DO(volume_scratch_remove(volume, "bench-2", &err));
    (void)close(fd);
    for (unsigned i = 0; i < 4; i++)
        print(&figures[i]);
    free(figures);
}

static void measure_saves(void)
{
    int upper = make_scratch("bench");
    fill_bytes(upper, "data", MIB);
    (void)syncfs(upper);
    measure_save("1 MiB on disk", 40, 0);
    fill_files(upper, 10000);
    (void)syncfs(upper);
    measure_save("10,000 files on disk", 40, 0);
    fill_bytes(upper, "data", 1024 * MIB);
    (void)syncfs(upper);
    measure_save("1 GiB and 10,000 files on disk", 40, 0);
    measure_save("the same, 1 MiB dirty", 20, MIB);
    measure_save("the same, 1 GiB dirty", 2, 1024 * MIB);
    (void)close(upper);
    DO(volume_scratch_remove(volume, "bench", &err));
}

/* Chains */

#define CHAIN 100

static int count_item(void *data, const struct files_item *item, struct error *unused)
{
    ++*(unsigned *)data;
    return 0;
}

static void list_files(struct box *box, struct figure *figure)
{
    unsigned count = 0;
    int conv = -1;
    DO(box_files(box, NULL, "/", &conv, &err));
    uint64_t begun = now_ns();
    DO(files_list(conv, "/many", true, 100000, count_item, &count, NULL, &err));
    note(figure, begun);
    (void)close(conv);
}

static void make_chain(const char **names, char (*texts)[16])
{
    for (unsigned i = 0; i < CHAIN; i++) {
        (void)snprintf(texts[i], 16, "chain-%u", i);
        names[CHAIN - 1 - i] = texts[i];
        int upper = make_scratch("bench");
        char name[24];
        if (i == 0) {
            (void)mkdirat(upper, "many", 0755);
            int many = openat(upper, "many", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
            fill_files(many, 1000);
            (void)close(many);
        }
        (void)snprintf(name, sizeof name, "only-%u", i);
        fill_bytes(upper, name, MIB / 16);
        (void)close(upper);
        DO(layer_save(volume, "bench", texts[i], NULL, &err));
    }
    DO(volume_scratch_remove(volume, "bench", &err));
}

static void measure_chains(void)
{
    static const unsigned depths[] = {0, 1, 10, 20, 50, 100};
    static const char *const titles[] = {"start: runtime",     "start: chain of 1",
                                         "start: chain of 10", "start: chain of 20",
                                         "start: chain of 50", "start: chain of 100"};
    static const char *const lists[] = {"",
                                        "list 1,000 files: chain of 1",
                                        "list: chain of 10",
                                        "list: chain of 20",
                                        "list: chain of 50",
                                        "list: chain of 100"};
    static const char *const ends[] = {"end: runtime",     "end: chain of 1",  "end: chain of 10",
                                       "end: chain of 20", "end: chain of 50", "end: chain of 100"};
    struct figure *starts = xcalloc(6, sizeof *starts);
    struct figure *listing = xcalloc(6, sizeof *listing);
    struct figure *ending = xcalloc(6, sizeof *ending);
    const char *names[CHAIN];
    char texts[CHAIN][16];

    make_chain(names, texts);
    for (unsigned round = 0; round < 150; round++) {
        for (unsigned i = 0; i < ARRAY_SIZE(depths); i++) {
            starts[i].name = titles[i];
            listing[i].name = lists[i];
            ending[i].name = ends[i];
            DO(engine_fill_networks(engine, 4, &err));
            uint64_t begun = now_ns();
            struct box *box = start(names + CHAIN - depths[i], depths[i], NULL);
            run(box);
            note(&starts[i], begun);
            if (depths[i] > 0 && round < 20)
                list_files(box, &listing[i]);
            begun = now_ns();
            stop(box);
            note(&ending[i], begun);
        }
    }
    for (unsigned i = 0; i < 6; i++)
        print(&starts[i]);
    for (unsigned i = 0; i < 6; i++)
        print(&ending[i]);
    for (unsigned i = 0; i < 6; i++)
        print(&listing[i]);
    struct figure *merge = xcalloc(1, sizeof *merge);
    merge->name = "merge 100 layers, 1,100 files";
    for (unsigned i = 0; i < 3; i++) {
        uint64_t begun = now_ns();
        DO(layer_merge(volume, names, CHAIN, "merged", NULL, NULL, &err));
        note(merge, begun);
        DO(layer_remove(volume, "merged", &err));
    }
    print(merge);
    for (unsigned i = 0; i < CHAIN; i++)
        DO(layer_remove(volume, names[i], &err));
    free(starts);
    free(listing);
    free(ending);
    free(merge);
}

/* Pausing */

static void measure_freeze(const char *const *sleeper)
{
    static const unsigned counts[] = {1, 10, 100};
    static const char *const titles[][2] = {{"freeze 1 process", "thaw 1 process"},
                                            {"freeze 10 processes", "thaw 10 processes"},
                                            {"freeze 100 processes", "thaw 100 processes"}};
    for (unsigned i = 0; i < ARRAY_SIZE(counts); i++) {
        struct figure *figures = xcalloc(2, sizeof *figures);
        struct box *box = start(NULL, 0, NULL);
        for (uint32_t id = 1; id <= counts[i]; id++)
            spawn(box, id, sleeper);
        struct timespec settle = {.tv_nsec = 300000000};
        (void)nanosleep(&settle, NULL);
        for (unsigned round = 0; round < 100; round++) {
            uint64_t begun = now_ns();
            DO(box_freeze(box, &err));
            note(&figures[0], begun);
            begun = now_ns();
            DO(box_thaw(box, &err));
            note(&figures[1], begun);
        }
        stop(box);
        for (unsigned j = 0; j < 2; j++) {
            figures[j].name = titles[i][j];
            print(&figures[j]);
        }
        free(figures);
    }
}

static void make_root(const char *data_dir, const char *path)
{
    static const char *const dirs[] = {"", "/bin", "/etc", "/root"};
    char name[4200];
    (void)snprintf(root_dir, sizeof root_dir, "%s/root", data_dir);
    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
        (void)snprintf(name, sizeof name, "%s%s", root_dir, dirs[i]);
        DO(fd_make_dirs(name, 0755, &err));
    }
    autobuffer bytes = {.maximum = 64 * MIB};
    autofd from = open(path, O_RDONLY | O_CLOEXEC);
    DO(fd_read_buffer(from, &bytes, &err));
    (void)snprintf(name, sizeof name, "%s/bin/program", root_dir);
    autofd to = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
    if (to < 0 || fd_write_all(to, bytes.data, bytes.length) < 0)
        exit(1);
}

int main(int argc, char **argv)
{
    if (argc < 3) {
        (void)fprintf(stderr, "usage: bench-layer DATA-DIR PROGRAM [WORD...]\n");
        return 2;
    }
    struct engine_options options = {
        .data_dir = argv[1], .is_long_lived = true, .volume = {.size_bytes = 16384 * MIB}};
    make_root(argv[1], argv[2]);
    argv[2] = (char *)"/bin/program";
    program = (const char *const *)argv + 2;
    DO(engine_open(&options, &engine, &err));
    volume = engine_volume(engine);
    printf("%-44s %4s %9s %9s %9s\n", "µs", "n", "min", "p50", "p90");
    const char *const sleeper[] = {"/bin/program", "sleep", "1000", NULL};
    measure_freeze(sleeper);
    measure_chains();
    measure_saves();
    engine_free(engine);
    DO(engine_detach(argv[1], &err));
    return 0;
}
