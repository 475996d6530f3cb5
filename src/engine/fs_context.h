/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File systems made by fsopen(2) and held by an fd: nobody sees such a mount before it is complete.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

struct fs_option {
    const char *key;
    const char *value; // NULL: a flag
};

/*
 * A new mount of file system `type` that is attached nowhere; *mount_fd (O_PATH, the root of it) is
 * the caller's. It ends with its last fd unless it is attached. `options` end with a NULL key. No
 * device nodes and no set-user-id programs are honoured in it, and no access times are kept.
 */
int fs_context_mount(const char *type, const struct fs_option *options, int *mount_fd,
                     struct error *err);

/* Changes options of the file system at the root of which mount_fd is. */
int fs_context_change(int mount_fd, const struct fs_option *options, struct error *err);

/* Makes the mount visible at `name` below dir_fd, in this mount namespace. */
int fs_context_attach(int mount_fd, int dir_fd, const char *name, struct error *err);
