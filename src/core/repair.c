/* SPDX-License-Identifier: Apache-2.0 */
/* Brings database and volume together again; see repair.h. */
#include "core/repair.h"

#include "base/auto.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/mem.h"
#include "base/strings.h"
#include "core/account/account.h"
#include "core/data_lock.h"
#include "core/layer/layers.h"
#include "core/sandbox/pool.h"
#include "engine/layer.h"
#include "engine/volume.h"
#include "store/checkpoints.h"
#include "store/sandboxes.h"
#include "store/snapshots.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define DEEPEST 16 // directories in which a scratch is searched for files

// ---- whether the database is missing ----

static bool has_entries(const char *data_dir, const char *name)
{
    autofree char *path = xasprintf("%s/%s", data_dir, name);
    autodir dir = opendir(path);
    struct dirent *entry = NULL;

    while (dir && (entry = readdir(dir)) && *entry->d_name == '.')
        ;
    return entry != NULL;
}

/* A server opens its database before it makes any of these. */
int repair_check(const char *data_dir, struct error *err)
{
    if (store_exists(data_dir) ||
        !(has_entries(data_dir, "spool") || has_entries(data_dir, "volume/layers")))
        return 0;
    return error_set(err, ERROR_CONFLICT,
                     "the database 'burrow.db' is missing from the data directory '%s', and what a "
                     "server keeps there is not: put the database back, or have 'burrow repair "
                     "--data %s' make a new one",
                     data_dir, data_dir);
}

// ---- taking stock ----

struct repair {
    const struct repair_request *request;
    struct repair_report *report;
    struct volume *volume;
    struct store *store;
    struct accounts *accounts;
    struct strings on_volume; // names of layers
};

static bool has_name(const struct strings *names, const char *name)
{
    for (size_t i = 0; i < names->count; i++)
        if (strcmp(names->items[i], name) == 0)
            return true;
    return false;
}

static bool note_name(const char *name, void *data)
{
    strings_add(data, name);
    return true; // nothing is removed here
}

/* Layers that only the volume has get their rows again. */
static int write_down_found(struct repair *repair, const struct layer_list *known,
                            struct error *err)
{
    struct repair_report *report = repair->report;

    for (size_t i = 0; i < repair->on_volume.count; i++) {
        const char *name = repair->on_volume.items[i];
        bool is_known = false;
        for (size_t j = 0; j < known->count && !is_known; j++)
            is_known = strcmp(known->rows[j].name, name) == 0;
        const struct layer_record record = {.name = name, .created_at = (int64_t)clock_wall_ms()};
        if (!is_known && !repair->request->is_trial &&
            store_layer_put(repair->store, &record, err) < 0)
            return -1;
        report->layers_known += is_known;
        report->layers_found += !is_known;
        if (repair->request->is_trial) // else they are counted when they have rows
            report->orphans += !is_known;
    }
    for (size_t i = 0; i < known->count; i++)
        report->layers_lost += !has_name(&repair->on_volume, known->rows[i].name);
    return 0;
}

/* `user` needs all of these that are there. False: some are not. */
static int use_layers(struct repair *repair, const char *packed, const char *user, bool *is_whole,
                      struct error *err)
{
    autostrings names = {0};

    *is_whole = true;
    strings_unpack(packed, &names);
    for (size_t i = 0; i < names.count; i++) {
        if (!has_name(&repair->on_volume, names.items[i]))
            *is_whole = false;
        else if (!repair->request->is_trial &&
                 store_layer_use(repair->store, names.items[i], user, err) < 0)
            return -1;
    }
    return 0;
}

static int check_snapshot(struct repair *repair, struct snapshot_record *record, struct error *err)
{
    bool is_whole;

    if (use_layers(repair, record->layers, record->id, &is_whole, err) < 0)
        return -1;
    if (is_whole)
        return 0;
    repair->report->snapshots_failed++;
    if (repair->request->is_trial)
        return 0;
    struct snapshot_record failed = *record; // its strings stay the list's
    failed.state = SNAPSHOT_FAILED;
    failed.error = "its files are lost";
    failed.updated_at = (int64_t)clock_wall_ms();
    if (store_snapshot_update(repair->store, &failed, SNAPSHOT_PART_STATE,
                              snapshot_in(SNAPSHOT_READY), err) < 0)
        return -1;
    return store_layer_release(repair->store, record->id, err);
}

