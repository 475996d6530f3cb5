/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of layers on every kind of volume, with the kernel's overlay as the judge. Needs root. */
#include "base/mem.h"
#include "engine/layer_fixture.h"
#include "engine/layer_impl.h"
#include "engine/slot.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

static const struct volume_options in_memory = {.scheme = VOLUME_TMPFS};

static char base_dir[200];

static void make_base(unsigned *seed)
{
    (void)snprintf(base_dir, sizeof base_dir, "%s/root", places.base);
    CHECK(mkdir(base_dir, 0755) == 0 || errno == EEXIST);
    autofd fd = open(base_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    disturb(fd, seed, 60);
}

static void save(struct volume *volume, const char *scratch, const char *name)
{
    struct error err = {0};
    CHECK_OK(layer_save(volume, scratch, name, NULL, &err), err);
}

static void remove_layers(struct volume *volume, const char *const *names, size_t count)
{
    struct error err = {0};
    for (size_t i = 0; i < count; i++)
        CHECK_OK(layer_remove(volume, names[i], &err), err);
}

/* Chains of layers made by chance: what they show, what merging them shows, and what differs between any two. */

enum { ROUNDS = 5 };
static const char *const chain[ROUNDS] = {"l4", "l3", "l2", "l1", "l0"}; // top first

static void check_diff(struct volume *volume, const struct layer_stack *from, const char *told_from,
                       const struct layer_stack *to, const char *told_to)
{
    autofree char *got = tell_diff(volume, from, to);
    autofree char *want = tell_difference(told_from, told_to);
    CHECK_STR(got, want);
}

static void check_chain(struct volume *volume, unsigned seed, unsigned n_deeds)
{
    struct error err = {0};
    char *told[ROUNDS + 1];
    const char *const base[] = {base_dir};
    const struct layer_stack only_base = {.base = base, .n_base = 1};

    make_base(&seed);
    told[0] = tell_stack(volume, NULL, 0, base_dir);
    for (size_t i = 0; i < ROUNDS; i++) {
        const char *const *below = chain + ROUNDS - i;
        int dir = make_scratch(volume, "s", 64 * MIB, 0);
        closep(&dir);
        int top = mount_stack(volume, "s", below, i, base_dir);
        disturb(top, &seed, n_deeds);
        told[i + 1] = tell_tree(top);
        unmount_stack(&top);
        const struct layer_stack now = {
            .scratch = "s", .saved = below, .n_saved = i, .base = base, .n_base = 1};
        check_diff(volume, &only_base, told[0], &now, told[i + 1]);
        save(volume, "s", chain[ROUNDS - 1 - i]);
        autofree char *seen = tell_stack(volume, chain + ROUNDS - 1 - i, i + 1, base_dir);
        CHECK_STR(seen, told[i + 1]);
    }
    for (size_t i = 0; i <= ROUNDS; i++) {
        for (size_t j = 0; j <= ROUNDS; j++) {
            const struct layer_stack from = {
                .saved = chain + ROUNDS - i, .n_saved = i, .base = base, .n_base = 1};
            const struct layer_stack to = {
                .saved = chain + ROUNDS - j, .n_saved = j, .base = base, .n_base = 1};
            check_diff(volume, &from, told[i], &to, told[j]);
        }
    }
    for (size_t first = 0; first < ROUNDS; first++) {
        for (size_t count = 2; first + count <= ROUNDS; count++) {
            const char *merged[ROUNDS];
            size_t n = 0;
            for (size_t i = 0; i < ROUNDS; i++) {
                if (i == first)
                    merged[n++] = "m";
                if (i < first || i >= first + count)
                    merged[n++] = chain[i];
            }
            CHECK_OK(layer_merge(volume, chain + first, count, "m", NULL, NULL, &err), err);
            autofree char *seen = tell_stack(volume, merged, n, base_dir);
            CHECK_STR(seen, told[ROUNDS]);
            CHECK_OK(layer_remove(volume, "m", &err), err);
        }
    }
    for (size_t i = 0; i <= ROUNDS; i++)
        free(told[i]);
    remove_layers(volume, chain, ROUNDS);
    CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
    CHECK_OK(fd_remove_tree(AT_FDCWD, base_dir, &err), err);
}

/* A checkpoint, what came after it, and the way back. */
static void check_restore(struct volume *volume, unsigned seed)
{
    struct error err = {0};
    const struct volume_limits limits = {.bytes = 64 * MIB};
    const char *const base[] = {base_dir};
    uint64_t bytes = 0;

    make_base(&seed);
    int dir = make_scratch(volume, "s", 64 * MIB, 0);
    closep(&dir);
    int top = mount_stack(volume, "s", NULL, 0, base_dir);
    disturb(top, &seed, 60);
    autofree char *then = tell_tree(top);
    CHECK_OK(layer_save(volume, "s", "c1", &bytes, &err), err); // in use
    disturb(top, &seed, 60);
    autofree char *now = tell_tree(top);
    const struct layer_stack checkpoint = {
        .saved = (const char *const[]){"c1"}, .n_saved = 1, .base = base, .n_base = 1};
    const struct layer_stack living = {.scratch = "s", .base = base, .n_base = 1};
    check_diff(volume, &checkpoint, then, &living, now);
    check_diff(volume, &living, now, &checkpoint, then);
    unmount_stack(&top);

    for (int i = 0; i < 2; i++) { // twice: restoring does not use it up
        CHECK_OK(layer_restore(volume, "c1", bytes, "s", &limits, &err), err);
        top = mount_stack(volume, "s", NULL, 0, base_dir);
        autofree char *back = tell_tree(top);
        CHECK_STR(back, then);
        disturb(top, &seed, 20);
        unmount_stack(&top);
    }
    CHECK_OK(layer_restore(volume, "c1", bytes, "new", &limits, &err), err); // where there was none
    top = mount_stack(volume, "new", NULL, 0, base_dir);
    autofree char *copy = tell_tree(top);
    CHECK_STR(copy, then);
    unmount_stack(&top);
    CHECK_OK(volume_scratch_remove(volume, "new", &err), err);
    CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
    CHECK_OK(layer_remove(volume, "c1", &err), err);
    CHECK_OK(fd_remove_tree(AT_FDCWD, base_dir, &err), err);
}

/* What mistakes are told as. */
static void check_mistakes(struct volume *volume)
{
    const struct volume_limits limits = {0};
    const char *const none[] = {"nobody"};
    struct error err = {0};
    int fd = -1;

    CHECK_OK(layer_remove(volume, "nobody", &err), err);
    CHECK_OK(layer_reclaim(volume, NULL, &err), err);
    CHECK_OK(layer_sweep(volume, owns_all, NULL, &err), err);
    CHECK(!layer_exists(volume, "nobody"));
    CHECK(layer_open(volume, "nobody", &fd, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(layer_restore(volume, "nobody", 0, "s", &limits, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(layer_save(volume, "nobody", "l", NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(layer_merge(volume, none, 1, "l", NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_NOT_FOUND);
    CHECK(!layer_exists(volume, "l"));
    int dir = make_scratch(volume, "s", 16 * MIB, 0);
    closep(&dir);
    CHECK(layer_save(volume, "s", "../l", NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    CHECK(layer_save(volume, "../s", "l", NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_INVALID);
    save(volume, "s", "l");
    CHECK(layer_save(volume, "s", "l", NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK(layer_merge(volume, (const char *const[]){"l"}, 1, "l", NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_CONFLICT);
    CHECK_OK(layer_remove(volume, "l", &err), err);
    CHECK(!layer_exists(volume, "l"));
    save(volume, "s", "l"); // the name is free
    CHECK_OK(layer_remove(volume, "l", &err), err);
    CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
}

static void check_sweep(struct volume *volume)
{
    struct error err = {0};
    unsigned seen = 0;
    int dir = make_scratch(volume, "s", 16 * MIB, 0);
    closep(&dir);
    static const char *const names[] = {"l1", "l2", "l3", "l4"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        save(volume, "s", names[i]);
    CHECK_OK(layer_sweep(volume, owns_even, &seen, &err), err);
    CHECK_INT(seen, 4);
    CHECK(!layer_exists(volume, "l1") && layer_exists(volume, "l2"));
    CHECK(!layer_exists(volume, "l3") && layer_exists(volume, "l4"));
    remove_layers(volume, names, ARRAY_SIZE(names));
    CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
}

/* One that a living slot names is removed only when the slot is free. */
static void check_use(struct volume *volume)
{
    struct error err = {0};
    unsigned slot, n_used = 7;
    bool is_dirty;
    autofd slots = -1, lock = -1;
    static const char *const used[] = {"used", "used-2"};

    int dir = make_scratch(volume, "s", 16 * MIB, 0);
    int why;
    CHECK(write_file(dir, "upper/file", 100, &why) > 0);
    closep(&dir);
    save(volume, "s", "used");
    save(volume, "s", "use");
    autofd kept = -1;
    CHECK_OK(layer_open(volume, "used", &kept, &err), err);
    CHECK_OK(slots_open(&slots, &err), err);
    struct slot_set own = {.owner = 1};
    CHECK_OK(slot_take(slots, &own, &slot, &lock, &is_dirty, &err), err);
    char prefix[LAYER_PREFIX_SIZE];
    autofd all = layer_open_all(volume, false, &err);
    CHECK_OK(layer_prefix(all, prefix, &err), err);
    CHECK_OK(slot_note(slots, slot, prefix, used, 2, &err), err);
    CHECK_OK(layer_remove(volume, "used", &err), err);
    CHECK_OK(layer_remove(volume, "use", &err), err);
    CHECK(!layer_exists(volume, "used") && exists(kept, "file"));
    CHECK_OK(layer_reclaim(volume, &n_used, &err), err);
    CHECK_INT(n_used, 1);
    CHECK_OK(layer_sweep(volume, owns_all, NULL, &err), err);
    CHECK(exists(kept, "file"));
    slot_is_clean(lock);
    closep(&lock);
    closep(&kept);
    CHECK_OK(layer_reclaim(volume, &n_used, &err), err);
    CHECK_INT(n_used, 0);
    CHECK_OK(volume_scratch_remove(volume, "s", &err), err);
}

/* Big and full */

static int count_change(void *data, const struct layer_change *change, struct error *err)
{
    ++*(unsigned *)data;
    return 0;
}

static int stop_soon(void *data, const struct layer_change *change, struct error *err)
{
    if (++*(unsigned *)data < 10)
        return 0;
    return error_set(err, ERROR_LIMIT, "enough");
}

TEST(a_hundred_thousand_entries_are_saved_compared_merged_and_removed)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    struct error err = {0};
    struct layer_diff_total total;
    unsigned count = 0;
    char name[32];
    autofd dir = make_scratch(volume, "s", 0, 0);
    for (unsigned i = 0; i < 100; i++) {
        (void)snprintf(name, sizeof name, "upper/d%u", i);
        CHECK(mkdirat(dir, name, 0755) == 0);
        autofd sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        for (unsigned j = 0; j < 1000; j++) {
            (void)snprintf(name, sizeof name, "f%u", j);
            CHECK(symlinkat("x", sub, name) == 0);
        }
    }
    save(volume, "s", "big");
    CHECK(unlinkat(dir, "upper/d50/f500", 0) == 0);
    const struct layer_stack none = {0}, living = {.scratch = "s"};
    const struct layer_stack saved = {.saved = (const char *const[]){"big"}, .n_saved = 1};
    CHECK_OK(layer_diff(volume, &none, &saved, NULL, count_change, &count, &total, &err), err);
    CHECK_INT(count, 100100);
    CHECK_INT(total.n_added, 100100);
    CHECK_OK(layer_diff(volume, &saved, &living, NULL, count_change, &count, &total, &err), err);
    CHECK(total.n_removed == 1 && total.n_added == 0 && total.n_changed == 0);
    count = 0;
    CHECK(layer_diff(volume, &none, &saved, NULL, stop_soon, &count, &total, &err) < 0);
    CHECK_STR(err.text, "enough");
    atomic_bool is_cancelled = true;
    CHECK(layer_merge(volume, (const char *const[]){"big", "big"}, 2, "m", NULL, &is_cancelled,
                      &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_GONE);
    CHECK(!layer_exists(volume, "m"));
    CHECK_OK(layer_remove(volume, "big", &err), err);
}

TEST(a_layer_with_deep_directories_is_saved_and_said_to_be_too_deep_to_read)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    struct error err = {0};
    struct layer_diff_total total;
    unsigned count = 0;
    autofd dir = make_scratch(volume, "s", 0, 0);
    int at = openat(dir, "upper", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK(mkdirat(at, "deep", 0755) == 0);
        int below = openat(at, "deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        (void)close(at);
        at = below;
    }
    (void)close(at);
    save(volume, "s", "deep");
    const struct layer_stack none = {0};
    const struct layer_stack saved = {.saved = (const char *const[]){"deep"}, .n_saved = 1};
    CHECK_OK(layer_diff(volume, &none, &saved, NULL, count_change, &count, &total, &err), err);
    CHECK(total.skipped > 0 && count < 1000);
    CHECK(layer_merge(volume, (const char *const[]){"deep", "deep"}, 2, "m", NULL, NULL, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_LIMIT);
    CHECK_OK(layer_remove(volume, "deep", &err), err);
}

TEST(a_full_disk_fails_a_copy_cleanly)
{
    fresh_places();
    struct error err = {0};
    int why;
    const struct volume_limits small = {.bytes = 2 * MIB};
    CHECK(mount("burrow-test", places.disk, "tmpfs", 0, "size=4m") == 0);
    char path[200];
    (void)snprintf(path, sizeof path, "%s/data", places.disk);
    struct volume *volume = open_volume(path, &in_memory);
    int dir = make_scratch(volume, "s", 16 * MIB, 0);
    CHECK(write_file(dir, "upper/file", MIB, &why) == MIB);
    save(volume, "s", "small");
    CHECK(write_file(dir, "upper/big", 8 * MIB, &why) == 8 * MIB);
    CHECK(layer_save(volume, "s", "big", NULL, &err) < 0);
    CHECK_INT(err.sys, ENOSPC);
    CHECK(!layer_exists(volume, "big") && layer_exists(volume, "small"));
    CHECK(layer_restore(volume, "small", 0, "s", &(struct volume_limits){.bytes = MIB / 2}, &err) <
          0);
    CHECK(exists(dir, "upper/big")); // as it was
    CHECK_OK(layer_restore(volume, "small", 0, "s", &small, &err), err);
    closep(&dir);
    CHECK_OK(volume_scratch_open(volume, "s", &dir, &err), err);
    CHECK(exists(dir, "upper/file") && !exists(dir, "upper/big"));
    closep(&dir);
    volume_free(volume);
}

static void check_layers(struct volume *volume)
{
    const char *name = volume_scheme_name(volume_scheme(volume));
    printf("# %s: mistakes, sweep, use\n", name);
    check_mistakes(volume);
    check_sweep(volume);
    check_use(volume);
    unsigned n_seeds = getenv("BURROW_IN_VM") ? 1 : 4; // slow there
    for (unsigned seed = 1; seed <= n_seeds; seed++) {
        printf("# %s: chain and restore, seed %u\n", name, seed);
        check_chain(volume, seed * 7919, seed % 2 ? 40 : 12);
        check_restore(volume, seed * 104729);
    }
}

TEST(layers_of_a_loop_volume_show_differ_merge_and_come_back_as_overlay_says)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &loop);
    CHECK(layer_is_cheap(volume));
    check_layers(volume);
}

TEST(layers_of_a_tmpfs_volume_do_the_same_by_copying)
{
    fresh_places();
    autoptr(volume) volume = open_volume(places.data, &in_memory);
    CHECK(!layer_is_cheap(volume));
    check_layers(volume);
}

static void check_project_layers(const struct project_case *one)
{
    const struct volume_options exact = {.scheme = one->scheme};
    struct error err = {0};
    struct volume *volume = NULL;
    char path[200];

    mount_with_quota(one);
    (void)snprintf(path, sizeof path, "%s/data", places.disk);
    CHECK_OK(volume_open(path, &exact, &volume, &err), err);
    CHECK(!layer_is_cheap(volume));
    check_layers(volume);
    CHECK_OK(volume_sweep(volume, owns_all, NULL, &err), err);
    volume_free(volume);
}

TEST(layers_on_ext4_with_project_quota_do_the_same_by_copying)
{
    fresh_places();
    check_project_layers(&ext4_case);
}

TEST(layers_on_xfs_with_project_quota_do_the_same_by_sharing_blocks)
{
    fresh_places();
    check_project_layers(&xfs_case);
}
