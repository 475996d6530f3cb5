/* SPDX-License-Identifier: Apache-2.0 */
/* Directories of a sandbox as archives, and back: PID 1 of its box on one side, burrow-archive on the other; see file.h. */
#include "archive/packer.h"
#include "archive/unpacker.h"
#include "core/sandbox/file.h"
#include "core/sandbox/file_impl.h"
#include "engine/files.h"

#include <string.h>
#include <sys/stat.h>

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

/* The records of `path` in the packer. The conversation is over when it returns: what follows has nothing to do with the box. */
static int collect(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                   const char *path, struct packer *packer, struct error *err)
{
    uint64_t maximum = (uint64_t)sandboxes->settings->file_limit_bytes;
    autofd conv = -1;
    if (file_converse(sandboxes, actor, sandbox_id, &conv, err) < 0)
        return -1;
    if (files_export(conv, path, maximum, packer_item, packer_data, packer, NULL, err) == 0)
        return 0;
    if (error_is(err, ERROR_LIMIT) && !error_is(err, ERROR_DISK_FULL) && !err->noun)
        return error_restate(err, ERROR_TOO_LARGE, "file");
    return file_failed(sandboxes, sandbox_id, err);
}

int file_pack(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, enum archive_format format, int *fd, uint64_t *size,
              struct error *err)
{
    char program[PATH_MAX];
    autofd spool = -1, archive = -1;
    uint64_t made;
    struct archive_task task;
    if (file_archive_task(sandboxes, format == ARCHIVE_ANY ? ARCHIVE_TAR_GZIP : format,
                          (uint64_t)sandboxes->settings->file_limit_bytes, program, &task,
                          err) < 0 ||
        file_temporary(sandboxes->settings->data_dir, &spool, err) < 0 ||
        file_temporary(sandboxes->settings->data_dir, &archive, err) < 0)
        return -1;
    autoptr(packer) packer = packer_new(&task, take_fd(spool));
    if (collect(sandboxes, actor, sandbox_id, path, packer, err) < 0 ||
        packer_finish(packer, archive, &made, err) < 0)
        return -1;
    *size = made;
    *fd = take_fd(archive);
    return 0;
}

int file_unpack_here(struct sandboxes *sandboxes, const char *sandbox_id, int conversation,
                     const char *path, enum archive_format format, int archive_fd,
                     struct error *err)
{
    char program[PATH_MAX];
    autoptr(unpacker) unpacker = NULL;
    struct archive_task task;
    if (file_archive_task(sandboxes, format, (uint64_t)sandboxes->settings->file_limit_bytes,
                          program, &task, err) < 0)
        return -1;
    // what is no archive leaves no trace in the sandbox
    if (unpacker_open(&task, archive_fd, &unpacker, err) < 0)
        return -1;
    if (files_import(conversation, path, FILES_PARENTS, unpacker_next, unpacker_fill, unpacker,
                     NULL, err) < 0)
        return file_failed(sandboxes, sandbox_id, err);
    return 0;
}

int file_unpack(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                const char *path, enum archive_format format, int archive_fd, struct error *err)
{
    autofd conv = -1;
    if (file_converse(sandboxes, actor, sandbox_id, &conv, err) < 0)
        return -1;
    return file_unpack_here(sandboxes, sandbox_id, conv, path, format, archive_fd, err);
}
