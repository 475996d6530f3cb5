/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where boxes write: a volume with hard limits per scratch. Found by probing, best first: btrfs
 * under the data directory; XFS or ext4 with project quota there; a sparse file with btrfs on a
 * loop device; tmpfs. Attached once at <data>/volume and kept until `burrow detach`. Calls block; none
 * logs. Many processes may use one data directory, under the same rule as threads. An open volume
 * keeps the file system busy: free it before detaching.
 *
 * A tmpfs scratch is a mount attached nowhere. Before Linux 6.15 neither open_tree(2) nor overlay
 * takes such a mount: it is attached first (move_mount(2)). Before 6.3 it cannot be idmapped.
 *
 * A limit binds whoever lacks CAP_SYS_RESOURCE: ext4 (not btrfs, XFS or tmpfs) lets a process
 * through that has it. A guest writes with the rights of whoever mounted its overlay, so an overlay
 * is mounted without it.
 *
 * Threads: any; no two on one scratch, but for measuring it beside another call.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum volume_scheme {
    VOLUME_AUTO,
    VOLUME_BTRFS,      // the data directory is on btrfs (or a btrfs is mounted at <data>/volume)
    VOLUME_XFS,        // project quota
    VOLUME_EXT4,       // project quota
    VOLUME_LOOP_BTRFS, // <data>/volume.img on a loop device
    VOLUME_TMPFS,      // memory; limits by size= and nr_inodes=
};

struct volume;

struct volume_options {
    /*
     * VOLUME_AUTO takes what is attached, else probes. It never changes a file system that is not
     * burrow's own: a btrfs that holds other things too is taken only when quotas are on there
     * already, and VOLUME_BTRFS turns them on. It comes to tmpfs only when this machine lacks
     * something a loop volume needs (volume_fallback_reason).
     */
    enum volume_scheme scheme;
    uint64_t size_bytes; // of a new loop file, sparse, at least 256 MiB; 0: 90 % of what is free,
                         // at most 1 TiB
    const char *mkfs;    // the program that makes a btrfs; NULL: mkfs.btrfs where systems have it
};

struct volume_limits {
    uint64_t bytes; // 0: none (tmpfs: half of the memory)
    uint64_t
        inodes; // 0: none; where the scheme cannot count inodes, ignored (volume_counts_inodes)
};

struct volume_space {
    uint64_t total_bytes;
    uint64_t free_bytes; // the smaller of the volume's and of the disk behind a loop file
};

/*
 * Attaches (and makes, the first time) the volume of a data directory, under a lock shared by all
 * burrow processes. Once attached, this is a handful of system calls and no lock.
 */
int volume_open(const char *data_dir, const struct volume_options *options, struct volume **out,
                struct error *err);
void volume_free(struct volume *volume); /* forgets the handle; the volume stays attached */
/*
 * Detaches: unmounts and frees the loop device. Not attached is fine. ERROR_CONFLICT, naming who,
 * while it is in use.
 */
int volume_detach(const char *data_dir, struct error *err);
/* Whether a loop volume is still mounted there although its file, or what marks it as a volume, was removed. All it is good for is to be detached. */
bool volume_is_orphan(const char *data_dir);

/* Its top directory when it is a file system of its own, so that paths in it tell nothing of the
 * host; else -1. */
int volume_own_dir(const struct volume *volume);

enum volume_scheme volume_scheme(const struct volume *volume);
const char *volume_scheme_name(enum volume_scheme scheme); /* "loop-btrfs" … */
/* Why VOLUME_AUTO came to tmpfs, as a sentence with the way out; NULL when it did not. */
const char *volume_fallback_reason(const struct volume *volume);
bool volume_counts_inodes(const struct volume *volume);
int volume_space(struct volume *volume, struct volume_space *out, struct error *err);

/*
 * A fresh scratch `name` (our own name: letters, digits, '-', at most 64) with directories `upper`
 * and `work` on one file system, limited hard. *dir_fd is the scratch's directory, the caller's,
 * for calls relative to it (it may be O_PATH). What stood there under that name is removed first.
 * `upper` is 0755 and owned by root. On failure nothing remains.
 */
int volume_scratch_create(struct volume *volume, const char *name,
                          const struct volume_limits *limits, int *dir_fd, struct error *err);
/* Opens an existing one; ERROR_NOT_FOUND when gone. tmpfs: only those made by this very volume
 * object. */
int volume_scratch_open(struct volume *volume, const char *name, int *dir_fd, struct error *err);
int volume_scratch_limit(struct volume *volume, const char *name,
                         const struct volume_limits *limits, struct error *err);
/* Bytes used; may trail by a commit. is_exact waits for one. */
int volume_scratch_usage(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                         struct error *err);
/*
 * Returns when the name is free again; space may come back a moment later (tmpfs: when the last fd
 * and mount of it goes). Missing is fine.
 */
int volume_scratch_remove(struct volume *volume, const char *name, struct error *err);

/*
 * Has the room of what was removed come back now rather than when the file system gets to it (btrfs: every half a minute). Blocks until
 * everything written so far is on disk.
 */
int volume_settle(struct volume *volume, struct error *err);
/* Whether so little is left that what was removed has to come back at once: volume_settle. */
bool volume_is_tight(struct volume *volume);

/*
 * Makes spare scratches until `count` wait (64 at most); volume_scratch_create takes one and only
 * sets its limit. Worth it off the path of a launch, most of all before Linux 6.5, where making a
 * subvolume waits for the disk. Does nothing where making a scratch is cheap.
 */
int volume_fill_scratches(struct volume *volume, unsigned count, struct error *err);

/*
 * Calls `is_owned(name, data)` for each scratch that exists; false: it is removed. Goes on after a
 * failure and reports the first. tmpfs: those of this volume object.
 */
int volume_sweep(struct volume *volume, bool (*is_owned)(const char *name, void *data), void *data,
                 struct error *err);

DEFINE_AUTOPTR(volume)
