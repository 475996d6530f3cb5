/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A local directory as a tar archive, piece by piece: what `fs cp -r` and builds of snapshots send. Links are sent as links, never followed; what is
 * neither file, directory nor link is left out, and counted.
 * Threads: one per object.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct tar_send;

/* `wants` may be NULL: all; else asked with each path below the directory. */
int tar_send_new(const char *directory,
                 bool (*wants)(void *context, const char *path, bool is_directory), void *context,
                 struct tar_send **out, struct burrow_error *err);
void tar_send_free(struct tar_send *tar);
/* Files with more than so many bytes are told to on_large, and left out. */
void tar_send_leave_out(struct tar_send *tar, uint64_t bytes,
                        void (*on_large)(void *context, const char *path), void *context);
/* The next bytes; 0 at the end, -1 with errno. */
ssize_t tar_send_read(struct tar_send *tar, void *to, size_t size);
/* The next part: tar_send_read begins a new archive with what is left, and ends it with the entry by which it has this many bytes (0: with the
 * last). False when nothing is left. Without it all is one archive. */
bool tar_send_part(struct tar_send *tar, uint64_t bytes);
/* How many bytes all of it will be; 0: that cannot be said. Opens every file. */
uint64_t tar_send_total(const char *directory);
/* Files and bytes so far; which file the failure is about, where one is. */
uint64_t tar_send_files(const struct tar_send *tar);
uint64_t tar_send_bytes(const struct tar_send *tar);
uint64_t tar_send_skipped(const struct tar_send *tar);
const char *tar_send_path(const struct tar_send *tar);
