/* SPDX-License-Identifier: Apache-2.0 */
/* One file at a time, with the rights of a user of the sandbox; see file_access.h. */
#include "core/sandbox/file_access.h"
#include "core/sandbox/file_access_impl.h"

#include "base/mem.h"
#include "base/path.h"
#include "core/sandbox/temporary.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FETCH_TRIES 3 // a file that changes between look and read

_Static_assert(FILE_ETAG >= FILES_ETAG_SIZE, "an etag fits");
_Static_assert(FILE_KEEP == FILES_KEEP_ID && FILE_KEEP == FILES_KEEP_MODE, "the same to PID 1");

// ---- what all of them share ----

int file_access_begin(struct file_access *access, struct sandboxes *sandboxes,
                      const struct actor *actor, const struct file_place *place, struct error *err)
{
    access->sandboxes = sandboxes;
    access->place = place;
    if (path_check(place->path, strlen(place->path), "path", err) < 0)
        return error_about(err, "file");
    return file_work_begin_as(&access->work, sandboxes, actor, place->sandbox_id, place->user, err);
}

void file_access_clear(struct file_access *access)
{
    file_work_clear(&access->work);
}

/* What an errno says that a guest or the caller has brought about. */
static enum error_reason reason_of(const struct error *err)
{
    if (err->sys == ESTALE && err->reason == ERROR_CONFLICT)
        return ERROR_PRECONDITION;
    switch (err->sys) {
    case EEXIST:
        return ERROR_EXISTS;
    case ENOTDIR:
        return ERROR_NOT_FOUND;
    case EISDIR:
    case ENOTEMPTY:
    case EBUSY:
    case ETXTBSY:
    case EXDEV:
    case EAGAIN: // a lease
    case ESTALE: // a directory was moved away meanwhile
        return ERROR_CONFLICT;
    case ENXIO: // of a socket or FIFO
        return ERROR_INVALID;
    default:
        return err->reason == ERROR_LIMIT ? ERROR_TOO_LARGE : err->reason;
    }
}

int file_access_failed(const struct file_access *access, struct error *err)
{
    if (err->noun)
        return -1;
    if (error_is(err, ERROR_DISK_FULL) || error_is(err, ERROR_GONE) || error_is(err, ERROR_TIMEOUT))
        return file_work_failed(&access->work, access->sandboxes, access->place->sandbox_id, err);
    return error_restate(err, reason_of(err), "file");
}

/* Where a directory is needed, what is none is in the way. */
int file_access_failed_tree(const struct file_access *access, struct error *err)
{
    bool is_no_directory = err->sys == ENOTDIR;

    (void)file_access_failed(access, err);
    return is_no_directory ? error_restate(err, ERROR_CONFLICT, "file") : -1;
}

static int on_alive(void *data, struct error *err)
{
    const struct file_access *access = data;

    return file_work_check(&access->work, err);
}

struct files_patience file_access_patience(struct file_access *access)
{
    return (struct files_patience){on_alive, access};
}

void file_access_fill_info(struct file_info *info, const struct files_item *item)
{
    *info = (struct file_info){
        .size_bytes = item->size,
        .disk_bytes = item->disk_bytes,
        .inode = item->inode,
        .modified_ns = item->mtime_ns,
        .changed_ns = item->ctime_ns,
        .accessed_ns = item->atime_ns,
        .mode = item->mode,
        .uid = item->uid,
        .gid = item->gid,
        .links = item->links,
    };
    (void)files_item_etag(item, info->etag);
}

void file_info_clear(struct file_info *info)
{
    free(info->path);
    free(info->target);
    info->path = info->target = NULL;
}

/* Over a conversation that goes on. */
int file_access_stat(const struct file_access *access, const char *path, bool is_followed,
                     struct file_info *out, struct error *err)
{
    struct files_item item;
    autofree char *target = xcalloc(1, FILES_MAX_PATH);

