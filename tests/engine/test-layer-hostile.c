/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of layers that guests made to mislead or to wear out whoever reads them. Needs root. */
#include "base/mem.h"
#include "engine/layer_fixture.h"
#include "engine/layer_impl.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

static const struct volume_options in_memory = {.scheme = VOLUME_TMPFS};

static char base_dir[200];

static int open_base(void)
{
    (void)snprintf(base_dir, sizeof base_dir, "%s/root", places.base);
    CHECK(mkdir(base_dir, 0755) == 0 || errno == EEXIST);
    int fd = open(base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void save(struct volume *volume, const char *scratch, const char *name)
{
    struct error err = {0};
    CHECK_OK(layer_save(volume, scratch, name, NULL, &err), err);
}

/* "x/x/x…", `depth` times. */
static void name_chain(char *out, size_t size, char name, unsigned depth)
{
    out[0] = '\0';
    for (unsigned i = 0; i < depth; i++)
        (void)snprintf(out + strlen(out), size - strlen(out), "%s%c", i ? "/" : "", name);
}

enum { DEPTH = 60, LEVELS = 6 };
static const char *const levels[LEVELS] = {"l5", "l4", "l3", "l2", "l1", "l0"}; // top first

/* In the last directory of a chain of them, one for each of the next chain. */
static void make_children(int top, char name)
{
    char path[2 * DEPTH + 16];
    name_chain(path, sizeof path, name, DEPTH);
    size_t length = strlen(path);
    for (unsigned i = 0; i < DEPTH; i++) {
        (void)snprintf(path + length, sizeof path - length, "/c%u", i);
        CHECK(mkdirat(top, path, 0755) == 0);
    }
}

/* A chain whose directories are, each, one that lay at the end of the chain below. */
static void move_children(int top, char from, char to)
{
    char old[2 * DEPTH + 16], new[2 * DEPTH + 16];
    for (unsigned i = 0; i < DEPTH; i++) {
        name_chain(old, sizeof old, from, DEPTH);
        (void)snprintf(old + strlen(old), 16, "/c%u", i);
        name_chain(new, sizeof new, to, i + 1);
        CHECK(renameat(top, old, top, new) == 0);
    }
}

static void make_first_chain(int top)
{
    char path[2 * DEPTH + 16];
    for (unsigned i = 1; i <= DEPTH; i++) {
        name_chain(path, sizeof path, 'a', i);
        CHECK(mkdirat(top, path, 0755) == 0);
    }
    make_children(top, 'a');
}

static void check_same(struct volume *volume, const struct layer_stack *stack, const char *told)
{
    const struct layer_stack nothing = {.base = stack->base, .n_base = 1};
    autofree char *base_told = tell_stack(volume, NULL, 0, base_dir);
    autofree char *got = tell_diff(volume, &nothing, stack);
    autofree char *want = tell_difference(base_told, told);
    CHECK_STR(got, want);
}

TEST(renamed_directories_nested_in_renamed_ones_are_followed_step_by_step)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &in_memory);
    struct error err = {0};
    int base = open_base();
    make_first_chain(base);
    closep(&base);
    for (unsigned i = 0; i < LEVELS; i++) {
        int dir = make_scratch(volume, "s", 64 * MIB, 0);
        closep(&dir);
        int top = mount_stack(volume, "s", levels + LEVELS - i, i, base_dir);
        move_children(top, (char)('a' + i), (char)('b' + i));
        make_children(top, (char)('b' + i));
        unmount_stack(&top);
        save(volume, "s", levels[LEVELS - 1 - i]);
        CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
    }
    const char *const bases[] = {base_dir};
    const struct layer_stack all = {.saved = levels, .n_saved = LEVELS, .base = bases, .n_base = 1};
    autofree char *told = tell_stack(volume, levels, LEVELS, base_dir);
    check_same(volume, &all, told);
    CHECK_OK(layer_merge(volume, levels, LEVELS, "m", NULL, NULL, &err), err);
    autofree char *merged = tell_stack(volume, (const char *const[]){"m"}, 1, base_dir);
    CHECK_STR(merged, told);
}

