/* SPDX-License-Identifier: Apache-2.0 */
/* Boxes to unpack in; see build_box.h. */
#include "core/snapshot/build_box.h"

#include "core/sandbox/file_impl.h"
#include "core/layer/layers.h"
#include "engine/files.h"

int build_box_open(struct build_box *build_box, const char *runtime, const char *dependencies,
                   const char *packages, int64_t disk_bytes, struct error *err)
{
    struct pool_request request = {.runtime = runtime,
                                   .dependencies = dependencies,
                                   .packages = packages,
                                   .limits = build_box->snapshots->settings->limits};

    request.limits.cpu_millicores = 0;
    request.limits.disk_bytes = disk_bytes;
    return pool_take(build_box->snapshots->sandboxes->pool, &request, &build_box->pooled, err);
}

int build_box_files(struct build_box *build_box, int *conversation, struct error *err)
{
    autofd fd = -1;

    if (box_files(build_box->pooled.box, NULL, "/", &fd, err) < 0 ||
        files_set_timeout(fd, FILE_TIMEOUT_MS, err) < 0)
        return -1;
    *conversation = take_fd(fd);
    return 0;
}

int build_box_save(struct build_box *build_box, const char *layer, uint64_t *bytes,
                   struct error *err)
{
    int result = box_end(build_box->pooled.box, err);

    box_free(take(build_box->pooled.box));
    if (result < 0)
        return -1;
    if (layer_save(build_box->snapshots->volume, build_box->pooled.scratch, layer, bytes, err) < 0)
        return layers_explain_no_room(err);
    return 0;
}

void build_box_close(struct build_box *build_box)
{
    struct error ignored = {0};

    if (build_box->pooled.box) {
        (void)box_end(build_box->pooled.box, &ignored);
        box_free(take(build_box->pooled.box));
    }
    if (build_box->pooled.scratch[0])
        (void)volume_scratch_remove(build_box->snapshots->volume, build_box->pooled.scratch,
                                    &ignored);
    pooled_clear(&build_box->pooled);
}
