/* SPDX-License-Identifier: Apache-2.0 */
/* What the data of a real core takes, and what is given back. Needs root. */
#include "core/space.h"
#include "core/core.h"
#include "state_fixture.h"
#include "store/snapshots.h"

#include <fcntl.h>

#define MIB ((uint64_t)1 << 20)

static void look(struct space *out)
{
    struct error err = {0};
    CHECK_OK(space_get(core, &actor, out, &err), err);
}

CORE_TEST(each_part_takes_what_was_put_there)
{
    char id[ID_TEXT], snapshot[ID_TEXT];
    struct space space;
    struct error err = {0};

    make_sandbox(id);
    (void)shell_in(id, "head -c 3145728 /dev/urandom > three; sync");
    keep_snapshot(id, "kept", snapshot);
    keep_checkpoint(id, "here");
    look(&space);
    CHECK_INT(space.parts[SPACE_SNAPSHOTS].count, 1);
    CHECK(space.parts[SPACE_SNAPSHOTS].bytes >= 3 * MIB &&
          space.parts[SPACE_SNAPSHOTS].bytes < 8 * MIB);
    CHECK_INT(space.parts[SPACE_CHECKPOINTS].count, 1);
    CHECK(space.parts[SPACE_CHECKPOINTS].bytes >= 3 * MIB);
    CHECK_INT(space.parts[SPACE_SANDBOXES].count, 1);
    CHECK(space.parts[SPACE_RUNTIMES].count >= 1);
    CHECK(space.parts[SPACE_STREAMS].count >= 2);
    CHECK(space.parts[SPACE_DATABASE].bytes > 0);
    CHECK_INT(space.parts[SPACE_UNUSED].count, 0);
    CHECK(space.volume_bytes > space.free_bytes && space.free_bytes > 0);
    CHECK_OK(sandbox_delete(core->sandboxes, &actor, id, &err), err);
    look(&space);
    CHECK_INT(space.parts[SPACE_SANDBOXES].count, 0);
    CHECK_INT(space.parts[SPACE_CHECKPOINTS].count, 0);
    CHECK_INT(space.parts[SPACE_SNAPSHOTS].count, 1);
}

static void upload_path(const char *id, char path[300])
{
    (void)snprintf(path, 300, "%s/builds/%s", core_data_dir, id);
}

static void announce(char id[ID_TEXT], int64_t ago_ms)
{
    const struct snapshot_build build = {.runtime = "host:latest", .name = "built"};
    autoclear(snapshot_info) begun = {0};
    autosnapshot record = {0};
    bool is_unchanged = false;
    struct error err = {0};
    autofd upload = open("/dev/null", O_RDONLY | O_CLOEXEC);

    CHECK_OK(snapshot_build_begin(core->snapshots, &actor, &build, &is_unchanged, &begun, &err),
             err);
    CHECK_OK(store_snapshot_get(core->store, begun.id, &record, &err), err);
    CHECK_OK(snapshot_build_upload(core->snapshots, &actor, record.id, NULL, upload, &err), err);
    (void)snprintf(id, ID_TEXT, "%s", record.id);
    if (ago_ms) { // the same again, announced and uploaded then
        struct snapshot_record old = record;
        char other[ID_TEXT], from[300], to[300];
        old.id = id_make(other);
        old.created_at -= ago_ms;
        CHECK_OK(store_snapshot_put(core->store, &old, &err), err);
        CHECK(snapshot_build_upload(core->snapshots, &actor, old.id, NULL, upload, &err) < 0);
        CHECK_INT(error_kind(&err), ERROR_CONFLICT);
        upload_path(record.id, from);
        upload_path(other, to);
        CHECK_INT(link(from, to), 0);
        (void)snprintf(id, ID_TEXT, "%s", other);
    }
}

static bool has_upload(const char *id)
{
    char path[300];
    upload_path(id, path);
    return access(path, F_OK) == 0;
}

CORE_TEST(builds_that_nobody_finished_are_given_up_and_others_not)
{
    char young[ID_TEXT], old[ID_TEXT];
    struct space_use freed[SPACE_PARTS];
    struct space_pruning pruning = {.is_trial = true};
    autosnapshot record = {0};
    struct error err = {0};

    announce(young, 0);
    announce(old, (int64_t)2 * 3600 * 1000);
    CHECK_OK(space_prune(core, &actor, &pruning, freed, &err), err);
    CHECK_INT(freed[SPACE_UNUSED].count, 1);
    CHECK(has_upload(old));
    pruning.is_trial = false;
    CHECK_OK(space_prune(core, &actor, &pruning, freed, &err), err);
    CHECK_INT(freed[SPACE_UNUSED].count, 1);
    CHECK(!has_upload(old) && has_upload(young));
    CHECK_OK(store_snapshot_get(core->store, old, &record, &err), err);
    CHECK_INT(record.state, SNAPSHOT_FAILED);
    CHECK_OK(space_prune(core, &actor, &pruning, freed, &err), err);
    CHECK_INT(freed[SPACE_UNUSED].count, 0);
}

CORE_TEST(only_administrators_may_look_and_prune)
{
    struct actor other = actor;
    struct space space;
    struct space_use freed[SPACE_PARTS];
    const struct space_pruning pruning = {0};
    struct error err = {0};

    other.is_admin = false;
    CHECK(space_get(core, &other, &space, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
    CHECK(space_prune(core, &other, &pruning, freed, &err) < 0);
    CHECK_INT(error_kind(&err), ERROR_DENIED);
}
