/* SPDX-License-Identifier: Apache-2.0 */
/* Long chains of snapshots, which become short behind everybody's back. Needs root. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "loop/background.h"
#include "engine/box.h"
#include "core/snapshot/difference.h"
#include "core/fork.h"
#include "core/snapshot/merge.h"
#include "core/snapshot/snapshot_impl.h"
#include "state_fixture.h"
#include "store/chains.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 60000
#define LONG (LAYER_MERGE_AT + 3)

// ---- looking ----

static void layers_of(const char *snapshot, struct strings *out)
{
    autosnapshot record = {0};
    struct error err = {0};

    CHECK_OK(store_snapshot_get(core->store, snapshot, &record, &err), err);
    strings_clear(out);
    strings_unpack(record.layers, out);
}

static size_t depth_of(const char *snapshot)
{
    autostrings layers = {0};
    layers_of(snapshot, &layers);
    return layers.count;
}

static void await(bool (*is_so)(const char *about), const char *about, const char *what)
{
    uint64_t deadline = clock_monotonic_ms() + PATIENCE_MS;

    while (!is_so(about)) {
        if (clock_monotonic_ms() > deadline)
            test_fail(__FILE__, __LINE__, "waited in vain for %s", what);
        (void)usleep(500);
    }
}

static bool layer_exists(struct volume *volume, const char *name)
{
    struct error ignored;
    autofd fd = -1;
    return layer_open(volume, name, &fd, &ignored) == 0;
}

static bool is_short(const char *snapshot)
{
    return depth_of(snapshot) <= LAYER_MERGE_AT;
}

/* Directories of layers: all, or those whose names begin so. */
static unsigned count_directories(const char *prefix)
{
    autofree char *path = xasprintf("%s/volume/layers", core_data_dir);
    autodir directory = opendir(path);
    struct dirent *entry;
    unsigned count = 0;

    while (directory && (entry = readdir(directory)))
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    return count - (*prefix ? 0 : 2); // "." and ".."
}

static bool is_merging(const char *unused)
{
    (void)unused;
    return count_directories(".new-") > 0;
}

/* No layer is there that has no row, and none is missing. */
static bool is_tidy(const char *unused)
{
    autolayers known = {0};
    autolayers idle = {0};
    struct error err = {0};

    (void)unused;
    CHECK_OK(store_layer_list(core->store, false, &known, &err), err);
    CHECK_OK(store_layer_list(core->store, true, &idle, &err), err);
    for (size_t i = 0; i < known.count; i++) {
        if (!layer_exists(engine_volume(core->engine), known.rows[i].name))
            return false;
    }
    return idle.count == 0 && count_directories("") == known.count;
}

static bool is_empty(const char *unused)
{
    return is_tidy(unused) && count_directories("") == 0;
}

static unsigned count_merged(void)
{
    autolayers known = {0};
    struct error err = {0};
    unsigned count = 0;

    CHECK_OK(store_layer_list(core->store, false, &known, &err), err);
    for (size_t i = 0; i < known.count; i++)
        count += known.rows[i].merged_of != NULL;
    return count;
}

static void drop(const char *snapshot)
{
    struct error err = {0};
    CHECK_OK(snapshot_delete(core->snapshots, &actor, snapshot, &err), err);
}

static void end(const char *sandbox)
{
    struct error err = {0};
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, sandbox, &err), err);
}

// ---- chains made by hand, without a box for each ----

