/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers: what boxes wrote, kept read-only under names of their own in the volume. A box started with
 * box_spec.saved sees a stack of them, over its runtime and under a scratch of its own; so a snapshot is a layer and
 * the names below it. Calls block; none logs. Several processes may use one volume.
 *
 * Cost. On btrfs (layer_is_cheap) saving and restoring is one snapshot of a subvolume: the same for 1 MiB and
 * 10 GiB, plus the write-back of what is still dirty; a running box may go on, and the layer is what a power cut
 * at one instant would have left. Elsewhere every file is copied (shared blocks where the file system can, XFS): there
 * freeze the box meanwhile, or the files are of different instants. In memory (tmpfs) scratches are, layers are not:
 * they lie in <data>/layers, on disk.
 *
 * Crashes. A layer is there whole and on disk, or not at all: kill -9 and power cuts included. What was begun is
 * removed by layer_sweep.
 *
 * Removal. The name is free at once. The files go when no living box has the layer in its stack: a box notes in its
 * slot (slot.h) what it uses. Who else needs a layer (a sandbox without a box, a snapshot of a snapshot) is for the
 * caller to know before it removes one.
 *
 * Disk limits. Nothing limits a layer; a scratch over layers starts at zero, so a box's limit is on what it writes
 * itself. With btrfs' simple quotas what a scratch wrote stays charged to that scratch as long as a layer holds it,
 * also when it was deleted or overwritten in the scratch: its layers count against its limit. With full quota groups and
 * project quotas they do not. A restored scratch starts at zero with simple quotas and else at the layer's size:
 * layer_restore evens that out by taking the layer's size off the limit where needed.
 *
 * Threads: any; no two on one layer or scratch, but for reading it beside another call.
 */
#pragma once
#include "base/error.h"
#include "engine/files_wire.h"
#include "engine/volume.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Chains may be up to 120 layers long; past this many, merging pays: each layer of a stack costs a launch about 0.8 % of the
 * launch, and nothing afterwards.
 */
#define LAYER_MERGE_AT 32

bool layer_is_cheap(const struct volume *volume);

/*
 * Keeps what is in a scratch now as layer `name` (named like a scratch; ERROR_CONFLICT when it exists). The scratch
 * stays as it is, in use or not. *bytes (or NULL) gets what its files take. ERROR_NOT_FOUND: no such scratch.
 */
int layer_save(struct volume *volume, const char *scratch, const char *name, uint64_t *bytes,
               struct error *err);

/*
 * Makes scratch `scratch` a writable copy of the layer with these limits, replacing what was there at one instant.
 * No box may use that scratch. `layer_bytes` is what layer_save told. After a failure the old scratch is there as before.
 */
int layer_restore(struct volume *volume, const char *name, uint64_t layer_bytes,
                  const char *scratch, const struct volume_limits *limits, struct error *err);

/*
 * Makes one layer `name` of several, top first, that stands for them in any stack: for chains that have grown long.
 * Files share blocks with those merged where the file system can. The others stay; boxes that use them go on. `bytes`
 * as in layer_save. *is_cancelled (or NULL): when it becomes true, ERROR_CANCELLED.
 */
int layer_merge(struct volume *volume, const char *const *names, size_t n_names, const char *name,
                uint64_t *bytes, const atomic_bool *is_cancelled, struct error *err);

/* Missing is fine. The space may come back later: layer_reclaim. On a full volume one that a living box uses stays as it is, ERROR_LIMIT. */
int layer_remove(struct volume *volume, const char *name, struct error *err);

/* Frees what removed layers still take, except those in use by a box; *n_used (or NULL) tells how many wait. Worth a call after
 * a box with layers has ended; cheap when there is nothing. */
int layer_reclaim(struct volume *volume, unsigned *n_used, struct error *err);

/*
 * Calls `is_owned(name, data)` for each layer that exists; false: it is removed. Then removes what saving, restoring and merging
 * left unfinished (so none of these may be under way) and reclaims. Goes on after a failure and reports the first.
 */
int layer_sweep(struct volume *volume, bool (*is_owned)(const char *name, void *data), void *data,
                struct error *err);

/* The layer's files, as the box wrote them (overlay's marks included), for box launches; *dir_fd is the caller's. */
int layer_open(struct volume *volume, const char *name, int *dir_fd, struct error *err);

/* What a box sees, top first: its scratch, layers of the volume, and what lies below all (a runtime's directories). */
struct layer_stack {
    const char *scratch; // NULL: none
    const char *const *saved;
    size_t n_saved;
    const char *const *base; // host directories
    size_t n_base;
};

enum layer_change_kind { LAYER_ADDED, LAYER_CHANGED, LAYER_REMOVED };

struct layer_change {
    enum layer_change_kind kind;
    bool is_type_changed; // LAYER_CHANGED: say, from a file to a directory
    /*
     * As in `to`; of a removed one as in `from`. Plain path relative to the root, at most FILES_MAX_RECORD_PATH. Further
     * names of one file are is_hard_link with `target` the first path given. `inode` is 0.
     */
    struct files_item item;
    uint32_t before_mode; // as in `from`, with its type; 0: not there
    uint64_t before_size; // of a regular file
    uint64_t disk_bytes;  // that a regular file in `to` takes
    int fd;               // of a regular file in `to`, for reading, borrowed for the call; else -1
};

/* 0 to go on, -1 with *err filled to stop. What it is given is valid during the call. */
typedef int (*layer_on_change)(void *data, const struct layer_change *change, struct error *err);

struct layer_diff_total {
    uint64_t n_added, n_changed, n_removed;
    uint64_t skipped; // sockets, pipes, and what is too deep to name
    uint64_t n_deep;  // of these, the last
};

/*
 * What differs between two stacks: directories before what is in them, below a directory in order of names. Layers that both stacks have
 * at their lower ends are not read, except below directories that were renamed or replaced. A removed directory is one
 * change, an added one is given with everything in it. A file counts as changed when its bytes, mode, owner or
 * extended attributes differ; times alone do not count. `from` with no scratch, no layers and only the base, `to` the
 * whole stack: what a snapshot consists of, to count, hash and export; with `is_base_compared` false such a file is
 * changed when a layer has it, without reading the base's bytes.
 * A living scratch may change meanwhile: each file is then of its own instant.
 */
struct layer_diff_options {
    bool is_base_compared;
    bool is_unopened; // fd is always -1: for those who only count
    size_t
        max_names; // a directory with more ends it, ERROR_LIMIT, before it is read to its end; 0: any
    const atomic_bool *is_cancelled; // or NULL, as in layer_merge
};
int layer_diff(struct volume *volume, const struct layer_stack *from, const struct layer_stack *to,
               const struct layer_diff_options *options, layer_on_change on_change, void *data,
               struct layer_diff_total *total, struct error *err);

/*
 * Opens one file of a stack for reading by the plain path that layer_diff gave. ERROR_NOT_FOUND when there is none or it is not a
 * regular file; links in the path are not followed.
 */
int layer_open_file(struct volume *volume, const struct layer_stack *stack, const char *path,
                    int *fd, struct error *err);

/*
 * Export and import. A layer leaves as the changes that layer_diff gives between base and stack: removed paths, and
 * records with contents. It comes in through a box: start one over the same runtime, files_remove the removed paths,
 * files_import the records at "/" with FILES_OWNERS, end it, layer_save its scratch. So nothing of a stranger's
 * is unpacked outside of a box, its disk limit holds, and marks of overlay (whiteouts, its attributes) cannot be brought in: a
 * record has no attributes and no devices, and the box's kernel refuses to make either.
 */