/* Of ready ones; those that fail leave the list. */
static int check_snapshots(struct repair *repair, struct error *err)
{
    struct snapshot_filter filter = {
        .is_here = true, .with_steps = SNAPSHOT_STEPS_TOO, .page = {.limit = PAGE_MAX}};

    for (size_t count = PAGE_MAX; count == PAGE_MAX;) {
        autosnapshots list = {0};
        unsigned failed = repair->report->snapshots_failed;
        if (store_snapshot_list(repair->store, &filter, &list, err) < 0)
            return -1;
        for (size_t i = 0; i < list.count; i++)
            if (check_snapshot(repair, &list.rows[i], err) < 0)
                return -1;
        count = list.count;
        failed = repair->request->is_trial ? 0 : repair->report->snapshots_failed - failed;
        filter.page.offset += (int64_t)count - failed;
    }
    return 0;
}

static int check_sandboxes(struct repair *repair, struct error *err)
{
    autosandboxes alive = {0};
    bool ignored; // a server that wakes it says what is missing

    if (store_sandbox_list_alive(repair->store, &alive, err) < 0)
        return -1;
    for (size_t i = 0; i < alive.count; i++)
        if (use_layers(repair, alive.rows[i].layers, alive.rows[i].id, &ignored, err) < 0)
            return -1;
    return 0;
}

static int remove_checkpoint(struct repair *repair, const char *id, struct error *err)
{
    return store_checkpoint_remove(repair->store, id, err) < 0
               ? -1
               : store_layer_release(repair->store, id, err);
}

static int check_checkpoints(struct repair *repair, struct error *err)
{
    autocheckpoints list = {0};

    if (store_checkpoint_list(repair->store, NULL, &list, err) < 0)
        return -1;
    for (size_t i = 0; i < list.count; i++) {
        const struct checkpoint_record *record = &list.rows[i];
        bool is_there = has_name(&repair->on_volume, record->layer);
        repair->report->checkpoints_lost += !is_there;
        if (repair->request->is_trial)
            continue;
        if (is_there ? store_layer_use(repair->store, record->layer, record->id, err) < 0
                     : remove_checkpoint(repair, record->id, err) < 0)
            return -1;
    }
    return 0;
}

/* Rows of lost layers that nobody needs any more. */
static int forget_lost(struct repair *repair, struct error *err)
{
    autolayers unused = {0};

    if (repair->request->is_trial)
        return 0;
    if (store_layer_list(repair->store, true, &unused, err) < 0)
        return -1;
    for (size_t i = 0; i < unused.count; i++)
        if (!has_name(&repair->on_volume, unused.rows[i].name) &&
            store_layer_remove(repair->store, unused.rows[i].name, err) < 0)
            return -1;
    return 0;
}

static int take_stock(struct repair *repair, struct error *err)
{
    autolayers known = {0};

    if (layer_sweep(repair->volume, note_name, &repair->on_volume, err) < 0 ||
        store_layer_list(repair->store, false, &known, err) < 0 ||
        write_down_found(repair, &known, err) < 0 || check_snapshots(repair, err) < 0 ||
        check_sandboxes(repair, err) < 0 || check_checkpoints(repair, err) < 0 ||
        forget_lost(repair, err) < 0)
        return error_wrap(err, "take stock of the volume");
    return 0;
}

// ---- what is nobody's ----

/* A snapshot of one layer, so that its files can be had. */
static int make_snapshot(struct repair *repair, const char *layer, struct error *err)
{
    const char *const chain[] = {layer, NULL};
    autofree char *packed = strings_pack(chain);
    size_t length = strlen(layer);
    autofree char *name = xasprintf("recovered-%s", layer + (length > 10 ? length - 10 : 0));
    autotransaction together = {0};
    char id[ID_TEXT];
    struct actor actor;
    int64_t now = (int64_t)clock_wall_ms();

    accounts_local_actor(repair->accounts, &actor);
    const struct snapshot_record record = {
        .id = id_make(id),
        .owner = actor_owner(&actor),
        .runtime = repair->request->runtime,
        .name = name,
        .description = "files that 'burrow repair' found without a record; what they were over is "
                       "not known",
        .layers = packed,
        .env = "",
        .state = SNAPSHOT_READY,
        .file_count = SNAPSHOT_NOT_COUNTED,
        .created_at = now,
        .updated_at = now,
    };
    if (store_begin(repair->store, STORE_DURABLE, &together, err) < 0 ||
        store_snapshot_put(repair->store, &record, err) < 0 ||
        store_layer_use(repair->store, layer, id, err) < 0 || store_commit(&together, err) < 0)
        return error_wrap(err, "make snapshot '%s'", name);
    repair->report->recovered++;
    return 0;
}

