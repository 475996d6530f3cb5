/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a sandbox, asked of the PID 1 of its box; see file.h. */
#include "core/sandbox/file.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/size.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/file_work.h"
#include "core/sandbox/sandbox_object.h"
#include "engine/box.h"
#include "engine/files.h"
#include "engine/volume.h"
#include "core/sandbox/lookup.h"
#include "core/sandbox/registry.h"
#include "core/sandbox/temporary.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define VOLUME_FULL_BYTES ((uint64_t)16 << 20) // with so little left nothing can be written to it
#define MAX_NAMES_BYTES ((size_t)64 << 20)     // of one listing

static enum error_reason reason_of(const struct error *err)
{
    switch (err->sys) {
    case EISDIR:
    case ENOTDIR:
    case ENOTEMPTY:
    case ENXIO: // of a socket or FIFO
        return ERROR_INVALID;
    default:
        return err->reason;
    }
}

/* Its box has ended, but not the sandbox. */
static bool has_gone_on(struct sandboxes *sandboxes, const char *sandbox_id)
{
    autoptr(sandbox) sandbox = registry_find(sandboxes->registry, sandbox_id);
    return sandbox && !sandbox_is_in(sandbox, SANDBOX_ENDING);
}

/* Project quotas of XFS and the size of a tmpfs are told as ENOSPC, all others as EDQUOT. */
static bool is_own_limit(const struct volume *volume, const struct error *err)
{
    enum volume_scheme scheme = volume_scheme(volume);

    return err->sys == EDQUOT || scheme == VOLUME_XFS || scheme == VOLUME_TMPFS;
}

static bool is_volume_full(struct volume *volume)
{
    struct volume_space space = {0};
    struct error ignored = {0};

    return volume_space(volume, &space, &ignored) == 0 && space.free_bytes < VOLUME_FULL_BYTES;
}

int file_disk_full(struct sandboxes *sandboxes, int64_t disk_bytes, struct error *err)
{
    struct volume *volume = engine_volume(sandboxes->engine);
    struct error why = *err;
    char limit[SIZE_TEXT];

    if (err->sys == ENOSPC && is_volume_full(volume))
        return error_refuse(err, ERROR_NO_SPACE, "volume", "the server's disk is full: %s",
                            why.text);
    if (disk_bytes > 0 && is_own_limit(volume, err))
        return error_refuse(err, ERROR_DISK_FULL, "sandbox", "the sandbox's disk of %s is full: %s",
                            size_format((uint64_t)disk_bytes, limit), why.text);
    return error_about(err, "sandbox"); // /dev/shm, for one
}

static int64_t disk_of(struct sandboxes *sandboxes, const char *sandbox_id)
{
    autoptr(sandbox) sandbox = sandbox_id ? registry_find(sandboxes->registry, sandbox_id) : NULL;
    return sandbox ? sandbox->record.limits.disk_bytes : 0;
}

int file_failed(struct sandboxes *sandboxes, const char *sandbox_id, struct error *err)
{
    if (err->noun)
        return -1;
    if (error_is(err, ERROR_DISK_FULL))
        return file_disk_full(sandboxes, disk_of(sandboxes, sandbox_id), err);
    if (error_is(err, ERROR_GONE))
        return sandbox_id && has_gone_on(sandboxes, sandbox_id)
                   ? sandbox_went_back(err)
                   : error_restate(err, ERROR_ENDED, "sandbox");
    return error_restate(err, reason_of(err), "file");
}

static int too_large(const char *path, uint64_t maximum, struct error *err)
{
    return error_refuse(err, ERROR_TOO_LARGE, "file", "file '%.300s' is larger than %llu bytes",
                        path, (unsigned long long)maximum);
}

/* A file on its way into the box. */
struct sending {
    const struct file_work *work;
    const char *at;
    size_t left;
};

static ssize_t send_some(void *data, void *bytes, size_t size, struct error *err)
{
    struct sending *sending = data;
    size_t taken = sending->left < size ? sending->left : size;

    if (file_work_check(sending->work, err) < 0)
        return -1;
    memcpy(bytes, sending->at, taken);
    sending->at += taken;
    sending->left -= taken;
    return (ssize_t)taken;
}