TEST(a_mark_that_leads_up_leads_nowhere)
{
    static const char *const marks[] = {"/../../../../../../../../etc",
                                        "..",
                                        "/..",
                                        "a/../../..",
                                        "/a/../../../..",
                                        ".",
                                        "/",
                                        "//etc",
                                        "/etc/"};
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &in_memory);
    struct error err = {0};
    int base = open_base();
    CHECK(mkdirat(base, "a", 0755) == 0);
    const char *const bases[] = {base_dir};
    const struct layer_stack all = {
        .saved = (const char *const[]){"bad"}, .n_saved = 1, .base = bases, .n_base = 1};
    for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
        int dir = make_scratch(volume, "s", 64 * MIB, 0);
        CHECK(mkdirat(dir, "upper/x", 0755) == 0);
        autofd marked = openat(dir, "upper/x", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(fsetxattr(marked, LAYER_REDIRECT, marks[i], strlen(marks[i]), 0) == 0);
        closep(&dir);
        save(volume, "s", "bad");
        int fd = -1;
        CHECK(layer_open_file(volume, &all, "x/passwd", &fd, &err) < 0);
        CHECK(layer_open_file(volume, &all, "x/etc/passwd", &fd, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
        autofree char *got =
            tell_diff(volume, &(struct layer_stack){.base = bases, .n_base = 1}, &all);
        CHECK_STR(got, "+x\n");
        CHECK_OK(layer_remove(volume, "bad", &err), err);
        CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
    }
    closep(&base);
}

/* Files without an end */

static void make_endless(int dir, off_t size, char byte)
{
    autofd fd = openat(dir, "upper/endless", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
    CHECK(fd >= 0 && ftruncate(fd, size) == 0);
    CHECK(pwrite(fd, &byte, 1, size / 2) == 1);
}

TEST(files_of_exabytes_are_compared_by_what_is_in_them)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    struct error err = {0};
    autofd dir = make_scratch(volume, "s", 64 * MIB, 0);
    off_t size = (off_t)1 << 60;

    make_endless(dir, size, 'x');
    save(volume, "s", "first");
    make_endless(dir, size, 'x'); // its time is another
    save(volume, "s", "second");
    make_endless(dir, size, 'y');
    save(volume, "s", "third");
    const struct layer_stack first = {.saved = (const char *const[]){"first"}, .n_saved = 1};
    const struct layer_stack second = {.saved = (const char *const[]){"second"}, .n_saved = 1};
    const struct layer_stack third = {.saved = (const char *const[]){"third"}, .n_saved = 1};
    autofree char *none = tell_diff(volume, &first, &second);
    CHECK_STR(none, "");
    autofree char *one = tell_diff(volume, &second, &third);
    CHECK_STR(one, "~endless\n");
    CHECK_OK(layer_remove(volume, "first", &err), err);
    CHECK_OK(layer_remove(volume, "second", &err), err);
    CHECK_OK(layer_remove(volume, "third", &err), err);
}

/* Many layers, each with all of a deep path */

static unsigned count_open(void)
{
    autodir dir = opendir("/proc/self/fd");
    unsigned count = 0;
    while (readdir(dir))
        count++;
    return count;
}

static int watch_open(void *data, const struct layer_change *change, struct error *err)
{
    unsigned *most = data;
    unsigned now = count_open();
    (void)change;
    (void)err;
    *most = now > *most ? now : *most;
    return 0;
}

TEST(a_deep_path_in_many_layers_does_not_take_all_open_files)
{
    enum { LAYERS = 100, DEEP = 200 };
    const struct rlimit files = {16384, 16384};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &files), 0); // what a server has is more than what is here
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    struct error err = {0};
    char names[LAYERS][16];
    const char *saved[LAYERS];
    unsigned most = 0, before = count_open();

    autofd dir = make_scratch(volume, "s", 0, 0);
    int at = openat(dir, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < DEEP; i++) {
        CHECK(mkdirat(at, "deep", 0755) == 0);
        int below = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = below;
    }
    (void)close(at);
    for (unsigned i = 0; i < LAYERS; i++) {
        (void)snprintf(names[i], sizeof names[i], "l%u", i);
        saved[i] = names[i];
        save(volume, "s", names[i]);
    }
    const struct layer_stack nothing = {0};
    const struct layer_stack all = {.saved = saved, .n_saved = LAYERS};
    struct layer_diff_total total;
    CHECK_OK(layer_diff(volume, &nothing, &all, NULL, watch_open, &most, &total, &err), err);
    CHECK(total.skipped > 0);
    CHECK(most - before < 9000);
    CHECK(layer_merge(volume, saved, LAYERS, "m", NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK(count_open() == before + 1); // the scratch
    for (unsigned i = 0; i < LAYERS; i++)
        CHECK_OK(layer_remove(volume, saved[i], &err), err);
}
