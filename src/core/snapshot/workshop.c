/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes to unpack in; see workshop.h. */
#include "core/snapshot/workshop.h"

#include "core/layer/layers.h"
#include "engine/files.h"
#include "core/core_impl.h"

#define FILE_TIMEOUT_MS 60000

int workshop_open(struct workshop *workshop, const char *runtime, uint64_t disk_bytes,
                  struct error *err)
{
    const struct core_settings *settings = &workshop->core->settings;
    const struct pool_request request = {
        .runtime = runtime,
        .limits = {(uint64_t)settings->memory_bytes, 0, (uint32_t)settings->max_processes},
        .disk = {.bytes = disk_bytes},
    };
    return pool_take(workshop->core->sandboxes->pool, &request, &workshop->pooled, err);
}

int workshop_files(struct workshop *workshop, int *conversation, struct error *err)
{
    autofd fd = -1;

    if (box_files(workshop->pooled.box, NULL, "/", &fd, err) < 0 ||
        files_set_timeout(fd, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    *conversation = take_fd(fd);
    return 0;
}

int workshop_save(struct workshop *workshop, const char *layer, uint64_t *bytes, struct error *err)
{
    int result = box_end(workshop->pooled.box, err);

    box_free(take(workshop->pooled.box));
    if (result < 0)
        return -1;
    if (layer_save(engine_volume(workshop->core->engine), workshop->pooled.scratch, layer, bytes,
                   err) < 0)
        return layers_explain(err);
    return 0;
}

void workshop_close(struct workshop *workshop)
{
    struct error ignored = {0};

    if (workshop->pooled.box) {
        (void)box_end(workshop->pooled.box, &ignored);
        box_free(take(workshop->pooled.box));
    }
    if (workshop->pooled.scratch[0])
        (void)volume_scratch_remove(engine_volume(workshop->core->engine), workshop->pooled.scratch,
                                    &ignored);
    pooled_clear(&workshop->pooled);
}
