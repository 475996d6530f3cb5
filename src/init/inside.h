/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens files of the box for PID 1 without touching PID 1's own. The opener is PID 1, so a planted
 * link to /proc/self/fd/N or a read of /proc/1/mem would reach what only PID 1 holds: links of the
 * kernel are never followed and nothing on a kernel file system is opened. Nothing here blocks on a
 * FIFO, a terminal or a lease.
 * Threads: any.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

/* Error sentences show this much of a path. */
#define INSIDE_SHOWN "'%.400s'"

/*
 * openat2 with what every open here must have: close-on-exec, not blocking, no controlling
 * terminal, no kernel links. The fd is unchecked (only pass it on after inside_check, or open with
 * O_PATH). -1 with errno.
 */
int inside_openat(int dir, const char *path, int flags, mode_t mode, uint64_t resolve);

/* True when the fd is on proc, sysfs, a cgroup tree or another file system made of the kernel's own
 * files. */
bool inside_is_kernel(int fd);

/* Refuses what is not of type `type` (S_IFREG, S_IFDIR; 0: any) or is the kernel's. Fills *info. */
int inside_check(int fd, mode_t type, const char *path, struct stat *info, struct error *err);

/*
 * Opens an existing file or directory of that type, looked at before it is opened and again after:
 * a FIFO, socket or device is refused without having been opened.
 */
int inside_open(int dir, const char *path, int flags, mode_t type, struct stat *info,
                struct error *err);

/* A directory as a place to work from (O_PATH). With `is_made`, missing ones on the way are made
 * (0755). */
int inside_dir(int dir, const char *path, bool is_made, struct error *err);

/*
 * The directory that holds the last part of `path`, which is copied to `name` (256 bytes). Slashes
 * behind it are ignored; "/" and what ends in "." or ".." is refused, as that names no entry of a
 * directory.
 */
int inside_parent(int dir, const char *path, bool is_made, char *name, struct error *err);

/* Has the inotify instance watch the directory that an fd stands for: its number, or -1 with errno. */
int inside_watch(int inotify, int fd, uint32_t mask);

/* Changes the mode of what an O_PATH fd stands for. -1 with errno. */
int inside_chmod(int fd, mode_t mode);
