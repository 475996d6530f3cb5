/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files inside a box, seen from outside: the asking end of a conversation that box_files opened.
 * PID 1 does the work in the box with the user's rights; what it answers is taken for hostile
 * (lengths, names and sizes are checked), so a box that was broken into can lie about its files and
 * nothing else.
 *
 * `conv` is borrowed. Calls block. Paths are those of the box, relative ones start at the
 * conversation's base; links inside are followed inside. After an error of kind GONE or TIMEOUT, or
 * when a callback stopped a call, the conversation is over: close it and open another.
 *
 * Threads: one per object; the conversation.
 */
#pragma once
#include "base/error.h"
#include "engine/files_wire.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Nothing sensible fits between two frames: waits for PID 1 end after this. Without it, they last.
 */
int files_set_timeout(int conv, unsigned timeout_ms, struct error *err);

/* Callbacks return 0 to go on, or -1 with *err filled to stop. What they are given is valid during
 * the call. */
typedef int (*files_on_item)(void *data, const struct files_item *item, struct error *err);
typedef int (*files_on_data)(void *data, const void *bytes, size_t length, struct error *err);

/* Gives up to `size` bytes; 0 at the end, -1 with *err. */
typedef ssize_t (*files_fill)(void *data, void *bytes, size_t size, struct error *err);

/* Asked now and then while the box works without a word: 0 to go on, or -1 with *err filled. */
typedef int (*files_on_alive)(void *data, struct error *err);
typedef int (*files_on_match)(void *data, const struct files_match *match, struct error *err);

/* For work that may last: with it, a wait goes on as long as there are signs of life. NULL: nobody is asked. */
struct files_patience {
    files_on_alive on_alive;
    void *data;
};

/* *item is filled (its strings are ""); total->is_truncated when the file has more than `maximum`
 * from offset. */
int files_read(int conv, const char *path, uint64_t offset, uint64_t maximum,
               struct files_item *item, files_on_data on_data, void *data,
               struct files_total *total, struct error *err);
/* The same into a file, pipe or socket of ours. item and total may be NULL, here and everywhere. */
int files_read_to_fd(int conv, const char *path, uint64_t offset, uint64_t maximum, int fd,
                     struct files_item *item, struct files_total *total, struct error *err);

/*
 * Writes in place: an existing file keeps owner, mode and hard links; a new one gets `mode` and the
 * user. Flags: FILES_PARENTS, FILES_EXCLUSIVE. Cut off by an error, a new file is removed again, an
 * existing one holds what came.
 */
int files_write(int conv, const char *path, uint32_t mode, unsigned flags, files_fill fill,
                void *data, struct error *err);
int files_write_buffer(int conv, const char *path, uint32_t mode, unsigned flags, const void *bytes,
                       size_t length, struct error *err);
int files_write_from_fd(int conv, const char *path, uint32_t mode, unsigned flags, int fd,
                        struct error *err);

/* How a whole file is written. */
struct files_save {
    uint32_t mode;         // FILES_KEEP_MODE: as it is, or 0644
    uint32_t uid, gid;     // FILES_KEEP_ID: as they are, or the user's
    unsigned flags;        // FILES_PARENTS, FILES_UNLESS, FILES_APPEND
    const char *condition; // etags (files_item_etag) with ',' between, or "*"; "": none
};
/*
 * All or nothing: written beside and renamed over what is there (with FILES_APPEND in place, behind it). A condition that does not
 * hold is ERROR_CONFLICT with ESTALE; of two with the same etag one succeeds. *item is what is there now, its strings are "".
 */
int files_save(int conv, const char *path, const struct files_save *how, files_fill fill,
               void *data, struct files_item *item, struct error *err);

/* Which entries of a tree are told. */
struct files_find {
    const char *pattern; // a glob for paths below the directory; "": any
    const char *after;   // those behind this path; "": from the first on
    uint32_t depth;      // levels of directories; 0: all
    uint32_t kinds;      // FILES_KIND_…
    uint64_t maximum;    // 1 to 1000; fewer where paths are long
};
/* In the order of files_path_compare; total->is_truncated when there are, or may be, more behind the last one. */
int files_find(int conv, const char *path, const struct files_find *what,
               const struct files_patience *patience, files_on_item on_item, void *data,
               struct files_total *total, struct error *err);

/* Which lines are told. */
struct files_search {
    const char *pattern; // see base/pattern.h
    const char *names;   // a glob for paths below the directory; "": any
    unsigned flags;      // FILES_FIXED, FILES_IGNORE_CASE
    uint32_t depth;      // as above
    uint32_t line_bytes; // of a line, at most 8 KiB
    uint64_t file_bytes; // larger files are passed over, as those that seem no text
    uint64_t maximum;    // matches
};
/* In no order of files, if `path` is a directory; else in it alone. total->bytes are those that were read. */
int files_search(int conv, const char *path, const struct files_search *what,
                 const struct files_patience *patience, files_on_match on_match, void *data,
                 struct files_total *total, struct error *err);