    if (files_stat(access->work.conversation, path, is_followed, &item, target, err) < 0)
        return file_access_failed(access, err);
    file_access_fill_info(out, &item);
    if (S_ISLNK(item.mode))
        out->target = xstrdup(target);
    return 0;
}

int file_stat(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, bool is_followed, struct file_info *out,
              struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    return file_access_stat(&access, place->path, is_followed, out, err);
}

int file_set_notes(struct sandboxes *sandboxes, const struct actor *actor,
                   const struct file_place *place, const char *prefix, const char *notes,
                   struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    if (files_set_notes(access.work.conversation, place->path, prefix, notes, err) < 0)
        return file_access_failed(&access, err);
    return 0;
}

int file_notes(struct sandboxes *sandboxes, const struct actor *actor,
               const struct file_place *place, const char *prefix, char out[FILE_NOTES],
               struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    if (files_notes(access.work.conversation, place->path, prefix, out, err) < 0)
        return file_access_failed(&access, err);
    return 0;
}

// ---- out of the box ----

struct fetching {
    struct file_access *access;
    struct temporary *to;
};

static int fetch_some(void *data, const void *bytes, size_t length, struct error *err)
{
    struct fetching *fetching = data;

    if (file_work_check(&fetching->access->work, err) < 0)
        return -1;
    return temporary_write(fetching->to, bytes, length, err);
}

static int check_size(const struct file_access *access, uint64_t length, struct error *err)
{
    uint64_t maximum = (uint64_t)access->sandboxes->settings->file_limit_bytes;

    if (length <= maximum)
        return 0;
    return error_refuse(err, ERROR_TOO_LARGE, "file",
                        "'%.300s' is larger than %llu bytes, as much as is read at once; ask for "
                        "parts of it (Range)",
                        access->place->path, (unsigned long long)maximum);
}

/* One part into *out; *info is what the file was when it was opened. */
static int fetch_part(struct file_access *access, const struct actor *actor, uint64_t offset,
                      uint64_t length, struct file_info *info, struct temporary **out,
                      struct error *err)
{
    autoptr(temporary) content = NULL;
    struct files_item item;

    if (check_size(access, length, err) < 0 ||
        temporary_new(access->sandboxes->temporaries, actor, &content, err) < 0)
        return -1;
    struct fetching fetching = {access, content};
    if (files_read(access->work.conversation, access->place->path, offset, length, &item,
                   fetch_some, &fetching, NULL, err) < 0)
        return file_access_failed(access, err);
    if (temporary_finish(content, err) < 0)
        return -1;
    file_access_fill_info(info, &item);
    *out = take(content);
    return 0;
}

static int check_file(const struct file_access *access, const struct file_info *info,
                      struct error *err)
{
    if (S_ISREG(info->mode))
        return 0;
    return error_refuse(err, S_ISDIR(info->mode) ? ERROR_CONFLICT : ERROR_INVALID, "file",
                        "'%.300s' is %s", access->place->path,
                        S_ISDIR(info->mode) ? "a directory" : "neither a file nor a directory");
}

int file_fetch(struct sandboxes *sandboxes, const struct actor *actor,
               const struct file_place *place, file_choose choose, void *data,
               struct file_info *info, struct temporary **out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    uint64_t offset = 0, length = 0;

    *out = NULL;
    if (file_access_begin(&access, sandboxes, actor, place, err) < 0 ||
        file_access_stat(&access, place->path, true, info, err) < 0)
        return -1;
    for (int tries = 1;; tries++) {
        autoptr(temporary) content = NULL;
        struct file_info opened;
        if (check_file(&access, info, err) < 0)
            return -1;
        if (!choose(data, info, &offset, &length))
            return 0;
        if (fetch_part(&access, actor, offset, length, &opened, &content, err) < 0)
            return -1;
        bool is_same = strcmp(opened.etag, info->etag) == 0;
        if (is_same || tries == FETCH_TRIES) {
            if (!is_same) // somebody writes to it all the time: what came is what there was
                info->etag[0] = '\0';
            *out = take(content);
            return 0;
        }
        *info = opened;
    }
}

