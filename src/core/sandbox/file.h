/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files inside a sandbox. All walking and touching is done by PID 1 of its box with the rights of the sandbox's user; paths are
 * relative to its working directory, or absolute in it. Each call counts as activity. All
 * fail with ERROR_NOT_FOUND noun "sandbox", ERROR_ENDED noun "sandbox"; with noun "file": NOT_FOUND, INVALID (a directory
 * where a file is needed, and the like), CONFLICT (exists), LIMIT (disk full or larger than allowed), TIMEOUT (longer than the
 * settings allow), CANCELLED (the actor says so).
 * Threads: any but loops.
 */
#pragma once
#include "archive/archive.h"
#include "core/account/actor.h"
#include "engine/files_wire.h"

struct sandboxes;
struct temporary; // temporary.h

/* A file to be put into the sandbox. */
struct sandbox_file {
    const char *path; // relative to the working directory, or absolute in the sandbox
    const void *data;
    size_t length;
    uint32_t mode; // permissions; 0: 0644
};

/* All of them, making parents; existing ones are replaced. Stops at the first that fails: *written tells how many are there. */
int file_write(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
               const struct sandbox_file *files, size_t count, size_t *written, struct error *err);

/*
 * A file as one whole in an unnamed file of the server's (the caller's to free), so that a slow reader costs nobody a thread. It is
 * at most `maximum` bytes long: ERROR_LIMIT else, and when there is no room for it.
 */
int file_read(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, uint64_t maximum, struct temporary **out, struct error *err);

struct file_entry {
    const char *path; // relative to the listed directory
    uint64_t size;
    int64_t mtime_ms;
    uint32_t mode;      // type and permissions, as stat(2) has them
    const char *target; // of a link, else ""
};
/* One level, sorted by path. At most `maximum` entries: ERROR_LIMIT else. */
struct file_list {
    struct file_entry *entries;
    size_t count;
};
int file_list(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, size_t maximum, struct file_list *out, struct error *err);
void file_list_clear(struct file_list *list);
#define autofiles __attribute__((cleanup(file_list_clear))) struct file_list

/* Recursive: parents too, and an existing directory is fine. */
int file_mkdir(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
               const char *path, bool is_recursive, struct error *err);

enum file_removal {
    FILE_REMOVE_FILE,      // a directory is ERROR_INVALID
    FILE_REMOVE_DIRECTORY, // an empty one; anything else is ERROR_INVALID
    FILE_REMOVE_TREE,      // a directory with all in it
};
/* Missing is no error: *found tells. */
int file_remove(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                const char *path, enum file_removal removal, bool *found, struct error *err);

/* A directory as an archive in an unnamed file of the server's (the caller's to free); names are relative to `path`. */
int file_pack(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
              const char *path, enum archive_format format, struct temporary **out,
              struct error *err);

/*
 * Unpacks `archive_fd` (seekable, from its beginning) below `path`, which is made. Entries that would leave it are refused
 * with all that follow. ERROR_INVALID, noun "archive", when it is none or is damaged.
 */
int file_unpack(struct sandboxes *sandboxes, const struct actor *actor, const char *sandbox_id,
                const char *path, enum archive_format format, int archive_fd, struct error *err);
