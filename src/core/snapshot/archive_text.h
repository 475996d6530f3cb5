/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The two strings in a snapshot's archive: what it is, and the digests of its files; see snapshot_archive.h.
 * Threads: any; does not block.
 */
#pragma once
#include "base/buffer.h"
#include "base/strings.h"

#include <stdbool.h>

#define SNAPSHOT_ABOUT "burrow-snapshot"
#define SNAPSHOT_CHECKSUMS "SHA256SUMS"
#define SNAPSHOT_FILES "files"

#define SNAPSHOT_ABOUT_MAX ((size_t)4 << 20)
#define SNAPSHOT_CHECKSUMS_MAX ((size_t)128 << 20)

/* The first line of the first text; more lines follow. */
int about_begin(struct buffer *about, struct error *err);
/* A line; none where the value is NULL. */
int about_add(struct buffer *about, const char *name, const char *value, struct error *err);

/* Takes a whole text apart. ERROR_INVALID, noun "archive", when it is none, or one of later times. */
int about_read(const struct buffer *about, struct strings *lines, struct error *err);
/* The value of the first line of this name from *at on, which then stands behind it; NULL: none. */
const char *about_next(const struct strings *lines, const char *name, size_t *at);
const char *about_get(const struct strings *lines, const char *name);

/* A line of the second text, as sha256sum(1) writes it. The first text has one too. */
int checksums_add(struct buffer *checksums, const char *checksum, const char *path,
                  struct error *err);

/* The lines of such a text, to be found in any order. */
struct checksums {
    struct checksum_line *lines; // sorted
    size_t count, n_used;
};
/* `text` must outlive it. ERROR_INVALID, noun "archive", when a line is none; *out has to be cleared all the same. */
int checksums_read(const struct buffer *text, struct checksums *out, struct error *err);
/* Whether there is such a line that was not used yet; it is now. */
bool checksums_use(struct checksums *checksums, const char *checksum, const char *path);
void checksums_clear(struct checksums *checksums);