static int write_one(const struct file_work *work, const struct sandbox_file *file,
                     struct error *err)
{
    struct sending sending = {work, file->length ? file->data : "", file->length};

    return files_write(work->conversation, file->path, file->mode ? file->mode : 0644,
                       FILES_PARENTS, send_some, &sending, err);
}

int file_write_all(const struct file_work *work, const struct sandbox_file *files, size_t count,
                   struct error *err)
{
    for (size_t i = 0; i < count; i++) {
        if (write_one(work, &files[i], err) < 0) {
            error_wrap(err, "write '%.200s'", files[i].path);
            return error_restate(err, reason_of(err), "file");
        }
    }
    return 0;
}

int file_write(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
               const struct sandbox_file *files, size_t count, size_t *written, struct error *err)
{
    uint64_t maximum = (uint64_t)sandboxes->settings->file_limit_bytes;
    autofilework work = {.conversation = -1};

    *written = 0;
    if (file_work_begin(&work, sandboxes, actor, sandbox_id, err) < 0)
        return -1;
    for (; *written < count; ++*written) {
        const struct sandbox_file *file = &files[*written];
        if (file->length > maximum)
            return too_large(file->path, maximum, err);
        if (write_one(&work, file, err) < 0)
            return file_work_failed(&work, sandboxes, sandbox_id, err);
    }
    return 0;
}

/* A file on its way out of the box. */
struct receiving {
    const struct file_work *work;
    struct temporary *to;
};

static int receive_some(void *data, const void *bytes, size_t length, struct error *err)
{
    struct receiving *receiving = data;

    if (file_work_check(receiving->work, err) < 0)
        return -1;
    return temporary_write(receiving->to, bytes, length, err);
}

static int failed_to_read(const struct file_work *work, struct sandboxes *sandboxes,
                          const char *sandbox_id, struct error *err)
{
    bool is_missing = error_is(err, ERROR_NOT_FOUND);

    (void)file_work_failed(work, sandboxes, sandbox_id, err);
    if (is_missing) // also where something on the way is no directory
        return error_restate(err, ERROR_NOT_FOUND, err->noun);
    return -1;
}

int file_read(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, uint64_t maximum, struct temporary **out, struct error *err)
{
    autofilework work = {.conversation = -1};
    autoptr(temporary) content = NULL;
    struct files_total total;

    if (file_work_begin(&work, sandboxes, actor, sandbox_id, err) < 0 ||
        temporary_new(sandboxes->temporaries, actor, &content, err) < 0)
        return -1;
    struct receiving receiving = {&work, content};
    if (files_read(work.conversation, path, 0, maximum, NULL, receive_some, &receiving, &total,
                   err) < 0)
        return failed_to_read(&work, sandboxes, sandbox_id, err);
    if (total.is_truncated)
        return too_large(path, maximum, err);
    if (temporary_finish(content, err) < 0)
        return -1;
    *out = take(content);
    return 0;
}

struct listing {
    const struct file_work *work;
    struct file_list list;
    size_t capacity;
    size_t names_bytes;
};

/* One block for both names, which is entry->path. */
static void name_entry(struct file_entry *entry, const struct files_item *item)
{
    size_t path_size = strlen(item->path) + 1, target_size = strlen(item->target) + 1;
    char *names = xcalloc(1, path_size + target_size);
    memcpy(names, item->path, path_size);
    memcpy(names + path_size, item->target, target_size);
    entry->path = names;
    entry->target = names + path_size;
}

