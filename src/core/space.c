/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's data takes; see space.h. */
#include "core/space.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/layer/layers.h"
#include "core/runtime/runtime.h"
#include "core/core_impl.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_object.h"
#include "core/snapshot/snapshot_impl.h"
#include "store/space_counts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#define PAGE 100

static int admins_only(const struct actor *actor, struct error *err)
{
    return actor->is_admin ? 0
                           : error_set(err, ERROR_DENIED,
                                       "this is for administrators; use an administrator's key");
}

static void add(struct space_use *use, uint64_t count, uint64_t bytes)
{
    use->count += count;
    use->bytes += bytes;
}

// ---- parts ----

/* Of living sandboxes; one that ends meanwhile counts for nothing. */
static void measure_scratches(struct core *core, struct space_use *use)
{
    struct sandbox **all = NULL;
    size_t count = registry_all(core->sandboxes->registry, &all);

    for (size_t i = 0; i < count; i++) {
        struct error ignored = {0};
        autosandbox record = {0};
        uint64_t bytes = 0;
        sandbox_copy(all[i], &record);
        if (record.scratch && volume_scratch_usage(engine_volume(core->engine), record.scratch,
                                                   false, &bytes, &ignored) == 0)
            use->bytes += bytes;
        sandbox_free(all[i]);
    }
    free(all);
}

static void add_stored(const struct store_space *stored, struct space_use parts[SPACE_PARTS])
{
    add(&parts[SPACE_SNAPSHOTS], (uint64_t)stored->snapshots,
        (uint64_t)stored->layer_bytes[LAYER_FOR_SNAPSHOTS]);
    add(&parts[SPACE_CHECKPOINTS], (uint64_t)stored->checkpoints,
        (uint64_t)stored->layer_bytes[LAYER_FOR_CHECKPOINTS]);
    add(&parts[SPACE_SANDBOXES], (uint64_t)stored->sandboxes,
        (uint64_t)stored->layer_bytes[LAYER_FOR_SANDBOXES]);
    add(&parts[SPACE_STREAMS], (uint64_t)stored->streams, (uint64_t)stored->stream_bytes);
    add(&parts[SPACE_UNUSED], (uint64_t)stored->layers[LAYER_FOR_NOBODY],
        (uint64_t)stored->layer_bytes[LAYER_FOR_NOBODY]);
}

// ---- uploads that nobody will finish ----

/* Whether the upload `name` (an id, perhaps with more behind a dot) is of a build that still may be finished. */
static int is_wanted(struct core *core, const char *name, int64_t now, struct error *err)
{
    autofree char *id = xstrndup(name, strcspn(name, "."));
    autosnapshot record = {0};

    if (!id_is_valid(id))
        return 0;
    if (store_snapshot_get(core->store, id, &record, err) < 0)
        return error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    return record.state == SNAPSHOT_BUILDING && now - record.created_at < SNAPSHOT_BUILD_MS;
}

/* Uploads without such a build; they go unless it is a trial. */
static int look_at_uploads(struct core *core, bool is_trial, struct space_use *use,
                           struct error *err)
{
    autofree char *path = snapshot_build_directory(core);
    int64_t now = (int64_t)clock_wall_ms();
    const struct dirent *entry;

    autodir directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_sys(err, "look into '%s'", path);
    while ((entry = readdir(directory))) {
        struct stat info;
        int wanted = entry->d_name[0] == '.' ? 1 : is_wanted(core, entry->d_name, now, err);
        if (wanted < 0)
            return -1;
        if (wanted || fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (!is_trial && unlinkat(dirfd(directory), entry->d_name, 0) < 0)
            return error_sys(err, "remove '%s/%s'", path, entry->d_name);
        add(use, 1, (uint64_t)info.st_blocks * 512);
    }
    return 0;
}

/* Builds that were announced long ago are over: whoever finishes one is told so. */
static int give_up_builds(struct core *core, struct error *err)
{
    const struct snapshot_filter filter = {
        .is_here = true, .states = snapshot_in(SNAPSHOT_BUILDING), .page = {.limit = PAGE}};
    int64_t now = (int64_t)clock_wall_ms();
    autosnapshots found = {0};

    if (store_snapshot_list(core->store, &filter, &found, err) < 0) // the oldest first
        return -1;
    for (size_t i = 0; i < found.count; i++) {
        struct snapshot_record record = found.rows[i];
        if (now - record.created_at < SNAPSHOT_BUILD_MS)
            continue;
        record.state = SNAPSHOT_FAILED;
        record.error = "it was announced and not finished within an hour";
        record.updated_at = now;
        if (store_snapshot_update(core->store, &record, SNAPSHOT_PART_STATE,
                                  snapshot_in(SNAPSHOT_BUILDING), err) < 0 &&
            !error_is(err, ERROR_CONFLICT))
            return -1;
    }
    return 0;
}

// ---- what callers ask ----

int space_get(struct core *core, const struct actor *actor, struct space *out, struct error *err)
{
    struct space found = {0};
    struct store_space stored;
    struct volume_space volume;

    if (admins_only(actor, err) < 0 ||
        volume_space(engine_volume(core->engine), &volume, err) < 0 ||
        store_space_get(core->store, &stored, err) < 0 ||
        runtime_measure(core->runtimes, &found.parts[SPACE_RUNTIMES].count,
                        &found.parts[SPACE_RUNTIMES].bytes, err) < 0 ||
        look_at_uploads(core, true, &found.parts[SPACE_UNUSED], err) < 0)
        return -1;
    found.volume_bytes = volume.total_bytes;
    found.free_bytes = volume.free_bytes;
    add_stored(&stored, found.parts);
    measure_scratches(core, &found.parts[SPACE_SANDBOXES]);
    add(&found.parts[SPACE_DATABASE], 1, store_disk_bytes(core->store));
    *out = found;
    return 0;
}

int space_prune(struct core *core, const struct actor *actor, const struct space_pruning *pruning,
                struct space_use freed[SPACE_PARTS], struct error *err)
{
    struct space_use found[SPACE_PARTS] = {0};
    struct layers_freed layers = {0};
    struct store_space stored;

    if (admins_only(actor, err) < 0)
        return -1;
    if (pruning->is_trial) {
        if (store_space_get(core->store, &stored, err) < 0)
            return -1;
        layers.count = (uint64_t)stored.layers[LAYER_FOR_NOBODY];
        layers.bytes = (uint64_t)stored.layer_bytes[LAYER_FOR_NOBODY];
    } else if (give_up_builds(core, err) < 0 || layers_remove_unused(core, &layers, err) < 0) {
        return -1;
    }
    if (look_at_uploads(core, pruning->is_trial, &found[SPACE_UNUSED], err) < 0 ||
        (!pruning->is_trial && volume_settle(engine_volume(core->engine), err) < 0))
        return -1;
    add(&found[SPACE_UNUSED], layers.count, layers.bytes);
    memcpy(freed, found, sizeof found);
    return 0;
}