// ---- into the box ----

struct sending {
    struct file_access *access;
    struct file_content rest;
};

static ssize_t send_some(void *data, void *bytes, size_t size, struct error *err)
{
    struct sending *sending = data;

    if (file_work_check(&sending->access->work, err) < 0)
        return -1;
    if (size > sending->rest.length)
        size = (size_t)sending->rest.length;
    if (size == 0)
        return 0;
    ssize_t got = pread(sending->rest.fd, bytes, size, (off_t)sending->rest.offset);
    if (got < 0)
        return error_sys(err, "read what goes into the sandbox");
    if (got == 0)
        return error_set(err, ERROR_SYSTEM, "what goes into the sandbox ends too early");
    sending->rest.offset += (uint64_t)got;
    sending->rest.length -= (uint64_t)got;
    return got;
}

int file_save(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_change *how,
              const struct file_content *content, struct file_info *out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    struct files_item item;
    struct files_save save = {
        .mode = how->mode,
        .uid = how->uid,
        .gid = how->gid,
        .flags = (how->makes_parents ? FILES_PARENTS : 0) | (how->is_append ? FILES_APPEND : 0) |
                 (how->is_unless ? FILES_UNLESS : 0),
        .condition = how->condition ? how->condition : "",
    };

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    struct sending sending = {.access = &access, .rest = *content};
    if (files_save(access.work.conversation, place->path, &save, send_some, &sending, &item, err) <
        0)
        return file_access_failed(&access, err);
    file_access_fill_info(out, &item);
    return 0;
}

// ---- in their directories ----

int file_make_directory(struct sandboxes *sandboxes, const struct actor *actor,
                        const struct file_place *place, uint32_t mode, bool makes_parents,
                        struct file_info *out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    bool is_made = files_mkdir(access.work.conversation, place->path, mode,
                               makes_parents ? FILES_PARENTS : FILES_EXCLUSIVE, err) == 0;
    // "/", "." and the like have no name to be made by, and are there
    if (!is_made && !(makes_parents && error_is(err, ERROR_INVALID)))
        return file_access_failed_tree(&access, err);
    return file_access_stat(&access, place->path, true, out, err);
}

static unsigned flags_of(const struct file_target *target)
{
    return (target->makes_parents ? FILES_PARENTS : 0) |
           (target->may_replace ? 0 : FILES_EXCLUSIVE);
}

int file_move(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_target *target,
              struct file_info *out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    struct files_patience patience = file_access_patience(&access);
    if (files_move(access.work.conversation, place->path, target->to, flags_of(target), &patience,
                   err) < 0)
        return file_access_failed(&access, err);
    return file_access_stat(&access, target->to, false, out, err);
}

int file_copy(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_target *target,
              struct file_copied *out, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    struct files_total total;

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    struct files_patience patience = file_access_patience(&access);
    if (files_copy(access.work.conversation, place->path, target->to, flags_of(target), &patience,
                   &total, err) < 0)
        return file_access_failed(&access, err);
    *out = (struct file_copied){
        .entries = total.items, .bytes = total.bytes, .skipped = total.skipped};
    return file_access_stat(&access, target->to, false, &out->info, err);
}

int file_delete(struct sandboxes *sandboxes, const struct actor *actor,
                const struct file_place *place, bool is_recursive, const char *condition,
                bool is_unless, struct error *err)
{
    autoaccess access = {.work = {.conversation = -1}};
    unsigned flags = (is_recursive ? FILES_RECURSIVE : 0) | (is_unless ? FILES_UNLESS : 0);

    if (file_access_begin(&access, sandboxes, actor, place, err) < 0)
        return -1;
    struct files_patience patience = file_access_patience(&access);
    if (files_remove_if(access.work.conversation, place->path, flags, condition ? condition : "",
                        &patience, err) < 0)
        return file_access_failed(&access, err);
    return 0;
}
