/* SPDX-License-Identifier: Apache-2.0 */
/* Keeping files as layers, starting from them, going back, and copying them as cp(1) does; see bench-layer.c. */
#include "base/fd.h"
#include "base/mem.h"
#include "layer.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

// ---- contents ----

void fill_bytes(int dir_fd, const char *name, uint64_t bytes)
{
    size_t piece = bytes < MIB ? (size_t)bytes : MIB;
    autofree char *chunk = xcalloc(1, piece);
    autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

    for (uint64_t done = 0; done < bytes; done += piece) {
        memset(chunk, (int)(done >> 20) + 1, piece);
        if (fd_write_all(fd, chunk, piece) < 0)
            fail("content could not be written");
    }
}

void fill_files(int dir_fd, unsigned count)
{
    char name[24];

    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(name, sizeof name, "file-%u", i);
        autofd fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        if (write(fd, name, strlen(name)) < 0)
            fail("content could not be written");
    }
}

static void fill_mebibyte(int dir_fd)
{
    fill_bytes(dir_fd, "data", MIB);
}

static void fill_many(int dir_fd)
{
    fill_files(dir_fd, 10000);
}

static void fill_gibibyte(int dir_fd)
{
    fill_bytes(dir_fd, "data", 1024 * MIB);
}

static const struct content {
    const char *name;
    void (*fill)(int dir_fd);
    unsigned rounds, dirty_rounds, copies;
} contents[] = {
    {"1 MiB", fill_mebibyte, 80, 20, 5},
    {"10,000 files", fill_many, 80, 5, 3},
    {"1 GiB", fill_gibibyte, 80, 3, 2},
};
#define N_CONTENTS (sizeof contents / sizeof *contents)

int fill_for_guest(const char *name)
{
    for (size_t i = 0; i < N_CONTENTS; i++) {
        if (strcmp(contents[i].name, name) == 0) {
            contents[i].fill(AT_FDCWD);
            sync();
            return 0;
        }
    }
    return 2;
}

int make_scratch(const char *name)
{
    const struct volume_limits limits = {0};
    autofd fd = -1;

    DO(volume_scratch_create(volume, name, &limits, &fd, &err));
    int upper = openat(fd, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (upper < 0)
        fail("the scratch has no files");
    return upper;
}

// ---- cp ----

/* Until the copy is on the disk, as a layer is. */
static void copy(const char *how, int from_fd, int to_fd, struct figure *figure)
{
    autofree char *from = xasprintf("/proc/%d/fd/%d/content", (int)getpid(), from_fd);
    autofree char *to = xasprintf("/proc/%d/fd/%d/copy", (int)getpid(), to_fd);
    char *argv[] = {(char *)"cp", (char *)"-a", (char *)how, from, to, NULL};
    pid_t pid = -1;
    int status = -1;

    check_stopped();
    uint64_t begun = now_ns();
    int code = posix_spawnp(&pid, "cp", NULL, NULL, argv, environ);
    while (code == 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    if (code != 0 || status != 0) {
        (void)fprintf(stderr, "bench-layer: cp %s does not work here\n", how);
        return;
    }
    (void)syncfs(to_fd);
    figure_note(figure, begun);
    DO(fd_remove_tree(to_fd, "copy", &err));
}

// ---- rows ----

enum { SAVE, RESTORE, FIRST_RUN, COLD, REFLINK, COPY, DIRTY, FIGURES };
static const char *const words[] = {
    [SAVE] = "save",       [RESTORE] = "restore", [FIRST_RUN] = "first run", [COLD] = "cold",
    [REFLINK] = "reflink", [COPY] = "cp",         [DIRTY] = "dirty",
};

static void first_run(const char *const *saved, size_t n_saved, struct figure *figure)
{
    DO(engine_fill_networks(engine, 4, &err));
    uint64_t begun = now_ns();
    struct box *box = start(saved, n_saved);
    run(box, 1, "true", NULL);
    figure_note(figure, begun);
    stop(box);
}

static void save(struct figure *figure, uint64_t *bytes)
{
    uint64_t begun = now_ns();
    DO(layer_save(volume, "bench", "bench", bytes, &err));
    figure_note(figure, begun);
}

/* A start from it in every second round, else one from the runtime: right after the same. */
static void save_and_use(struct figure *figures, unsigned round)
{
    static const char *const saved[] = {"bench"};
    const struct volume_limits none = {0};
    bool is_from_it = round % 2 == 0;
    uint64_t bytes = 0;

    save(&figures[SAVE], &bytes);
    uint64_t begun = now_ns();
    DO(layer_restore(volume, "bench", bytes, "bench-2", &none, &err));
    figure_note(&figures[RESTORE], begun);
    first_run(saved, is_from_it ? 1 : 0, &figures[is_from_it ? FIRST_RUN : COLD]);
    DO(layer_remove(volume, "bench", &err));
}

static void measure_dirty(const struct content *content, int upper, struct figure *figures)
{
    unsigned rounds = is_quick ? 1 : content->dirty_rounds;

    for (unsigned i = 0; i < rounds; i++) {
        DO(fd_remove_tree(upper, "content", &err));
        (void)syncfs(upper);
        (void)mkdirat(upper, "content", 0755);
        autofd dir = openat(upper, "content", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        content->fill(dir);
        uint64_t bytes = 0;
        save(&figures[DIRTY], &bytes);
        DO(layer_remove(volume, "bench", &err));
    }
}

static void measure_content(const struct content *content)
{
    struct figure *figures = xcalloc(FIGURES, sizeof *figures);
    char name[64];
    int upper = make_scratch("bench"), other = make_scratch("bench-copy");

    measure_dirty(content, upper, figures);
    (void)syncfs(upper);
    for (unsigned i = 0; i < (is_quick ? 2 : content->rounds); i++)
        save_and_use(figures, i);
    for (unsigned i = 0; i < (is_quick ? 1 : content->copies); i++) {
        copy("--reflink=always", upper, other, &figures[REFLINK]);
        copy("--reflink=never", upper, other, &figures[COPY]);
    }
    (void)close(upper);
    (void)close(other);
    for (unsigned i = 0; i < FIGURES; i++) {
        (void)snprintf(name, sizeof name, "%s %s", words[i], content->name);
        figure_print(&figures[i], name);
    }
    DO(volume_scratch_remove(volume, "bench", &err));
    DO(volume_scratch_remove(volume, "bench-2", &err));
    DO(volume_scratch_remove(volume, "bench-copy", &err));
    free(figures);
}

void measure_saves(void)
{
    for (size_t i = 0; i < N_CONTENTS; i++)
        measure_content(&contents[i]);
}
