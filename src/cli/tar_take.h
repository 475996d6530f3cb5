/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks a tar archive that comes from a sandbox, so from a stranger, below one local directory: no name leads out of it, no link is followed on
 * the way or made where it leads outside, no device is made, no set-id bit is kept. Memory does not grow with the archive. Small files are there when
 * tar_take_end has succeeded, and may come later than what stands behind them (file_maker.h).
 * Threads: one per object.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>
#include <stdint.h>

struct tar_take;

/*
 * Whether a link at `name` with this target stays below the directory, whatever links there are besides: others are not made. So '..' stands at the
 * beginning of the target or nowhere.
 */
bool tar_take_link_stays(const char *name, const char *target);

/* `directory` is borrowed, an open one. `strip`: so many first parts of each name are left out. */
struct tar_take *tar_take_new(int directory, unsigned strip);
void tar_take_free(struct tar_take *tar);
/* The next bytes of the archive, in any pieces. */
int tar_take_bytes(struct tar_take *tar, const void *data, size_t length, struct burrow_error *err);
/* No more come: an error where it is cut off. */
int tar_take_end(struct tar_take *tar, struct burrow_error *err);
uint64_t tar_take_files(const struct tar_take *tar);   // links are files
uint64_t tar_take_entries(const struct tar_take *tar); // with the directories that were made
uint64_t tar_take_bytes_written(const struct tar_take *tar);
uint64_t tar_take_refused(const struct tar_take *tar); // names and links that lead outside, devices