/* A layer with files of this level; the lowest has many, so that merging takes a while. */
static void make_layer(unsigned level, unsigned n_files, char name[LAYER_NAME], uint64_t *bytes)
{
    struct volume *volume = engine_volume(core->engine);
    const struct volume_limits limits = {0};
    struct error err = {0};
    char path[64];
    autofd top = -1;

    CHECK_OK(volume_scratch_create(volume, "by-hand", &limits, &top, &err), err);
    (void)mkdirat(top, "upper/many", 0755);
    for (unsigned i = 0; i < n_files; i++) {
        (void)snprintf(path, sizeof path, "upper/many/%u-%u", level, i);
        autofd fd = openat(top, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        CHECK(fd >= 0 && dprintf(fd, "%u", level) > 0);
    }
    closep(&top);
    CHECK_OK(layer_save(volume, "by-hand", layers_name(name), bytes, &err), err);
    CHECK_OK(volume_scratch_remove(volume, "by-hand", &err), err);
}

static void put_snapshot(const char *layers, const char *layer, uint64_t bytes, const char *parent,
                         char id[ID_TEXT])
{
    int64_t now = (int64_t)clock_wall_ms();
    autotransaction together = {0};
    struct error err = {0};
    const struct snapshot_record record = {
        .id = id_make(id),
        .owner = actor_owner(&actor),
        .parent_id = *parent ? parent : NULL,
        .runtime = "host:latest",
        .name = "by-hand",
        .layers = layers,
        .env = "",
        .state = SNAPSHOT_READY,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = now,
        .updated_at = now,
    };

    CHECK_OK(store_begin(core->store, STORE_FAST, &together, &err), err);
    CHECK_OK(snapshot_put(core->snapshots, &record, layer, bytes, &err), err);
    CHECK_OK(store_commit(&together, &err), err);
}

/* ids[0] is of one layer, ids[count - 1] of all. Nobody has been asked to merge them. */
static void make_chain(char (*ids)[ID_TEXT], unsigned count, unsigned n_files)
{
    autofree char *below = xstrdup("");

    for (unsigned i = 0; i < count; i++) {
        char name[LAYER_NAME];
        uint64_t bytes = 0;
        make_layer(i, i ? 1 : n_files, name, &bytes);
        char *layers = xasprintf("%s\n%s", name, below);
        put_snapshot(layers, name, bytes, i ? ids[i - 1] : "", ids[i]);
        free(below);
        below = layers;
    }
}

// ---- tests ----

CORE_TEST(a_long_chain_becomes_short_and_shows_the_same)
{
    char ids[LONG + 1][ID_TEXT];
    char sandbox[ID_TEXT];
    autoclear(snapshot_infos) lineage = {0};
    struct error err = {0};

    make_sandbox(sandbox);
    (void)shell_in(
        sandbox,
        "mkdir -p dir/sub; echo 0 > dir/sub/file; echo 0 > first; echo 0 > third; ln first "
        "second; rm -f /etc/hostname");
    keep_snapshot(sandbox, "level-0", ids[0]);
    for (unsigned i = 1; i <= LONG; i++) {
        autofree char *script =
            xasprintf("echo %u > only-%u; rm -f only-%u; mv dir renamed; mv renamed dir; "
                      "echo %u >> dir/sub/file; chmod %u third",
                      i, i, i - 1, i, 600 + i % 2 * 4);
        end(sandbox);
        make_sandbox_from(ids[i - 1], sandbox);
        (void)shell_in(sandbox, script);
        autofree char *name = xasprintf("level-%u", i);
        keep_snapshot(sandbox, name, ids[i]);
    }
    await(is_short, ids[LONG], "the chain to be merged");
    // Its sandbox still stands on what it was started on, and another shows the same.
    autofree char *seen = xstrdup(
        shell_in(sandbox, "ls -A | sort; cat dir/sub/file first second; "
                          "stat -c %a third; stat -c %h second; ls /etc/hostname 2>&1; true"));
    end(sandbox);
    make_sandbox_from(ids[LONG], sandbox);
    CHECK_STR(shell_in(sandbox, "ls -A | sort; cat dir/sub/file first second; "
                                "stat -c %a third; stat -c %h second; ls /etc/hostname 2>&1; true"),
              seen);
    end(sandbox);
    make_sandbox_from(ids[10], sandbox);
    CHECK_STR(shell_in(sandbox, "ls only-*; tail -n 1 dir/sub/file"), "only-10\n10\n");
    CHECK_OK(snapshot_lineage(core->snapshots, &actor, ids[LONG], 1000, &lineage, &err), err);
    CHECK_INT(lineage.count, LONG + 1);
}

CORE_TEST(all_who_stand_on_the_same_share_what_it_was_merged_to)
{
    char ids[LONG][ID_TEXT];
    char sandbox[ID_TEXT], twin[ID_TEXT], late[ID_TEXT];
    autostrings one = {0}, other = {0};

    make_chain(ids, LONG, 10);
    make_sandbox_from(ids[LONG - 2], sandbox); // on all of the old ones
    keep_snapshot(sandbox, "twin", twin);
    await(is_short, twin, "the chain to be merged");
    CHECK_INT(count_merged(), 1);
    CHECK_INT(depth_of(ids[LONG - 1]), 4);
    CHECK_INT(depth_of(ids[LAYER_MERGE_AT - 1]), 1);
    CHECK_INT(depth_of(ids[LAYER_MERGE_AT - 2]), LAYER_MERGE_AT - 1);
    keep_snapshot(sandbox, "late", late); // of a sandbox that knows nothing of it
    await(is_short, late, "the late one to be merged");
    CHECK_INT(count_merged(), 1);
    layers_of(twin, &one);
    layers_of(late, &other);
    CHECK_STR(one.items[one.count - 1], other.items[other.count - 1]);
    (void)shell_in(sandbox, "[ -e /many/0-9 ] && [ -e /many/30-0 ]");
}

CORE_TEST(what_was_merged_goes_when_nobody_stands_on_it_any_more)
{
    char ids[LONG][ID_TEXT];
    char old[ID_TEXT], new[ID_TEXT];

    make_chain(ids, LONG, 10);
    make_sandbox_from(ids[LONG - 1], old);
    merge_snapshot(core->snapshots, ids[LONG - 1]);
    CHECK_INT(depth_of(ids[LONG - 1]), 4);
    for (unsigned i = 0; i < LONG - 1; i++)
        drop(ids[i]);
    await(is_tidy, "", "unused layers to go");
    CHECK_INT(count_directories(""), LONG + 1);
    make_sandbox_from(ids[LONG - 1], new);
    (void)shell_in(old, "[ \"$(cat /many/0-9)\" = 0 ] && [ -e /many/34-0 ]");
    end(old);
    await(is_tidy, "", "the old layers to go with their last sandbox");
    CHECK_INT(count_directories(""), 4);
    (void)shell_in(new, "[ \"$(cat /many/0-9)\" = 0 ] && [ -e /many/34-0 ]");
    drop(ids[LONG - 1]);
    end(new);
    await(is_empty, "", "all layers to go");
}

CORE_TEST(differences_between_checkpoints_are_the_same_after_merging)
{
    const struct difference_request request = {
        .from = "one", .to = "two", .max_entries = 100, .max_patch_bytes = 1000};
    const struct difference_request whole = {
        .from = "base", .to = "now", .max_entries = 100, .max_patch_bytes = 1000};
    char ids[LONG][ID_TEXT];
    char sandboxes[2][ID_TEXT];
    struct error err = {0};

    make_chain(ids, LONG, 10);
    for (unsigned i = 0; i < 2; i++) { // one on the old layers, one on the merged
        make_sandbox_from(ids[LONG - 1], sandboxes[i]);
        (void)shell_in(sandboxes[i], "cd /many; echo x > 0-1; rm 1-0");
        keep_checkpoint(sandboxes[i], "one");
        if (i == 0)
            merge_snapshot(core->snapshots, ids[LONG - 1]);
        (void)shell_in(sandboxes[i], "cd /many; echo yy > 0-1; rm 0-2; touch new");
        keep_checkpoint(sandboxes[i], "two");
    }
    for (unsigned i = 0; i < 2; i++) {
        autodifference found = {0};
        autodifference all = {0};
        CHECK_OK(difference_get(core->snapshots, &actor, sandboxes[i], &request, &found, &err),
                 err);
        CHECK_INT(found.count, 3);
        CHECK_STR(found.entries[0].path, "/many/0-1");
        CHECK_INT(found.entries[1].kind, DIFFERENCE_REMOVED);
        CHECK_STR(found.entries[2].path, "/many/new");
        CHECK_OK(difference_get(core->snapshots, &actor, sandboxes[i], &whole, &all, &err), err);
        CHECK_STR(all.entries[all.count - 2].path, "/many/1-0");
        CHECK_INT(all.totals[DIFFERENCE_REMOVED], 2);
    }
}

CORE_TEST(a_snapshot_that_is_deleted_while_it_is_merged_leaves_nothing)
{
    char ids[LONG][ID_TEXT];

    make_chain(ids, LONG, 3000);
    background_run(core->background, merge_snapshot, core->snapshots, ids[LONG - 1]);
    await(is_merging, "", "merging to begin");
    for (unsigned i = 0; i < LONG; i++)
        drop(ids[i]);
    await(is_empty, "", "all layers to go");
}

static void *merge_it(void *id)
{
    merge_snapshot(core->snapshots, id);
    return NULL;
}

CORE_TEST(others_start_from_it_list_it_and_keep_it_while_it_is_merged)
{
    char ids[LONG][ID_TEXT];
    char sandbox[ID_TEXT], kept[ID_TEXT];
    struct error err = {0};

    for (unsigned round = 0; round < 3; round++) {
        struct snapshot_files files = {0};
        autoclear(snapshot_info) record = {0};
        pthread_t merger;
        make_chain(ids, LONG, 200);
        CHECK(pthread_create(&merger, NULL, merge_it, ids[LONG - 1]) == 0);
        do {
            make_sandbox_from(ids[LONG - 1], sandbox);
            CHECK_STR(shell_in(sandbox, "ls /many | wc -l"), "234\n");
            keep_snapshot(sandbox, "kept", kept);
            end(sandbox);
        } while (!is_short(ids[LONG - 1]));
        CHECK_OK(snapshot_get(core->snapshots, &actor, kept, &record, &err), err);
        CHECK_INT(record.file_count, 234);
        CHECK_OK(snapshot_files(core->snapshots, &record, &files, &err), err);
        CHECK_INT(files.count, 234);
        snapshot_files_clear(&files);
        (void)pthread_join(merger, NULL);
        for (unsigned i = 0; i < LONG; i++)
            drop(ids[i]);
    }
}

CORE_TEST(closing_in_the_middle_leaves_the_old_and_the_next_start_finishes)
{
    char ids[LONG][ID_TEXT];
    char sandbox[ID_TEXT];

    make_chain(ids, LONG, 3000);
    background_run(core->background, merge_snapshot, core->snapshots, ids[LONG - 1]);
    await(is_merging, "", "merging to begin");
    reopen_core();
    await(is_short, ids[LONG - 1], "the next server to merge it");
    await(is_tidy, "", "nothing else to be there");
    make_sandbox_from(ids[LONG - 1], sandbox);
    CHECK_STR(shell_in(sandbox, "ls /many | wc -l"), "3034\n");
}

CORE_TEST(what_a_crash_left_of_merging_is_swept)
{
    struct volume *volume = engine_volume(core->engine);
    char ids[LONG][ID_TEXT];
    autostrings layers = {0};
    struct error err = {0};

    make_chain(ids, LAYER_MERGE_AT, 10);
    layers_of(ids[LAYER_MERGE_AT - 1], &layers);
    // Between making the layer and its row.
    CHECK_OK(layer_merge(volume, (const char *const *)layers.items, layers.count, "layer-stray",
                         NULL, NULL, &err),
             err);
    autofree char *half = xasprintf("%s/volume/layers/.new-half", core_data_dir);
    CHECK(mkdir(half, 0700) == 0);
    reopen_core();
    await(is_tidy, "", "what nobody knows to go");
    CHECK(!layer_exists(engine_volume(core->engine), "layer-stray"));
    CHECK_INT(depth_of(ids[LAYER_MERGE_AT - 1]), LAYER_MERGE_AT);
}

CORE_TEST(no_box_takes_so_many_layers_but_a_sandbox_starts)
{
    char ids[150][ID_TEXT];
    char sandbox[ID_TEXT];

    make_chain(ids, 150, 10);
    make_sandbox_from(ids[149], sandbox);
    CHECK_STR(shell_in(sandbox, "ls /many | wc -l"), "159\n");
    CHECK(is_short(ids[149]));
}

CORE_TEST(a_fork_on_more_layers_than_a_box_takes_stands_on_fewer)
{
    enum { MOST = 48 };
    const struct sandbox_changes none = {0};
    autoclear(sandbox_info) fork = {0}, twin = {0};
    char ids[MOST][ID_TEXT];
    char sandbox[ID_TEXT];
    struct error err = {0};

    make_chain(ids, MOST, 3);
    make_sandbox_from(ids[MOST - 1], sandbox);
    (void)shell_in(sandbox, "echo top >top");
    CHECK_OK(sandbox_fork(core, &actor, sandbox, &none, NULL, &fork, &err), err);
    CHECK_STR(shell_in(fork.id, "ls /many | wc -l; cat top"), "50\ntop\n");
    CHECK_INT(count_merged(), 1);
    CHECK_OK(sandbox_fork(core, &actor, sandbox, &none, NULL, &twin, &err), err);
    CHECK_INT(count_merged(), 1); // the same one
    (void)shell_in(twin.id, "[ -e /many/0-2 ] && [ -e /many/47-0 ]");
}
