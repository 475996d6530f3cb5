/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of a sandbox as burrow's own API has them: with the rights of any user inside, whole files that are replaced at once and under
 * conditions, listings by page, search, copies. PID 1 of the box does all of it (docs/internals/file-work.md). Each call counts as activity.
 *
 * All fail with ERROR_NOT_FOUND or ERROR_ENDED about the sandbox; about the "file": NOT_FOUND, DENIED, CONFLICT (a directory where a file is
 * needed, or the other way round; not empty), EXISTS, PRECONDITION, INVALID (a path, pattern or user that cannot be), TOO_LARGE,
 * DISK_FULL, SLOW_SANDBOX (longer than the settings allow), CANCELLED (the actor says so).
 * Threads: any but loops.
 */
#pragma once
#include "archive/archive.h"
#include "core/account/actor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sandboxes;
struct temporary; // temporary.h

/* Something in a sandbox, for whom. */
struct file_place {
    const char *sandbox_id;
    const char *user; // "name", "name:group" or numbers; NULL: root
    const char *path; // absolute, or from the sandbox's directory on
};

#define FILE_ETAG 80

struct file_info {
    uint64_t size_bytes, disk_bytes, inode;
    int64_t modified_ns, changed_ns, accessed_ns; // since 1970
    uint32_t mode;                                // type and permissions, as stat(2) has them
    uint32_t uid, gid, links;
    char etag[FILE_ETAG]; // changes with content, owner, mode and place; "": it did not stand still
    char *path;   // below what was listed; any bytes but '/' and NUL. NULL where one was asked for
    char *target; // of a link; NULL: it is none
};
void file_info_clear(struct file_info *info);
#define autofileinfo __attribute__((cleanup(file_info_clear))) struct file_info

/* Of what a link leads to, or of the link. */
int file_stat(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, bool is_followed, struct file_info *out,
              struct error *err);

/* Notes of a file: short texts by name, as extended attributes whose names begin with `prefix` ("user.…"): "NAME=VALUE" each, with line breaks
 * between, at most FILE_NOTES bytes. Setting replaces all of the prefix; a file system without them keeps none. */
#define FILE_NOTES 4096
int file_set_notes(struct sandboxes *sandboxes, const struct actor *actor,
                   const struct file_place *place, const char *prefix, const char *notes,
                   struct error *err);
int file_notes(struct sandboxes *sandboxes, const struct actor *actor,
               const struct file_place *place, const char *prefix, char out[FILE_NOTES],
               struct error *err);

/* Which part of a file is wanted, now that it is known what it is; false: none. */
typedef bool (*file_choose)(void *data, const struct file_info *info, uint64_t *offset,
                            uint64_t *length);

/*
 * The part of a file that `choose` says (which may be asked again, as files change), in an unnamed file of the server's, the caller's to free;
 * *out is NULL where none is wanted. ERROR_TOO_LARGE for more than the settings allow at once.
 */
int file_fetch(struct sandboxes *sandboxes, const struct actor *actor,
               const struct file_place *place, file_choose choose, void *data,
               struct file_info *info, struct temporary **out, struct error *err);

#define FILE_KEEP UINT32_MAX // of mode, uid and gid: as it is; 0644 and the user's for what is new

/* How a whole file is written. */
struct file_change {
    uint32_t mode, uid, gid;
    bool makes_parents, is_append;
    const char *condition; // etags with ',' between, or "*"; NULL: none
    bool is_unless;        // only if none of them is the file's
};

/* A part of a file of the server's. */
struct file_content {
    int fd;
    uint64_t offset, length;
};

/* All or nothing: a file is replaced when all of the content has come. Appending changes it in place. */
int file_save(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_change *how,
              const struct file_content *content, struct file_info *out, struct error *err);

struct file_infos {
    struct file_info *items;
    size_t count;
    bool has_more;    // behind the last
    uint64_t skipped; // directories that could not be entered
};
void file_infos_clear(struct file_infos *infos);
#define autofileinfos __attribute__((cleanup(file_infos_clear))) struct file_infos

#define FILE_FIND_MAX 1000

/* What file_find tells of. */
enum file_kind {
    FILE_KIND_FILE = 1,
    FILE_KIND_DIRECTORY = 2,
    FILE_KIND_LINK = 4,
    FILE_KIND_OTHER = 8
};
struct file_query {
    const char *pattern; // a glob for paths below; NULL: any
    const char *after;   // the last path of the page before; NULL: from the first on
    uint32_t depth;      // levels of directories; 0: all
    unsigned kinds;      // of enum file_kind; 0: all
    size_t maximum;
};
/* Entries below a directory, each before what is in it, sorted by name: a page that stays the same while others come and go. */
int file_find(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_query *query,
              struct file_infos *out, struct error *err);

struct file_match {
    char *path; // below what was searched; "": that itself
    char *text; // any bytes
    size_t text_size;
    uint64_t line, offset_bytes; // of the text in the file
    uint32_t column;             // in bytes from 1; 0: not known
    bool is_cut;
};
struct file_matches {
    struct file_match *items;
    size_t count;
    bool is_cut; // there were more
    uint64_t skipped, bytes;
};
void file_matches_clear(struct file_matches *matches);
#define autofilematches __attribute__((cleanup(file_matches_clear))) struct file_matches

struct file_grep {
    const char *pattern, *names; // names: a glob, NULL: any
    bool is_fixed, ignores_case;
    uint32_t depth, line_bytes;
    uint64_t file_bytes;
    size_t maximum;
};
/* Lines of a file, or of all below a directory, sorted by path. */
int file_search(struct sandboxes *sandboxes, const struct actor *actor,
                const struct file_place *place, const struct file_grep *grep,
                struct file_matches *out, struct error *err);

/* With `makes_parents`, what is there already is fine. */
int file_make_directory(struct sandboxes *sandboxes, const struct actor *actor,
                        const struct file_place *place, uint32_t mode, bool makes_parents,
                        struct file_info *out, struct error *err);

struct file_target {
    const char *to;
    bool makes_parents, may_replace;
};
struct file_copied {
    uint64_t entries, bytes, skipped; // below a directory
    struct file_info info;            // of what stands there now
};
int file_move(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_target *target,
              struct file_info *out, struct error *err);
int file_copy(struct sandboxes *sandboxes, const struct actor *actor,
              const struct file_place *place, const struct file_target *target,
              struct file_copied *out, struct error *err);

/* The condition is as in file_change. */
int file_delete(struct sandboxes *sandboxes, const struct actor *actor,
                const struct file_place *place, bool is_recursive, const char *condition,
                bool is_unless, struct error *err);

/* file_pack and file_unpack (file.h) as another user. ARCHIVE_ANY: also one compressed with zstd. */
int file_pack_as(struct sandboxes *sandboxes, const struct actor *actor,
                 const struct file_place *place, enum archive_format format, struct temporary **out,
                 struct error *err);
int file_unpack_as(struct sandboxes *sandboxes, const struct actor *actor,
                   const struct file_place *place, enum archive_format format, int archive_fd,
                   struct error *err);
