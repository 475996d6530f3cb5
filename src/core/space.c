/* SPDX-License-Identifier: Apache-2.0 */
/* What the server's data takes; see space.h. */
#include "core/space.h"

#include "base/clock.h"
#include "core/runtime/runtimes.h"
#include "install/install.h"
#include "runtime/build.h"
#include "base/clock.h"
#include "base/mem.h"
#include "core/layer/layers.h"
#include "core/runtime/runtime.h"
#include "core/core.h"
#include "core/sandbox/ending.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/sandbox_object.h"
#include "core/snapshot/snapshot_impl.h"
#include "store/space_counts.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

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

// ---- what callers ask ----

int space_get(struct core *core, const struct actor *actor, struct space *out, struct error *err)
{
    struct space found = {0};
    struct store_space stored;
    struct volume_space volume;

    if (actor_need_admin(actor, err) < 0 ||
        volume_space(engine_volume(core->engine), &volume, err) < 0 ||
        store_space_get(core->store, &stored, err) < 0 ||
        runtime_measure(core->runtimes, &found.parts[SPACE_RUNTIMES].count,
                        &found.parts[SPACE_RUNTIMES].bytes, err) < 0 ||
        snapshot_build_sweep(core->snapshots, true, &found.parts[SPACE_UNUSED].count,
                             &found.parts[SPACE_UNUSED].bytes, err) < 0)
        return -1;
    found.volume_bytes = volume.total_bytes;
    found.free_bytes = volume.free_bytes;
    struct install_found packages;
    struct runtime_unused layers;
    if (install_sweep(core->settings.data_dir, INT64_MIN, true, &packages, err) < 0 ||
        runtime_sweep(core->settings.data_dir, true, &layers, err) < 0)
        return -1;
    add(&found.parts[SPACE_UNUSED], layers.count, layers.bytes);
    add(&found.parts[SPACE_RUNTIMES], packages.count, packages.bytes);
    add_stored(&stored, found.parts);
    measure_scratches(core, &found.parts[SPACE_SANDBOXES]);
    add(&found.parts[SPACE_DATABASE], 1, store_disk_bytes(core->store));
    *out = found;
    return 0;
}

/* Packages that no box uses and nobody has asked for in a while; builds that no tag points at, and layers of images that no build has. */
static int prune_runtimes(struct core *core, bool is_trial, struct space_use *freed,
                          struct space_use *unused, struct error *err)
{
    int64_t unused_since = (int64_t)clock_wall_ms() - core->settings.packages_keep_ms;
    struct runtime_unused layers;
    struct install_found found;

    runtimes_forget_packages(core->runtimes, unused_since);
    if (!is_trial)
        install_clean(core->engine, core->settings.data_dir);
    if (runtime_sweep(core->settings.data_dir, is_trial, &layers, err) < 0 ||
        install_sweep(core->settings.data_dir, unused_since, is_trial, &found, err) < 0)
        return -1;
    add(freed, found.removed, found.removed_bytes);
    add(unused, layers.count, layers.bytes);
    return 0;
}

int space_prune(struct core *core, const struct actor *actor, const struct space_pruning *pruning,
                struct space_use freed[SPACE_PARTS], struct error *err)
{
    struct space_use found[SPACE_PARTS] = {0};
    struct layers_freed layers = {0};
    struct store_space stored;

    if (actor_need_admin(actor, err) < 0)
        return -1;
    if (pruning->is_trial) {
        if (store_space_get(core->store, &stored, err) < 0)
            return -1;
        layers.count = (uint64_t)stored.layers[LAYER_FOR_NOBODY];
        layers.bytes = (uint64_t)stored.layer_bytes[LAYER_FOR_NOBODY];
    } else if (snapshot_build_expire(core->snapshots, err) < 0 ||
               layers_remove_unused(core->layers, &layers, err) < 0) {
        return -1;
    }
    if (!pruning->is_trial)
        ending_await_removals(core->sandboxes);
    if (snapshot_build_sweep(core->snapshots, pruning->is_trial, &found[SPACE_UNUSED].count,
                             &found[SPACE_UNUSED].bytes, err) < 0 ||
        (!pruning->is_trial && volume_settle(engine_volume(core->engine), err) < 0))
        return -1;
    if (prune_runtimes(core, pruning->is_trial, &found[SPACE_RUNTIMES], &found[SPACE_UNUSED], err) <
        0)
        return -1;
    add(&found[SPACE_UNUSED], layers.count, layers.bytes);
    memcpy(freed, found, sizeof found);
    return 0;
}