static int list_one(void *data, const struct files_item *item, struct error *err)
{
    struct listing *listing = data;
    struct file_list *list = &listing->list;
    if (file_work_check(listing->work, err) < 0)
        return -1;
    if (strchr(item->path, '/'))
        return error_set(err, ERROR_GONE, "the sandbox listed what was not asked for");
    listing->names_bytes += strlen(item->path) + strlen(item->target);
    if (listing->names_bytes > MAX_NAMES_BYTES)
        return error_refuse(err, ERROR_TOO_LARGE, "file",
                            "the names in the directory are too long for one listing");
    if (list->count == listing->capacity) {
        listing->capacity = listing->capacity ? listing->capacity * 2 : 32;
        list->entries = xrealloc(list->entries, listing->capacity, sizeof *list->entries);
    }
    struct file_entry *entry = &list->entries[list->count++];
    *entry = (struct file_entry){
        .size = item->size, .mtime_ms = item->mtime_ns / 1000000, .mode = item->mode};
    name_entry(entry, item);
    return 0;
}

static int compare_entries(const void *a, const void *b)
{
    const struct file_entry *left = a, *right = b;
    return strcmp(left->path, right->path);
}

int file_list(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, size_t maximum, struct file_list *out, struct error *err)
{
    autofilework work = {.conversation = -1};
    struct listing listing = {.work = &work};
    struct files_total total;
    if (file_work_begin(&work, sandboxes, actor, sandbox_id, err) < 0)
        return -1;
    int result =
        files_list(work.conversation, path, false, maximum, list_one, &listing, &total, err);
    if (result == 0 && total.is_truncated)
        result = error_refuse(err, ERROR_TOO_LARGE, "file",
                              "there are more than %zu files in '%.300s'", maximum, path);
    if (result < 0) {
        file_list_clear(&listing.list);
        return file_work_failed(&work, sandboxes, sandbox_id, err);
    }
    if (listing.list.count)
        qsort(listing.list.entries, listing.list.count, sizeof *listing.list.entries,
              compare_entries);
    *out = listing.list;
    return 0;
}

void file_list_clear(struct file_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free((char *)list->entries[i].path);
    free(list->entries);
    *list = (struct file_list){0};
}

static bool is_directory(int conv, const char *path)
{
    struct files_item item;
    struct error ignored;
    return files_stat(conv, path, true, &item, NULL, &ignored) == 0 && S_ISDIR(item.mode);
}

int file_mkdir(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
               const char *path, bool is_recursive, struct error *err)
{
    autofilework work = {.conversation = -1};
    if (file_work_begin(&work, sandboxes, actor, sandbox_id, err) < 0)
        return -1;
    if (files_mkdir(work.conversation, path, 0755, is_recursive ? FILES_PARENTS : FILES_EXCLUSIVE,
                    err) == 0)
        return 0;
    // "/", "." and the like have no name to be made by
    if (is_recursive && error_is(err, ERROR_INVALID) && is_directory(work.conversation, path))
        return 0;
    return file_work_failed(&work, sandboxes, sandbox_id, err);
}

static int check_removal(const char *path, enum file_removal removal, uint32_t mode,
                         struct error *err)
{
    if (removal == FILE_REMOVE_FILE && S_ISDIR(mode))
        (void)error_set(err, ERROR_INVALID, "'%.300s' is a directory", path);
    else if (removal != FILE_REMOVE_FILE && !S_ISDIR(mode))
        (void)error_set(err, ERROR_INVALID, "'%.300s' is not a directory", path);
    else
        return 0;
    return error_about(err, "file");
}

int file_remove(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                const char *path, enum file_removal removal, bool *found, struct error *err)
{
    unsigned flags = FILES_MISSING_OK | (removal == FILE_REMOVE_TREE ? FILES_RECURSIVE : 0);
    struct files_item item;
    autofilework work = {.conversation = -1};
    if (file_work_begin(&work, sandboxes, actor, sandbox_id, err) < 0)
        return -1;
    if (files_stat(work.conversation, path, false, &item, NULL, err) < 0) {
        if (!error_is(err, ERROR_NOT_FOUND))
            return file_work_failed(&work, sandboxes, sandbox_id, err);
        *found = false;
        return 0;
    }
    if (check_removal(path, removal, item.mode, err) < 0)
        return -1;
    if (files_remove(work.conversation, path, flags, err) < 0)
        return file_work_failed(&work, sandboxes, sandbox_id, err);
    *found = true;
    return 0;
}
