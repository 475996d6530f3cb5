/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a sandbox as archives, and back: PID 1 of its box on one side, burrow-archive on the other; see file.h. */
#include "archive/packer.h"
#include "archive/unpacker.h"
#include "archive/writer.h"
#include "core/sandbox/file.h"
#include "core/sandbox/file_access.h"
#include "core/sandbox/file_impl.h"
#include "core/sandbox/file_work.h"
#include "core/sandbox/temporary.h"
#include "engine/files.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_ENTRIES 1000000
#define TIMEOUT_MS 30000 // without a word from burrow-archive

/* burrow-archive as the settings have it, or in the directory of this program. */
static int find_program(const struct sandboxes *sandboxes, char path[PATH_MAX], struct error *err)
{
    static const char name[] = "burrow-archive";
    if (sandboxes->settings->archive_program) {
        (void)snprintf(path, PATH_MAX, "%s", sandboxes->settings->archive_program);
        return 0;
    }
    ssize_t length = readlink("/proc/self/exe", path, PATH_MAX - 1);
    if (length < 0)
        return error_sys(err, "find the directory of this program");
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash - path) + 1 + sizeof name > PATH_MAX)
        return error_set(err, ERROR_UNAVAILABLE, "find burrow-archive next to '%s'", path);
    memcpy(slash + 1, name, sizeof name);
    return 0;
}

int file_archive_task(const struct sandboxes *sandboxes, enum archive_format format,
                      uint64_t max_bytes, char program[PATH_MAX], struct archive_task *out,
                      struct error *err)
{
    if (find_program(sandboxes, program, err) < 0)
        return -1;
    *out = (struct archive_task){
        .program = program,
        .format = format,
        .max_bytes = max_bytes,
        .max_entries = MAX_ENTRIES,
        .timeout_ms = TIMEOUT_MS,
    };
    return 0;
}

/*
 * A directory on its way out of the box: gathered, so that it can be sorted and the box need not wait for what compresses it; or,
 * where nothing is compressed, written as it comes, so that the archive is there when the box has told all.
 */
struct packing {
    const struct archive_task *task;
    const struct file_work *work;
    struct temporary *archive;
    struct packer *packer; // NULL: written as it comes
    struct temporary *spool;
    struct writer *writer; // from the first record on
    uint64_t written;      // at most, of the archive
};

#define ENTRY_MOST 2048u          // of an entry in a tar, without its content and names
#define STEP ((uint64_t)64 << 10) // in which room is taken for the archive

static int open_writer(struct packing *packing, struct error *err)
{
    return packing->writer
               ? 0
               : writer_open(packing->task, packing->archive->fd, &packing->writer, err);
}

static int reserve(struct packing *packing, uint64_t more, struct error *err)
{
    struct temporary *archive = packing->archive;
    uint64_t most = packing->task->max_bytes;

    packing->written += more;
    uint64_t needed = packing->written < most ? packing->written : most;
    return needed <= archive->charged
               ? 0
               : temporary_reserve(archive, needed - archive->charged + STEP, err);
}

static int write_item(void *data, const struct files_item *item, struct error *err)
{
    struct packing *packing = data;
    size_t names = strlen(item->path) + strlen(item->target);

    if (file_work_check(packing->work, err) < 0 || open_writer(packing, err) < 0 ||
        reserve(packing, ENTRY_MOST + names, err) < 0)
        return -1;
    return writer_item(packing->writer, item, err);
}

static int write_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct packing *packing = data;

    if (file_work_check(packing->work, err) < 0 || reserve(packing, length, err) < 0)
        return -1;
    return writer_data(packing->writer, bytes, length, err);
}

static int pack_item(void *data, const struct files_item *item, struct error *err)
{
    struct packing *packing = data;

    return file_work_check(packing->work, err) < 0 ? -1 : packer_item(packing->packer, item, err);
}

static int charge(const struct packing *packing, struct error *err)
{
    return temporary_reserve(packing->spool, packer_kept(packing->packer) - packing->spool->charged,
                             err);
}

static int pack_data(void *data, const void *bytes, size_t length, struct error *err)
{
    struct packing *packing = data;

    if (file_work_check(packing->work, err) < 0 ||
        packer_data(packing->packer, bytes, length, err) < 0)
        return -1;
    return charge(packing, err);
}

static int begin(struct file_work *work, struct sandboxes *sandboxes, const struct actor *actor,
                 const struct file_place *place, bool is_own_user, struct error *err)
{
    return is_own_user
               ? file_work_begin(work, sandboxes, actor, place->sandbox_id, err)
               : file_work_begin_as(work, sandboxes, actor, place->sandbox_id, place->user, err);
}

static int end_gathering(const struct packing *packing, struct error *err)
{
    if (!packing->packer)
        return 0;
    return packer_flush(packing->packer, err) < 0 ? -1 : charge(packing, err);
}

/* The records of `path`. The conversation is over when it returns: what follows has nothing to do with the box. */
static int collect(struct sandboxes *sandboxes, const struct actor *actor,
                   const struct file_place *place, bool is_own_user, struct packing *packing,
                   struct error *err)
{
    uint64_t maximum = (uint64_t)sandboxes->settings->file_limit_bytes;
    const char *path = place->path, *sandbox_id = place->sandbox_id;
    bool is_gathered = packing->packer != NULL;
    autofilework work = {.conversation = -1};
    if (begin(&work, sandboxes, actor, place, is_own_user, err) < 0)
        return -1;
    packing->work = &work;
    if (files_export(work.conversation, path, maximum, is_gathered ? pack_item : write_item,
                     is_gathered ? pack_data : write_data, packing, NULL, err) == 0)
        return end_gathering(packing, err);
    if (error_is(err, ERROR_LIMIT) && !error_is(err, ERROR_DISK_FULL) && !err->noun)
        return error_restate(err, ERROR_TOO_LARGE, "file");
    return file_work_failed(&work, sandboxes, sandbox_id, err);
}

