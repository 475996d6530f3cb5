/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a fork; see fork_files.h. */
#include "core/fork_files.h"

#include "base/mem.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/sandbox_box.h"
#include "core/snapshot/merge.h"
#include "store/checkpoints.h"

#include <string.h>

static struct volume *volume_of(const struct fork_files *files)
{
    return engine_volume(files->core->engine);
}

/* What lies below its own files never changes while it lives; what it was started on stays until the pin is gone. */
static int pin_below(struct fork_files *files, const struct sandbox *sandbox, struct error *err)
{
    const char *below = sandbox->record.layers;

    files->pin.layers = files->core->layers;
    if (!below || layers_pin(&files->pin, below, err) == 0)
        return 0;
    return error_is(err, ERROR_NOT_FOUND) ? sandbox_refuse_ending(err) : -1;
}

int fork_files_take(struct fork_files *files, struct core *core, const struct actor *actor,
                    const char *sandbox_id, struct error *err)
{
    autoptr(sandbox) sandbox = NULL;
    char layer[LAYER_NAME];

    files->core = core;
    if (lookup_sandbox(core->sandboxes, actor, sandbox_id, &sandbox, err) < 0)
        return -1;
    sandbox_touch(sandbox);
    if (pin_below(files, sandbox, err) < 0)
        return -1;
    if (sandbox_save_files(sandbox, layers_name(layer), &files->bytes, err) < 0)
        return error_wrap(err, "take the files of the sandbox");
    memcpy(files->layer, layer, sizeof layer);
    files->snapshot = sandbox->record.snapshot ? xstrdup(sandbox->record.snapshot) : NULL;
    autofree char *layers = layers_on_top(layer, sandbox->record.layers);
    return merge_stack(core->snapshots, layers, &files->pin, &files->layers, err);
}

int fork_files_hold(struct fork_files *files, const char *id, struct error *err)
{
    struct core *core = files->core;
    autotransaction together = {0};

    do
        files->is_held = store_begin(core->store, STORE_DURABLE, &together, err) == 0 &&
                         layers_put(core->layers, files->layer, files->bytes, id, err) == 0 &&
                         layers_use(core->layers, files->layers, id, err) == 0 &&
                         store_commit(&together, err) == 0;
    while (!files->is_held && store_again(&together, err));
    return files->is_held ? 0 : -1;
}

void fork_files_clear(struct fork_files *files)
{
    struct error ignored = {0};

    if (files->layer[0] && !files->is_held)
        (void)layer_remove(volume_of(files), files->layer, &ignored); // else swept
    if (files->pin.layers)
        layers_unpin(&files->pin);
    free(files->layers);
    free(files->snapshot);
}
