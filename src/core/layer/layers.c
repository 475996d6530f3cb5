/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers are needed; see layers.h. */
#include "core/layer/layers.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/checkpoints.h"
#include "core/core_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const char *layers_name(char name[LAYER_NAME])
{
    char id[ID_TEXT];
    (void)snprintf(name, LAYER_NAME, "layer-%s", id_make(id));
    return name;
}

int layers_explain(struct error *err)
{
    if (err->sys == ENOSPC) {
        error_set(err, ERROR_LIMIT, LAYERS_NO_ROOM);
        err->sys = ENOSPC;
    }
    return -1;
}

int layers_put(struct core *core, const char *name, uint64_t bytes, const char *user,
               struct error *err)
{
    const struct layer_record record = {
        .name = name, .size_bytes = (int64_t)bytes, .created_at = (int64_t)clock_wall_ms()};

    if (store_layer_put(core->store, &record, err) < 0)
        return -1;
    return store_layer_use(core->store, name, user, err);
}

int layers_use(struct core *core, const char *packed, const char *user, struct error *err)
{
    autostrings names = {0};

    strings_unpack(packed, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (store_layer_use(core->store, names.items[i], user, err) < 0)
            return -1;
    }
    return 0;
}

int layers_hold(struct layers_hold *hold, const char *packed, struct error *err)
{
    autotransaction together = {0};

    if (!hold->user[0])
        (void)id_make(hold->user);
    if (store_begin(hold->core->store, STORE_FAST, &together, err) < 0)
        return -1;
    if (layers_use(hold->core, packed, hold->user, err) < 0)
        return error_is(err, ERROR_CONFLICT)
                   ? error_set(err, ERROR_NOT_FOUND, "files were removed meanwhile")
                   : -1;
    return store_commit(&together, err);
}

void layers_let_go(struct layers_hold *hold)
{
    struct error ignored = {0};
    autotransaction together = {0};

    if (!hold->user[0])
        return;
    if (store_begin(hold->core->store, STORE_FAST, &together, &ignored) == 0 &&
        store_layer_release(hold->core->store, hold->user, &ignored) == 0)
        (void)store_commit(&together, &ignored); // else the next start does
    hold->user[0] = '\0';
    layers_tidy(hold->core);
}

/*
 * The row goes first, which fails when somebody has come to need it since; files without a row are swept at the next start. What cannot be
 * removed now gets its row back, for the next try.
 */
static int remove_unused(struct core *core, const struct layer_record *layer,
                         struct layers_freed *freed, struct error *err)
{
    struct error ignored = {0};

    if (store_layer_remove(core->store, layer->name, err) < 0) // or is removed by another just now
        return error_is(err, ERROR_CONFLICT) || error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    if (layer_remove(engine_volume(core->engine), layer->name, err) < 0) {
        (void)store_layer_put(core->store, layer, &ignored);
        return -1;
    }
    freed->count++;
    freed->bytes += (uint64_t)layer->size_bytes;
    return 0;
}

int layers_remove_unused(struct core *core, struct layers_freed *freed, struct error *err)
{
    autolayers unused = {0};
    struct error later = {0};
    int result = 0;

    if (store_layer_list(core->store, true, &unused, err) < 0)
        return -1;
    for (size_t i = 0; i < unused.count; i++) {
        if (remove_unused(core, &unused.rows[i], freed, result < 0 ? &later : err) < 0)
            result = -1;
    }
    if (layer_reclaim(engine_volume(core->engine), NULL, result < 0 ? &later : err) < 0)
        result = -1;
    return result;
}

static void warn(const struct error *err)
{
    log_warn("files of removed snapshots could not be removed; it is tried again with the next",
             F("error", (const char *)err->text));
}

static void tidy(void *data)
{
    struct layers_freed freed = {0};
    struct error err = {0};

    if (layers_remove_unused(data, &freed, &err) < 0)
        warn(&err);
}

void layers_tidy(struct core *core)
{
    struct error ignored = {0};
    (void)workers_submit(core->reaper, WORKERS_SLOW, tidy, core, &ignored);
}

static bool is_known(const char *name, void *data)
{
    const struct layer_list *known = data;
    for (size_t i = 0; i < known->count; i++) {
        if (strcmp(known->rows[i].name, name) == 0)
            return true;
    }
    return false;
}

int layers_sweep(struct core *core, struct error *err)
{
    struct layers_freed freed = {0};
    autolayers known = {0};

    if (store_layer_forget_users(core->store, err) < 0 ||
        store_layer_list(core->store, false, &known, err) < 0)
        return error_wrap(err, "look through the layers");
    if (layer_sweep(engine_volume(core->engine), is_known, &known, err) < 0 ||
        layers_remove_unused(core, &freed, err) < 0)
        warn(err); // a server that does not start helps nobody
    return 0;
}
