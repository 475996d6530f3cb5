/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one outside program the engine runs: it makes an empty btrfs in a file.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

/*
 * Runs `program` (NULL: mkfs.btrfs where systems have it) on the file and waits for it. It gets a
 * clean environment, no fds of ours, and no shell sees the path. ERROR_UNAVAILABLE names the
 * package when it is not installed.
 */
int mkfs_btrfs(const char *program, const char *path, struct error *err);