static int finish(struct packing *packing, struct error *err)
{
    struct temporary *archive = packing->archive;
    uint64_t made;

    if (!packing->packer)
        return open_writer(packing, err) < 0 ? -1 : writer_finish(packing->writer, err);
    if (temporary_reserve(archive, packer_estimate(packing->packer), err) < 0)
        return -1;
    return packer_finish(packing->packer, archive->fd, &made, err);
}

static int gather(struct sandboxes *sandboxes, const struct actor *actor, struct packing *packing,
                  struct error *err)
{
    if (temporary_new(sandboxes->temporaries, actor, &packing->spool, err) < 0)
        return -1;
    packing->packer = packer_new(packing->task, take_fd(packing->spool->fd)); // its room stays ours
    return 0;
}

static void packing_clear(struct packing *packing)
{
    packer_free(packing->packer);
    writer_free(packing->writer);
    temporary_free(packing->spool);
    temporary_free(packing->archive);
}

static int pack(struct sandboxes *sandboxes, const struct actor *actor,
                const struct file_place *place, bool is_own_user, enum archive_format format,
                struct temporary **out, struct error *err)
{
    char program[PATH_MAX];
    struct archive_task task;
    autoclear(packing) packing = {.task = &task};
    if (file_archive_task(sandboxes, format == ARCHIVE_ANY ? ARCHIVE_TAR_GZIP : format,
                          (uint64_t)sandboxes->settings->file_limit_bytes, program, &task,
                          err) < 0 ||
        temporary_new(sandboxes->temporaries, actor, &packing.archive, err) < 0 ||
        (task.format != ARCHIVE_TAR && gather(sandboxes, actor, &packing, err) < 0))
        return -1;
    task.cancel = actor->cancel;
    if (collect(sandboxes, actor, place, is_own_user, &packing, err) < 0 ||
        finish(&packing, err) < 0 || temporary_settle(packing.archive, err) < 0)
        return -1;
    *out = take(packing.archive);
    return 0;
}

int file_pack(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, enum archive_format format, struct temporary **out,
              struct error *err)
{
    const struct file_place place = {.sandbox_id = sandbox_id, .path = path};

    return pack(sandboxes, actor, &place, true, format, out, err);
}

int file_pack_as(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct file_place *place, enum archive_format format, struct temporary **out,
                 struct error *err)
{
    return pack(sandboxes, actor, place, false, format, out, err);
}

/* A directory on its way into the box. */
struct unpacking {
    struct unpacker *unpacker;
    const struct file_work *work;
};

static int unpack_next(void *data, struct files_item *item, struct error *err)
{
    struct unpacking *unpacking = data;

    return file_work_check(unpacking->work, err) < 0
               ? -1
               : unpacker_next(unpacking->unpacker, item, err);
}

static ssize_t unpack_fill(void *data, void *bytes, size_t size, struct error *err)
{
    struct unpacking *unpacking = data;

    return file_work_check(unpacking->work, err) < 0
               ? -1
               : unpacker_fill(unpacking->unpacker, bytes, size, err);
}

int file_unpack_here(struct sandboxes *sandboxes, const char *sandbox_id,
                     const struct file_work *work, const char *path, enum archive_format format,
                     int archive_fd, struct error *err)
{
    char program[PATH_MAX];
    autoptr(unpacker) unpacker = NULL;
    struct archive_task task;
    if (file_archive_task(sandboxes, format, (uint64_t)sandboxes->settings->file_limit_bytes,
                          program, &task, err) < 0)
        return -1;
    task.cancel = work->cancel;
    // what is no archive leaves no trace in the sandbox
    if (unpacker_open(&task, archive_fd, &unpacker, err) < 0)
        return -1;
    struct unpacking unpacking = {unpacker, work};
    if (files_import(work->conversation, path, FILES_PARENTS, unpack_next, unpack_fill, &unpacking,
                     NULL, err) < 0)
        return file_work_failed(work, sandboxes, sandbox_id, err);
    return 0;
}

int file_unpack(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                const char *path, enum archive_format format, int archive_fd, struct error *err)
{
    autofilework work = {.conversation = -1};
    if (file_work_begin(&work, sandboxes, actor, sandbox_id, err) < 0)
        return -1;
    return file_unpack_here(sandboxes, sandbox_id, &work, path, format, archive_fd, err);
}

static bool is_zstd(int fd)
{
    static const uint8_t mark[4] = {0x28, 0xb5, 0x2f, 0xfd};
    uint8_t first[4];

    return pread(fd, first, sizeof first, 0) == sizeof first &&
           memcmp(first, mark, sizeof mark) == 0;
}

int file_unpack_as(struct sandboxes *sandboxes, const struct actor *actor,
                   const struct file_place *place, enum archive_format format, int archive_fd,
                   struct error *err)
{
    autofilework work = {.conversation = -1};

    if (begin(&work, sandboxes, actor, place, false, err) < 0)
        return -1;
    if (format == ARCHIVE_ANY && is_zstd(archive_fd))
        format = ARCHIVE_ZSTD;
    return file_unpack_here(sandboxes, place->sandbox_id, &work, place->path, format, archive_fd,
                            err);
}
