/* SPDX-License-Identifier: Apache-2.0 */
/* The two texts in a snapshot's archive: what it is, and the sums of its files; see transfer.h. Private to the core. */
#pragma once
#include "base/buffer.h"
#include "base/strings.h"

#include <stdbool.h>

#define TRANSFER_ABOUT "burrow-snapshot"
#define TRANSFER_SUMS "SHA256SUMS"
#define TRANSFER_FILES "files"

#define TRANSFER_ABOUT_MAX ((size_t)4 << 20)
#define TRANSFER_SUMS_MAX ((size_t)128 << 20)

/* The first line of the first text; more lines follow. */
int transfer_about_begin(struct buffer *about, struct error *err);
/* A line; none where the value is NULL. */
int transfer_about_add(struct buffer *about, const char *name, const char *value,
                       struct error *err);

/* Takes a whole text apart. ERROR_INVALID, noun "archive", when it is none, or one of later times. */
int transfer_about_read(const struct buffer *about, struct strings *lines, struct error *err);
/* The value of the first line of this name from *at on, which then stands behind it; NULL: none. */
const char *transfer_about_next(const struct strings *lines, const char *name, size_t *at);
const char *transfer_about_get(const struct strings *lines, const char *name);

/* A line of the second text, as sha256sum(1) writes it. The first text has one too. */
int transfer_sums_add(struct buffer *sums, const char *sum, const char *path, struct error *err);

/* The lines of such a text, to be found in any order. */
struct transfer_sums {
    struct transfer_sum *lines; // sorted
    size_t count, n_used;
};
/* `text` must outlive it. ERROR_INVALID, noun "archive", when a line is none; *out has to be cleared all the same. */
int transfer_sums_read(const struct buffer *text, struct transfer_sums *out, struct error *err);
/* Whether there is such a line that was not used yet; it is now. */
bool transfer_sums_use(struct transfer_sums *sums, const char *sum, const char *path);
void transfer_sums_clear(struct transfer_sums *sums);
