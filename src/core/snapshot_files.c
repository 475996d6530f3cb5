/* SPDX-License-Identifier: Apache-2.0 */
/* What is in a snapshot: listed with hashes when somebody asks, and then remembered in a file. */
#include "base/fd.h"
#include "base/mem.h"
#include "core/snapshot_impl.h"
#include "core/sum.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

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

static int is_of(struct core *core, const char *name, enum snapshot_state state, struct error *err)
{
    autosnapshot record = {0};

    if (!id_is_valid(name))
        return 0;
    if (store_snapshot_get(core->store, name, &record, err) < 0)
        return err->kind == ERROR_NOT_FOUND ? 0 : -1;
    return record.state == state;
}

/* Files that are not called as a snapshot in this state go. */
static int sweep_directory(struct core *core, const char *path, enum snapshot_state state,
                           struct error *err)
{
    const struct dirent *entry;

    autodir directory = opendir(path);
    if (!directory)
        return errno == ENOENT ? 0 : error_sys(err, "look into '%s'", path);
    while ((entry = readdir(directory))) {
        int is_wanted = entry->d_name[0] == '.' ? 1 : is_of(core, entry->d_name, state, err);
        if (is_wanted < 0)
            return -1;
        if (!is_wanted && unlinkat(dirfd(directory), entry->d_name, 0) < 0)
            return error_sys(err, "remove '%s/%s'", path, entry->d_name);
    }
    return 0;
}

int snapshot_sweep(struct core *core, struct error *err)
{
    autofree char *lists = xasprintf("%s/" LIST_DIRECTORY, core->settings.data_dir);
    autofree char *uploads = snapshot_build_directory(core);

    if (sweep_directory(core, lists, SNAPSHOT_READY, err) < 0)
        return -1;
    return sweep_directory(core, uploads, SNAPSHOT_BUILDING, err);
}

int snapshot_files(struct core *core, const struct snapshot_record *record,
                   struct snapshot_files *out, struct error *err)
{
    const struct layer_diff_options options = {0};
    struct snapshot_files files = {0};

    if (record->state != SNAPSHOT_READY)
        return 0;
    if (!read_list(core, record->id, &files)) {
        snapshot_files_clear(&files);
        if (snapshot_walk(core, record, &options, list_one, &files, err) < 0) {
            snapshot_files_clear(&files);
            return error_wrap(err, "list the files of snapshot '%s'", record->id);
        }
        write_list(core, record->id, &files);
    }
    *out = files;
    return 0;
}
