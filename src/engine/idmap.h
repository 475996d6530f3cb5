/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user namespace held by an fd: box ids 0..65535 on a range of host ids. For idmapped mounts, and to live in.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

#include <stdint.h>

/*
 * Blocks for a short-lived child of ours. *out is the namespace's fd, the caller's. What processes in it hold of the kernel
 * is counted for first_id, not for us. Closes this process to debuggers: who wants it open sets PR_SET_DUMPABLE again.
 */
int idmap_create(uint32_t first_id, uint32_t count, int *out, struct error *err);

/* The same for a mount of one user's files: `uid` and `gid` on disk are first_id and nobody else is anybody. */
int idmap_create_one(uint32_t uid, uint32_t gid, uint32_t first_id, int *out, struct error *err);
