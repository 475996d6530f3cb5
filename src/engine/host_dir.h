/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Directories of the host that a box sees (struct box_mount): opened without following a link, with the ids of their owner.
 * Whoever owns the directory outside is root inside it, and nobody else is anybody: root of the box may there what that user may, and no
 * other user of the box owns or writes anything; likewise its group. So no box ever writes as the host's root.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct box_mount;

/*
 * Opens a directory that somebody named; *out is the caller's. `root_fd` is a directory it must be below, or -1: a path of this process's own; `shown` is how it is called.
 * ERROR_INVALID when a link, "..", or anything but a directory is in the way; ERROR_NOT_FOUND when it is not there.
 */
int host_dir_open(int root_fd, const char *path, const char *shown, int *out, struct error *err);

/* Where in a box one can be: absolute and plain, not the root, nothing of the kernel's. ERROR_INVALID. */
int host_dir_check_target(const char *path, struct error *err);

/* Whether one of two such paths lies in the other, or is the same. */
bool host_dir_targets_meet(const char *one, const char *other);

/* ERROR_INVALID when the directory is, holds or lies in `own`, where burrow keeps things; one that is not there is nowhere. */
int host_dir_refuse(int fd, const char *own, struct error *err);

/* A detached mount of it for the box whose ids start at `first_id`: nosuid, nodev, with nothing that is mounted below it. */
int host_dir_clone(const struct box_mount *mount, uint32_t first_id, int *out, struct error *err);
