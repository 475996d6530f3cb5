/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the builds of one name stand: <data>/runtimes/NAME/.TAG-ID holds a build, NAME/TAG is a
 * link to it. A build in use is locked through its manifest; one that no tag points at and nobody
 * uses is swept.
 * Threads: any but loops; who builds or removes holds the lock of the name.
 */
#pragma once
#include "base/auto.h"
#include "runtime/manifest.h"

struct shelf {
    char *path;      // <data>/runtimes
    char *name;      //
    char *lock_path; // held by whoever builds or removes something of this name
};

struct shelf *shelf_new(const char *data_dir, const char *name);
void shelf_free(struct shelf *shelf);
DEFINE_AUTOPTR(shelf)

/* The manifest of what `tag` points at; `lock` as for manifest_open. */
int shelf_open(const struct shelf *shelf, const char *tag, int lock, int *out_fd,
               struct manifest **out, struct error *err);

/* Moves the build at `work` to `dir` on the shelf and points the tags at it. The shelf's lock is
 * held by the caller. */
int shelf_put(const struct shelf *shelf, const char *work, const char *dir, const char **tags,
              struct error *err);

/* Removes builds that no tag points at, unless they are used. Best effort; under the shelf's lock.
 */
void shelf_sweep(const struct shelf *shelf);

/* Takes the shelf's lock. ERROR_CONFLICT when it is used or being built; ERROR_NOT_FOUND when it is
 * not there. */
int shelf_remove(const struct shelf *shelf, const char *tag, struct error *err);
