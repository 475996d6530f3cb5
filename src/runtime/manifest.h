/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a built runtime, in the file "manifest" next to its rootfs: lines of "word
 * text", read at each launch, so it needs no parser of data files. Its file is also what users of
 * the runtime hold a lock on.
 * Threads: one per object.
 */
#pragma once
#include "base/auto.h"
#include "base/buffer.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MANIFEST_MAX 65536

/* A file of the machine that the runtime was made from; when it changes, so must the runtime. */
struct manifest_watch {
    char *path;
    uint64_t inode, size;
    int64_t mtime_ns;
};

struct manifest_bind {
    char *host;
    char *box;
};

struct manifest {
    char *text;        // owns all the strings
    int64_t written_s; // when its file was, since 1970; 0 when it was not opened from one
    const char *name;
    const char *tag;  // the first one
    const char *kind; // as in the catalog
    const char *dir;  // its directory, next to the tags that point at it
    const char *made; // RFC 3339
    uint64_t definition;
    uint64_t files, bytes, digest;
    char **env; // KEY=VALUE, NULL-terminated
    size_t n_env;
    // Builds and layers below its own rootfs, top first, relative to <data>/runtimes ("base/.latest-12ab"): PATH/rootfs has the files.
    char **layers;
    size_t n_layers;
    char **command; // what runs where nothing was asked for, NULL-terminated
    size_t n_command;
    const char *user; // whose command that is, and where it starts; or NULL
    const char *directory;
    const char *description; // of an image, by itself; or NULL
    struct manifest_bind *binds;
    size_t n_binds;
    struct manifest_watch *watches;
    size_t n_watches;
};

/*
 * Opens and reads a manifest. With `lock` (LOCK_SH, LOCK_EX, perhaps LOCK_NB; 0: none) the file is
 * locked first; one that was removed meanwhile counts as missing. ERROR_NOT_FOUND; ERROR_CONFLICT
 * when LOCK_NB would wait.
 */
int manifest_open(const char *path, int lock, int *out_fd, struct manifest **out,
                  struct error *err);

/* Takes `text` (from malloc, NUL-terminated). */
int manifest_parse(char *text, struct manifest **out, struct error *err);
void manifest_free(struct manifest *manifest);
DEFINE_AUTOPTR(manifest)

int manifest_format(const struct manifest *manifest, struct buffer *out, struct error *err);

/* Looks at the file as it is now; a missing one is all zeroes. `path` is left alone. */
void manifest_watch_look(const char *path, struct manifest_watch *out);

/*
 * Whether a watched file has changed, or there are any and the machine was started since (such
 * runtimes are not synced to disk). One system call for each watched file.
 */
bool manifest_is_stale(const struct manifest *manifest);
