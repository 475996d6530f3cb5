/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots as images; see snapshot_archive.h. The runtime's layers, and over them one with all that the snapshot changed. */
#include "base/cancel.h"
#include "base/mem.h"
#include "core/layer/stack.h"
#include "core/sandbox/pool.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/temporary.h"
#include "core/snapshot/snapshot_archive.h"
#include "core/snapshot/snapshot_impl.h"
#include "runtime/oci_export.h"

#include <string.h>
#include <sys/stat.h>

struct imaging {
    struct oci_writer *writer;
    struct cancel *cancel;
};

/* Files of another type than before need no mark: an image's reader removes what is in the way. */
static int put_change(void *data, const struct layer_change *change, struct error *err)
{
    struct imaging *imaging = data;
    struct files_item item = change->item;

    if (cancel_is_set(imaging->cancel))
        return error_set(err, ERROR_CANCELLED, "given up");
    if (change->kind == LAYER_REMOVED)
        return oci_writer_hide(imaging->writer, item.path, err);
    if (item.is_hard_link)
        item.size = 0;
    if (oci_writer_entry(imaging->writer, &item, NULL, 0, err) < 0)
        return -1;
    return S_ISREG(item.mode) && !item.is_hard_link
               ? oci_writer_content(imaging->writer, change->fd, item.size, err)
               : 0;
}

static int put_changes(struct imaging *imaging, struct snapshots *snapshots,
                       const struct stack *stack, struct error *err)
{
    const struct layer_diff_options options = {0};
    struct layer_diff_total total = {0};

    if (oci_writer_begin_layer(imaging->writer, err) < 0 ||
        layer_diff(snapshots->volume, &stack->base, &stack->full, &options, put_change, imaging,
                   &total, err) < 0)
        return -1;
    if (total.n_deep)
        return error_set(err, ERROR_LIMIT, "directories are nested too deep to be moved");
    return oci_writer_end_layer(imaging->writer, err);
}

static int finish(struct imaging *imaging, const struct snapshot_record *record,
                  const struct runtime_image *runtime, struct error *err)
{
    autostrings env = {0};

    strings_merge(&env, (const char *const *)runtime->env);
    autofree const char *const *own = strings_list(record->env);
    strings_merge(&env, own);
    const struct oci_writer_config config = {
        .name = record->tag && *record->tag ? record->tag : "latest",
        .env = (const char *const *)env.items,
        .command = (const char *const *)runtime->command,
        .user = runtime->user,
        .directory = runtime->directory,
        .created_s = record->created_at / 1000,
    };
    return oci_writer_finish(imaging->writer, &config, err);
}

static int write_image(struct snapshots *snapshots, const struct snapshot_record *record,
                       struct cancel *cancel, uint64_t maximum, int fd, struct error *err)
{
    autostack stack = {0};
    autoptr(oci_writer) writer = oci_writer_new(fd, maximum);
    struct imaging imaging = {.writer = writer, .cancel = cancel};

    autofree char *additions = additions_of(record->dependencies, record->packages);
    if (stack_open(snapshots->runtimes, record->runtime, additions, record->layers, &stack, err) <
        0)
        return -1;
    const struct runtime_image *runtime = image_runtime(stack.image);
    if (oci_export_layers(writer, runtime, err) < 0 ||
        put_changes(&imaging, snapshots, &stack, err) < 0)
        return -1;
    return finish(&imaging, record, runtime, err);
}

int snapshot_export_image(struct snapshots *snapshots, const struct actor *actor, const char *id,
                          uint64_t maximum, struct temporary **out, struct error *err)
{
    autopin pin = {.layers = snapshots->layers};
    autosnapshot record = {0};
    autoptr(temporary) image = NULL;

    if (snapshot_find_ready(snapshots, actor, id, &record, err) < 0 ||
        snapshot_pin(snapshots, &record, &pin, err) < 0 ||
        temporary_new(snapshots->sandboxes->temporaries, actor, &image, err) < 0)
        return -1;
    if (write_image(snapshots, &record, actor->cancel, maximum, image->fd, err) < 0 ||
        temporary_settle(image, err) < 0) {
        if (error_is(err, ERROR_LIMIT))
            (void)error_restate(err, ERROR_TOO_LARGE, "snapshot");
        return error_wrap(err, "export snapshot '%s'", record.id);
    }
    *out = take(image);
    return 0;
}
