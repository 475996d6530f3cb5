/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a snapshot: counted in the background, listed with hashes when somebody asks, and then remembered in a file. */
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "core/chores.h"
#include "core/lookup.h"
#include "core/merge.h"
#include "core/snapshot_impl.h"
#include "core/stack.h"
#include "core/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

int snapshot_hold(struct core *core, struct snapshot_record *record, struct layers_hold *hold,
                  struct error *err)
{
    autosnapshot now = {0};
    autotransaction together = {0};

    if (!hold->user[0])
        (void)id_make(hold->user);
    if (store_begin(core->store, STORE_FAST, &together, err) < 0)
        return -1;
    if (store_snapshot_get(core->store, record->id, &now, err) < 0)
        return err->kind == ERROR_NOT_FOUND ? lookup_missing("snapshot", record->id, err) : -1;
    if (now.state != SNAPSHOT_READY)
        return lookup_missing("snapshot", record->id, err);
    if (layers_use(core, now.layers, hold->user, err) < 0 || store_commit(&together, err) < 0)
        return -1;
    const char *before = record->layers;
    record->layers = now.layers;
    now.layers = before;
    return 0;
}

static int walk(struct core *core, const struct snapshot_record *record,
                const atomic_bool *is_cancelled, layer_on_change on_change, void *data,
                struct error *err)
{
    autostack stack = {0};
    const struct layer_diff_options options = {.is_cancelled = is_cancelled};
    struct layer_diff_total total = {0};

    if (stack_open(core, record->runtime, record->layers, &stack, err) < 0)
        return -1;
    return layer_diff(engine_volume(core->engine), &stack.base, &stack.full, &options, on_change,
                      data, &total, err);
}

struct tally {
    int64_t files;
    int64_t bytes; // on the disk
};

static int count_one(void *data, const struct layer_change *change, struct error *err)
{
    struct tally *tally = data;
    struct stat info;

    (void)err;
    if (change->kind == LAYER_REMOVED || !S_ISREG(change->item.mode))
        return 0;
    tally->files++;
    if (change->fd >= 0 && !change->item.is_hard_link && fstat(change->fd, &info) == 0)
        tally->bytes += (int64_t)info.st_blocks * 512;
    return 0;
}

static int count(struct core *core, struct snapshot_record *record, const atomic_bool *is_cancelled,
                 struct error *err)
{
    autohold hold = {.core = core};
    struct tally tally = {0};

    if (snapshot_hold(core, record, &hold, err) < 0 ||
        walk(core, record, is_cancelled, count_one, &tally, err) < 0)
        return error_wrap(err, "count the files of snapshot '%s'", record->id);
    record->file_count = tally.files;
    // The quota told more: with simple quotas a sandbox pays for what older layers of its own still hold.
    record->size_bytes = tally.bytes;
    record->updated_at = (int64_t)clock_wall_ms();
    return store_snapshot_update(core->store, record, SNAPSHOT_PART_COUNT,
                                 snapshot_in(SNAPSHOT_READY), err);
}

int snapshot_count(struct core *core, struct snapshot_record *record, struct error *err)
{
    return count(core, record, NULL, err);
}

void snapshot_count_later(struct core *core, const char *id)
{
    const atomic_bool *are_over = chores_are_over(core->chores);
    autosnapshot record = {0};
    struct error err = {0};

    if (store_snapshot_get(core->store, id, &record, &err) == 0 && record.state == SNAPSHOT_READY &&
        record.file_count == SNAPSHOT_NOT_COUNTED && count(core, &record, are_over, &err) < 0 &&
        err.kind != ERROR_CONFLICT && err.kind != ERROR_NOT_FOUND && !*are_over)
        log_warn("a snapshot's files could not be counted; whoever asks tries again",
                 F("snapshot", record.id), F("error", (const char *)err.text));
}

void snapshot_look_after(struct core *core, const struct snapshot_record *record)
{
    if (record->file_count == SNAPSHOT_NOT_COUNTED)
        chores_ask(core->chores, snapshot_count_later, record->id);
    merge_look_after(core, record->id, record->layers);
}

