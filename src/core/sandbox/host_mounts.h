/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of the host in sandboxes: only below those that the operator has allowed (core_settings.mount_allow), looked up anew for
 * each box. Private to the core.
 * Threads: any.
 */
#pragma once
#include "core/sandbox/mount_wish.h"
#include "core/settings.h"
#include "engine/box.h"

/* What can be said before anything is made: ERROR_INVALID, ERROR_DENIED, noun "mounts". */
int host_mounts_check(const struct core_settings *settings, const struct mount_wish *wishes,
                      size_t count, struct error *err);

/* Those of one box, open. All zero: none. */
struct host_mounts {
    struct mount_wishes wishes;
    struct box_mount mounts[MOUNT_WISHES_MAX];
    size_t count;
};
/* Of a record's. A directory that is gone, or no longer allowed, is refused: noun "mounts". */
int host_mounts_open(const struct core_settings *settings, const char *packed,
                     struct host_mounts *out, struct error *err);
void host_mounts_clear(struct host_mounts *mounts);
