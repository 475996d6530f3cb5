/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unpacks a tar archive that comes from a sandbox, so from a stranger. Memory does not grow with the archive.
 * Threads: one per object.
 */
#pragma once
#include "cli/entry_maker.h"

struct tar_take;

/* The maker is borrowed: what was made, and what refused, it knows. */
struct tar_take *tar_take_new(struct entry_maker *maker);
void tar_take_free(struct tar_take *tar);
/* The next bytes of the archive, in any pieces. */
int tar_take_bytes(struct tar_take *tar, const void *data, size_t length, struct burrow_error *err);
/* No more come: an error where it is cut off. */
int tar_take_end(struct tar_take *tar, struct burrow_error *err);