/* Flags: FILES_PARENTS, FILES_EXCLUSIVE. A file replaces a file; a directory nothing but an empty one. All or nothing. */
int files_copy(int conv, const char *from, const char *to, unsigned flags,
               const struct files_patience *patience, struct files_total *total, struct error *err);
/* files_rename and files_remove, for as long as they take; a removal under a condition as in files_save. */
int files_move(int conv, const char *from, const char *to, unsigned flags,
               const struct files_patience *patience, struct error *err);
int files_remove_if(int conv, const char *path, unsigned flags, const char *condition,
                    const struct files_patience *patience, struct error *err);

/* Entries in no order, without "." and ".."; with is_recursive, paths relative to `path`. At most
 * `maximum` are given. */
int files_list(int conv, const char *path, bool is_recursive, uint64_t maximum,
               files_on_item on_item, void *data, struct files_total *total, struct error *err);

/* Of the link itself unless is_followed. `target` (FILES_MAX_PATH bytes, or NULL) gets where a link
 * leads, else "". */
int files_stat(int conv, const char *path, bool is_followed, struct files_item *item, char *target,
               struct error *err);

/* Notes: short texts by name that stand with a file, as extended attributes whose names begin with `prefix` ("user.…"). "NAME=VALUE" each, with line
 * breaks between; none where the file system has none. Setting replaces all of the prefix. */
int files_set_notes(int conv, const char *path, const char *prefix, const char *notes,
                    struct error *err);
int files_notes(int conv, const char *path, const char *prefix, char notes[FILES_MAX_PATH],
                struct error *err);

/* An existing directory is fine unless FILES_EXCLUSIVE. Flags: FILES_PARENTS, FILES_EXCLUSIVE. */
int files_mkdir(int conv, const char *path, uint32_t mode, unsigned flags, struct error *err);
/* A file, link or empty directory; with FILES_RECURSIVE, any directory. Flags: FILES_RECURSIVE,
 * FILES_MISSING_OK. */
int files_remove(int conv, const char *path, unsigned flags, struct error *err);
/* Flags: FILES_PARENTS, FILES_EXCLUSIVE. */
int files_rename(int conv, const char *from, const char *to, unsigned flags, struct error *err);
int files_chmod(int conv, const char *path, uint32_t mode, struct error *err);
/* FILES_KEEP_ID leaves an id. Flags: FILES_FOLLOW. */
int files_chown(int conv, const char *path, uint32_t uid, uint32_t gid, unsigned flags,
                struct error *err);

/*
 * Everything below a directory, or one file, as records: directories before what is in them; files,
 * directories and links only. on_data comes item->size bytes in all after each file. Paths are
 * plain (files_path_is_plain). ERROR_LIMIT when there are more than `maximum` bytes.
 */
int files_export(int conv, const char *path, uint64_t maximum, files_on_item on_item,
                 files_on_data on_data, void *data, struct files_total *total, struct error *err);

/* The next record into *item (strings stay valid until the next call): 1, 0 at the end, -1 with
 * *err. */
typedef int (*files_next_item)(void *data, struct files_item *item, struct error *err);

/*
 * Unpacks records below a directory; stretches of zeros become holes; `fill` is asked for item->size bytes after each file. What
 * stands in a file's place is replaced. Stops at the first record that is refused. Flags:
 * FILES_PARENTS (make the directory), FILES_OWNERS (also directories get the times in their records,
 * which last when nothing comes into them afterwards).
 */
int files_import(int conv, const char *path, unsigned flags, files_next_item next_item,
                 files_fill fill, void *data, struct files_total *total, struct error *err);

/*
 * Watches a directory, with `is_recursive` also those below it (at most `directories`, ERROR_LIMIT; 0: as many as PID 1 allows). When it
 * returns, nothing that happens from then on is missed, and the conversation is for files_take_events alone, until it is closed.
 */
int files_watch(int conv, const char *path, bool is_recursive, unsigned directories,
                struct error *err);

/*
 * Tells what has happened, a frame at most, without waiting. 1: it did; 0: nothing has happened; -1: it is over, because the directory
 * is gone (ERROR_NOT_FOUND) or the box (ERROR_GONE). `buffer`: FILES_MAX_FRAME bytes. Strings are valid during the call. Any thread, also
 * a loop's.
 */
typedef void (*files_on_event)(void *data, const struct files_event *event);
int files_take_events(int conv, void *buffer, files_on_event on_event, void *data,
                      struct error *err);
