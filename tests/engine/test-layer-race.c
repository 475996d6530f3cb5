/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers saved from, and differences of, a scratch in which directories, links, files, pipes, sockets and overlay's own marks are exchanged
 * all the time. Where saving costs nothing it is one instant; elsewhere it is a walk, which has to bear it although a copied box is
 * frozen: PID 1 is not. Needs root.
 */
#include "engine/layer_fixture.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#ifndef RENAME_EXCHANGE
#define RENAME_EXCHANGE 2
#endif

#define ROUNDS 20
#define SECRET "outside, and of no box"

static const struct volume_options in_memory = {.scheme = VOLUME_TMPFS};

static const char *const pairs[][2] = {
    {"dir", "dir-link"}, {"up", "up-link"},    {"file", "file-link"}, {"sock", "sock-file"},
    {"fifo", "some"},    {"gone", "whiteout"}, {"kind", "kind-dir"},  {"a/b/c", "z"},
};

static struct swapper {
    pthread_t thread;
    int fd; // what the box wrote
    atomic_bool is_over;
    atomic_uint turns;
} swapper = {.fd = -1};

static void *swap_for_ever(void *unused)
{
    (void)unused;
    while (!swapper.is_over) {
        for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
            (void)syscall(SYS_renameat2, swapper.fd, pairs[i][0], swapper.fd, pairs[i][1],
                          RENAME_EXCHANGE);
        swapper.turns++;
    }
    return NULL;
}

static void stop_swapping(void)
{
    if (swapper.fd < 0)
        return;
    swapper.is_over = true;
    CHECK(pthread_join(swapper.thread, NULL) == 0);
    closep(&swapper.fd);
}

static void put(int fd, const char *path, const char *text)
{
    autofd file = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    CHECK(file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text));
}

static void outside_path(char out[200], const char *name)
{
    (void)snprintf(out, 200, "%s/outside/%s", places.base, name);
}

static void plant(int fd)
{
    char outside[200], up[400] = "";
    static const char *const dirs[] = {"dir", "up", "kind-dir", "a", "a/b", "a/b/c", "a/b/c/d"};
    static const char *const files[] = {"dir/canary", "up/canary", "file",           "sock-file",
                                        "some",       "gone",      "a/b/c/d/canary", "kind"};

    for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
        CHECK(mkdirat(fd, dirs[i], 0755) == 0);
    for (size_t i = 0; i < ARRAY_SIZE(files); i++)
        put(fd, files[i], "inside");
    CHECK(mkdirat(fd, "z", 0755) == 0);
    outside_path(outside, "");
    for (unsigned i = 0; i < 20; i++)
        (void)snprintf(up + strlen(up), sizeof up - strlen(up), "../");
    (void)snprintf(up + strlen(up), sizeof up - strlen(up), "%s", outside + 1);
    CHECK(symlinkat(outside, fd, "dir-link") == 0 && symlinkat(up, fd, "up-link") == 0);
    outside_path(outside, "canary");
    CHECK(symlinkat(outside, fd, "file-link") == 0);
    CHECK(mknodat(fd, "sock", S_IFSOCK | 0600, 0) == 0 &&
          mknodat(fd, "fifo", S_IFIFO | 0600, 0) == 0);
    CHECK(mknodat(fd, "whiteout", S_IFCHR, makedev(0, 0)) == 0);
}

/* A scratch "s" in which everything is exchanged from now on. */
static struct volume *begin(const struct volume_options *options)
{
    char outside[200];

    stop_swapping(); // of a test that failed
    fresh_places();
    if (options->scheme == VOLUME_LOOP_BTRFS)
        need_loop_devices();
    outside_path(outside, "");
    CHECK(mkdir(outside, 0755) == 0);
    outside_path(outside, "canary");
    put(AT_FDCWD, outside, SECRET);
    struct volume *volume = open_volume(places.data, options);
    autofd scratch = make_scratch(volume, "s", 64 * MIB, 0);
    int upper = openat(scratch, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(upper >= 0);
    plant(upper);
    swapper.is_over = false;
    swapper.turns = 0;
    swapper.fd = upper;
    CHECK(pthread_create(&swapper.thread, NULL, swap_for_ever, NULL) == 0);
    while (swapper.turns == 0)
        (void)sched_yield();
    return volume;
}

static void end(struct volume *volume)
{
    char outside[200], kept[64];
    struct error err = {0};

    stop_swapping();
    outside_path(outside, "canary");
    CHECK_OK(fd_read_knob(AT_FDCWD, outside, kept, sizeof kept, &err), err);
    CHECK_STR(kept, SECRET);
    CHECK(unlink(outside) == 0);
    outside_path(outside, "");
    CHECK(rmdir(outside) == 0); // nothing else came there
    volume_free(volume);
}

/* Nothing that was read is from outside. */
static void check_file(int fd)
{
    char text[256];
    ssize_t got = pread(fd, text, sizeof text, 0);
    CHECK(got >= 0 && !memmem(text, (size_t)got, "outside", 7));
}

static int look_at(void *data, const struct layer_change *change, struct error *err)
{
    (void)err;
    ++*(unsigned *)data;
    if (change->fd >= 0)
        check_file(change->fd);
    return 0;
}

static void check_diff(struct volume *volume, const struct layer_stack *from,
                       const struct layer_stack *to, unsigned *seen)
{
    const struct layer_diff_options options = {.is_base_compared = true};
    struct error err = {0};
    CHECK_OK(layer_diff(volume, from, to, &options, look_at, seen, NULL, &err), err);
}

static void check_open(struct volume *volume, const struct layer_stack *stack)
{
    static const char *const paths[] = {"dir/canary", "up/canary",      "file",
                                        "sock",       "fifo",           "gone",
                                        "kind",       "a/b/c/d/canary", "z/d/canary"};
    for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
        struct error err = {0};
        autofd fd = -1;
        if (layer_open_file(volume, stack, paths[i], &fd, &err) == 0)
            check_file(fd);
        else
            CHECK(error_is(&err, ERROR_NOT_FOUND));
    }
}

static void race(const struct volume_options *options)
{
    static const char *const saved[] = {"l"};
    const struct layer_stack nothing = {0}, living = {.scratch = "s"},
                             layer = {.saved = saved, .n_saved = 1};
    struct volume *volume = begin(options);
    unsigned seen = 0;

    for (unsigned round = 0; race_goes_on(round, ROUNDS); round++) {
        struct error err = {0};
        CHECK_OK(layer_save(volume, "s", "l", NULL, &err), err);
        check_diff(volume, &nothing, &layer, &seen);
        check_diff(volume, &nothing, &living, &seen);
        check_diff(volume, &layer, &living, &seen);
        check_open(volume, &living);
        check_open(volume, &layer);
        CHECK_OK(
            layer_restore(volume, "l", 0, "r", &(struct volume_limits){.bytes = 64 * MIB}, &err),
            err);
        CHECK_OK(volume_scratch_remove(volume, "r", &err), err);
        CHECK_OK(layer_remove(volume, "l", &err), err);
    }
    CHECK(seen > 0);
    end(volume);
}

TEST(layers_of_a_living_scratch_in_memory_hold_nothing_from_outside)
{
    race(&in_memory);
}

TEST(layers_of_a_living_scratch_on_btrfs_hold_nothing_from_outside)
{
    race(&loop);
}