static int list_one(void *data, const struct layer_change *change, struct error *err)
{
    struct snapshot_files *files = data;
    struct snapshot_file file = {.size = change->item.size, .mode = change->item.mode & 07777};

    if (change->kind == LAYER_REMOVED || !S_ISREG(change->item.mode) || change->fd < 0)
        return 0;
    if (sum_file(change->fd, file.sha256, err) < 0)
        return -1;
    file.path = xstrdup(change->item.path);
    files->files = xrealloc(files->files, files->count + 1, sizeof *files->files);
    files->files[files->count++] = file;
    return 0;
}

void snapshot_files_clear(struct snapshot_files *files)
{
    for (size_t i = 0; i < files->count; i++)
        free((char *)files->files[i].path);
    free(files->files);
    *files = (struct snapshot_files){0};
}

#define LIST_DIRECTORY "snapshots"

static char *list_path(struct core *core, const char *id)
{
    return xasprintf("%s/" LIST_DIRECTORY "/%s", core->settings.data_dir, id);
}

/* A line a file: hash, mode, size, path (whose newlines are escaped as in packed texts). */
static bool read_list(struct core *core, const char *id, struct snapshot_files *out)
{
    autofree char *path = list_path(core, id);
    autofile file = fopen(path, "re");
    autofree char *line = NULL;
    size_t size = 0;

    if (!file)
        return false;
    while (getline(&line, &size, file) > 0) {
        struct snapshot_file entry = {0};
        int at = 0;
        autotexts names = {0};
        if (sscanf(line, "%64s %o %lu %n", entry.sha256, &entry.mode, &entry.size, &at) != 3)
            return false;
        texts_unpack(line + at, &names);
        entry.path = xstrdup(names.count ? names.items[0] : "");
        out->files = xrealloc(out->files, out->count + 1, sizeof *out->files);
        out->files[out->count++] = entry;
    }
    return true;
}

static void write_list(struct core *core, const char *id, const struct snapshot_files *files)
{
    autofree char *directory = xasprintf("%s/" LIST_DIRECTORY, core->settings.data_dir);
    autofree char *path = list_path(core, id);
    autofree char *partial = xasprintf("%s.new", path);
    struct error ignored = {0};

    if (fd_make_dirs(directory, 0700, &ignored) < 0)
        return;
    FILE *file = fopen(partial, "we");
    if (!file)
        return;
    for (size_t i = 0; i < files->count; i++) {
        const char *one[] = {files->files[i].path, NULL};
        autofree char *name = texts_pack(one);
        (void)fprintf(file, "%s %o %lu %s", files->files[i].sha256, files->files[i].mode,
                      files->files[i].size, name);
    }
    bool is_whole = !ferror(file);
    if (fclose(file) != 0 || !is_whole || rename(partial, path) < 0)
        (void)unlink(partial); // only remembered: it can be made again
}

void snapshot_forget_files(struct core *core, const char *id)
{
    autofree char *path = list_path(core, id);
    (void)unlink(path);
}

static int make_list(struct core *core, const struct snapshot_record *record,
                     struct snapshot_files *files, struct error *err)
{
    struct snapshot_record now = *record;
    autohold hold = {.core = core};

    now.layers = NULL;
    if (snapshot_hold(core, &now, &hold, err) < 0)
        return -1;
    int result = walk(core, &now, NULL, list_one, files, err);
    free((char *)now.layers);
    return result;
}

int snapshot_files(struct core *core, const struct snapshot_record *record,
                   struct snapshot_files *out, struct error *err)
{
    struct snapshot_files files = {0};

    if (record->state != SNAPSHOT_READY)
        return 0;
    if (!read_list(core, record->id, &files)) {
        snapshot_files_clear(&files);
        if (make_list(core, record, &files, err) < 0) {
            snapshot_files_clear(&files);
            return error_wrap(err, "list the files of snapshot '%s'", record->id);
        }
        write_list(core, record->id, &files);
    }
    *out = files;
    return 0;
}
