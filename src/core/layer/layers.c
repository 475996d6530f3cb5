/* SPDX-License-Identifier: Apache-2.0 */
/* Which layers are needed; see layers.h. */
#include "core/layer/layers.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/checkpoints.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct layers {
    struct store *store;
    struct volume *volume;
    struct workers *workers; // remove what nobody needs
};

struct layers *layers_new(struct store *store, struct volume *volume, struct workers *workers)
{
    struct layers *layers = xnew(struct layers);

    *layers = (struct layers){.store = store, .volume = volume, .workers = workers};
    return layers;
}

void layers_free(struct layers *layers)
{
    free(layers);
}

const char *layers_name(char name[LAYER_NAME])
{
    char id[ID_TEXT];
    (void)snprintf(name, LAYER_NAME, "layer-%s", id_make(id));
    return name;
}

char *layers_on_top(const char *layer, const char *below)
{
    const char *one[] = {layer, NULL};
    autofree char *top = strings_pack(one);

    return xasprintf("%s%s", top, below ? below : "");
}

int layers_explain_no_room(struct error *err)
{
    if (err->sys == ENOSPC) {
        error_refuse(err, ERROR_NO_SPACE, "volume", LAYERS_NO_ROOM);
        err->sys = ENOSPC;
    }
    return -1;
}

int layers_put(struct layers *layers, const char *name, uint64_t bytes, const char *user,
               struct error *err)
{
    const struct layer_record record = {
        .name = name, .size_bytes = (int64_t)bytes, .created_at = (int64_t)clock_wall_ms()};

    if (store_layer_put(layers->store, &record, err) < 0)
        return -1;
    return store_layer_use(layers->store, name, user, err);
}

int layers_use(struct layers *layers, const char *packed, const char *user, struct error *err)
{
    autostrings names = {0};

    strings_unpack(packed, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (store_layer_use(layers->store, names.items[i], user, err) < 0)
            return -1;
    }
    return 0;
}

int layers_pin(struct layers_pin *pin, const char *packed, struct error *err)
{
    autotransaction together = {0};
    bool is_put;

    if (!pin->user[0])
        (void)id_make(pin->user);
    do
        is_put = store_begin(pin->layers->store, STORE_FAST, &together, err) == 0 &&
                 layers_use(pin->layers, packed, pin->user, err) == 0 &&
                 store_commit(&together, err) == 0;
    while (!is_put && store_again(&together, err));
    if (!is_put && error_is(err, ERROR_CONFLICT))
        error_set(err, ERROR_NOT_FOUND, "files were removed meanwhile");
    return is_put ? 0 : -1;
}

void layers_unpin(struct layers_pin *pin)
{
    struct error ignored = {0};
    autotransaction together = {0};
    bool is_put;

    if (!pin->user[0])
        return;
    do
        is_put = store_begin(pin->layers->store, STORE_FAST, &together, &ignored) == 0 &&
                 store_layer_release(pin->layers->store, pin->user, &ignored) == 0 &&
                 store_commit(&together, &ignored) == 0;
    while (!is_put && store_again(&together, &ignored)); // else the next start does
    pin->user[0] = 0;
    layers_remove_unused_later(pin->layers);
}

/*
 * The row goes first, which fails when somebody has come to need it since; files without a row are swept at the next start. What cannot be
 * removed now gets its row back, for the next try.
 */
static int remove_unused(struct layers *layers, const struct layer_record *layer,
                         struct layers_freed *freed, struct error *err)
{
    struct error ignored = {0};

    if (store_layer_remove(layers->store, layer->name, err) <
        0) // or is removed by another just now
        return error_is(err, ERROR_CONFLICT) || error_is(err, ERROR_NOT_FOUND) ? 0 : -1;
    if (layer_remove(layers->volume, layer->name, err) < 0) {
        (void)store_layer_put(layers->store, layer, &ignored);
        return -1;
    }
    freed->count++;
    freed->bytes += (uint64_t)layer->size_bytes;
    return 0;
}

int layers_remove_unused(struct layers *layers, struct layers_freed *freed, struct error *err)
{
    autolayers unused = {0};
    struct error later = {0};
    int result = 0;

    if (store_layer_list(layers->store, true, &unused, err) < 0)
        return -1;
    for (size_t i = 0; i < unused.count; i++) {
        if (remove_unused(layers, &unused.rows[i], freed, result < 0 ? &later : err) < 0)
            result = -1;
    }
    if (layer_reclaim(layers->volume, NULL, result < 0 ? &later : err) < 0)
        result = -1;
    return result;
}

static void warn(const struct error *err)
{
    log_warn("files of removed snapshots could not be removed; it is tried again with the next",
             F("error", (const char *)err->text));
}

static void remove_unused_now(void *data)
{
    struct layers_freed freed = {0};
    struct error err = {0};

    if (layers_remove_unused(data, &freed, &err) < 0)
        warn(&err);
}

void layers_remove_unused_later(struct layers *layers)
{
    struct error ignored = {0};
    (void)workers_submit(layers->workers, WORKERS_SLOW, remove_unused_now, layers, &ignored);
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

int layers_sweep(struct layers *layers, struct error *err)
{
    struct layers_freed freed = {0};
    autolayers known = {0};

    if (store_layer_forget_users(layers->store, err) < 0 ||
        store_layer_list(layers->store, false, &known, err) < 0)
        return error_wrap(err, "look through the layers");
    if (layer_sweep(layers->volume, is_known, &known, err) < 0 ||
        layers_remove_unused(layers, &freed, err) < 0)
        warn(err); // a server that does not start helps nobody
    return 0;
}
