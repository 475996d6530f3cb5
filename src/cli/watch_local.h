/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Changes in a local directory and all below it, by inotify: which paths to look at again.
 * Threads: one per object.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>

struct watch_local;

#define WATCH_MOST_DIRECTORIES 50000

/* Watches `root`, an open directory that is borrowed. `leaves_out` is asked with each path, and is not entered where it says so. */
int watch_local_new(int root, bool (*leaves_out)(void *context, const char *path), void *context,
                    struct watch_local **out, struct burrow_error *err);
void watch_local_free(struct watch_local *watch);
/* For poll. */
int watch_local_fd(const struct watch_local *watch);
/*
 * Reads what has happened, without waiting: on_path for each path that changed. *is_whole where more changed than is told, as a directory that came:
 * then everything is to be looked at.
 */
int watch_local_read(struct watch_local *watch, void (*on_path)(void *context, const char *path),
                     bool *is_whole, struct burrow_error *err);
