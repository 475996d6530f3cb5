/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the builds of one name stand: <data>/runtimes/NAME/.TAG-ID holds a build, NAME/TAG is a
 * link to it. A build in use is locked through its manifest; one that no tag points at and nobody
 * uses is swept.
 * Threads: any but loops; who builds or removes holds the lock of the name.
 */
#pragma once
#include "base/auto.h"
#include "base/strings.h"
#include "runtime/manifest.h"

#include <stdbool.h>

struct build_dir {
    char *path;      // <data>/runtimes
    char *name;      // of the runtime, without its tag
    char *lock_path; // held by whoever builds or removes something of this name
};

struct build_dir *build_dir_new(const char *data_dir, const char *name);
void build_dir_free(struct build_dir *builds);
DEFINE_AUTOPTR(build_dir)

/* The manifest of what `tag` points at; `lock` as for manifest_open. */
int build_dir_open(const struct build_dir *builds, const char *tag, int lock, int *out_fd,
                   struct manifest **out, struct error *err);

/* Moves the build at `work` to `dir` here and points the tags at it. The caller holds the name's lock. */
int build_dir_put(const struct build_dir *builds, const char *work, const char *dir,
                  const char **tags, struct error *err);

/* What nobody needs and is removed; in a trial, what would be. */
struct build_sweep {
    bool is_trial;
    struct strings gone; // builds and layers, as manifests name them: "base/.latest-12ab"
    uint64_t bytes;
};
void build_sweep_clear(struct build_sweep *sweep);
#define autosweep __attribute__((cleanup(build_sweep_clear))) struct build_sweep
/* The build or layer `name` of `dir_fd`, which is `place` below `path`, unless somebody uses it or stands on it. Its manifest goes first: whoever waits for its
 * lock sees that it is gone. */
void build_sweep_take(struct build_sweep *sweep, const char *path, const char *place, int dir_fd,
                      const char *name);

/* Whether another build or layer of the data directory stands on `build`; who it is, in `user`. What `sweep` (or NULL) has removed does not count. Reads all
 * manifests. */
bool build_dir_is_named(const char *path, const char *build, const struct build_sweep *sweep,
                        char *user, size_t size);

/* Removes builds that no tag points at, unless they are used. Best effort; the caller holds the name's lock. */
void build_dir_sweep(const struct build_dir *builds, struct build_sweep *sweep);

/* Takes the name's lock. ERROR_CONFLICT when it is used or being built; ERROR_NOT_FOUND when it is
 * not there. */
int build_dir_remove(const struct build_dir *builds, const char *tag, struct error *err);