static int recover_layers(struct repair *repair, struct error *err)
{
    autolayers unused = {0};

    if (store_layer_list(repair->store, true, &unused, err) < 0)
        return -1;
    for (size_t i = 0; i < unused.count; i++) {
        bool is_there = has_name(&repair->on_volume, unused.rows[i].name);
        repair->report->orphans += is_there;
        if (repair->request->is_trial || !is_there || repair->request->drops_orphans)
            continue;
        if (make_snapshot(repair, unused.rows[i].name, err) < 0)
            return -1;
    }
    return 0;
}

/* Whether there is a file with anything in it; a box that was only made ahead has directories. Takes the fd. */
static bool has_files(int fd, unsigned depth)
{
    autodir dir = fdopendir(fd);
    struct dirent *entry;
    struct stat info;
    bool is_found = false;

    if (!dir) {
        closep(&fd);
        return false;
    }
    while (!is_found && (entry = readdir(dir))) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0 ||
            fstatat(dirfd(dir), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        is_found = S_ISREG(info.st_mode) && info.st_size > 0;
        if (S_ISDIR(info.st_mode) && depth < DEEPEST) {
            int below =
                openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
            is_found = below >= 0 && has_files(below, depth + 1);
        }
    }
    return is_found;
}

static bool is_worth_keeping(struct repair *repair, const char *scratch)
{
    struct error ignored;
    autofd dir_fd = -1;

    if (volume_scratch_open(repair->volume, scratch, &dir_fd, &ignored) < 0)
        return false;
    int upper = openat(dir_fd, "upper", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return upper >= 0 && has_files(upper, 0);
}

/* Files of a sandbox that has no record: a layer, and a snapshot of it. The layer is named after them, since they stay until a server
 * comes: who repairs twice gets one. */
static int recover_scratch(struct repair *repair, const char *scratch, struct error *err)
{
    char name[LAYER_NAME];
    uint64_t bytes = 0;

    (void)snprintf(name, sizeof name, "layer-%s", scratch + sizeof POOL_SCRATCH);
    if (has_name(&repair->on_volume, name))
        return 0;
    repair->report->orphans++;
    if (repair->request->is_trial || repair->request->drops_orphans)
        return 0;
    const struct layer_record record = {.name = name, .created_at = (int64_t)clock_wall_ms()};
    if (layer_save(repair->volume, scratch, name, &bytes, err) < 0 ||
        store_layer_put(repair->store, &record, err) < 0)
        return error_wrap(err, "keep the files of '%s'", scratch);
    return make_snapshot(repair, name, err);
}

static int recover_scratches(struct repair *repair, struct error *err)
{
    autosandboxes alive = {0};
    autostrings owned = {0}, all = {0};

    if (store_sandbox_list_alive(repair->store, &alive, err) < 0 ||
        volume_sweep(repair->volume, note_name, &all, err) < 0)
        return -1;
    for (size_t i = 0; i < alive.count; i++)
        if (alive.rows[i].scratch)
            strings_add(&owned, alive.rows[i].scratch);
    for (size_t i = 0; i < all.count; i++) {
        bool is_sandboxes = strncmp(all.items[i], POOL_SCRATCH "-", sizeof POOL_SCRATCH) == 0;
        if (is_sandboxes && !has_name(&owned, all.items[i]) &&
            is_worth_keeping(repair, all.items[i]) &&
            recover_scratch(repair, all.items[i], err) < 0)
            return -1;
    }
    return 0;
}

// ---- all of it ----

static int join(struct repair *repair, struct error *err)
{
    const char *data_dir = repair->request->data_dir;
    const struct volume_options options = {.scheme = VOLUME_AUTO};
    autoptr(volume) volume = NULL;
    autoptr(store) store = NULL;

    if (volume_open(data_dir, &options, &volume, err) < 0 || store_open(data_dir, &store, err) < 0)
        return -1;
    autoptr(accounts) accounts = NULL; // goes before the store does
    if (accounts_open(store, &accounts, err) < 0)
        return -1;
    repair->volume = volume;
    repair->store = store;
    repair->accounts = accounts;
    if (take_stock(repair, err) < 0 || recover_layers(repair, err) < 0)
        return -1;
    return recover_scratches(repair, err);
}

int repair_run(const struct repair_request *request, struct repair_report *out, struct error *err)
{
    struct repair repair = {.request = request, .report = out};
    autofd lock_fd = -1;

    *out = (struct repair_report){0};
    if (data_lock_take(request->data_dir, false, &lock_fd, err) < 0 ||
        salvage_run(request->data_dir, request->is_trial, &out->database, err) < 0)
        return -1;
    // What a trial does not make cannot be compared with the volume.
    if (request->is_trial && out->database.state != SALVAGE_WHOLE)
        return 0;
    int result = join(&repair, err);
    strings_clear(&repair.on_volume);
    return result;
}
