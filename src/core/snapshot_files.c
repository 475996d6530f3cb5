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

int snapshot_files(struct core *core, const struct snapshot_record *record,
                   struct snapshot_files *out, struct error *err)
{
    struct snapshot_files files = {0};

    if (record->state != SNAPSHOT_READY)
        return 0;
    if (!read_list(core, record->id, &files)) {
        snapshot_files_clear(&files);
        if (snapshot_walk(core, record, NULL, list_one, &files, err) < 0) {
            snapshot_files_clear(&files);
            return error_wrap(err, "list the files of snapshot '%s'", record->id);
        }
        write_list(core, record->id, &files);
    }
    *out = files;
    return 0;
}
