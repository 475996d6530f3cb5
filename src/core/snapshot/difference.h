/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has changed in a sandbox's files between two moments, found from the layers that lie between them and not by reading both
 * trees: it costs as much as was changed.
 * Threads: any but loops.
 */
#pragma once
#include "base/auto.h"
#include "core/account/actor.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct snapshots; // snapshots.h

/* Moments that are no checkpoints; a checkpoint that is called so is named by its id. */
#define DIFFERENCE_BASE "base" // what the sandbox was started from
#define DIFFERENCE_NOW "now"

enum difference_kind {
    DIFFERENCE_ADDED,
    DIFFERENCE_CHANGED, // content, type, mode, owner or target
    DIFFERENCE_REMOVED, // a directory stands for all in it
    DIFFERENCE_KINDS,
};

struct difference_side {
    uint32_t mode; // type and permissions, as stat(2) has them; 0: not there
    uint64_t size;
};

struct difference_entry {
    enum difference_kind kind;
    const char *path; // absolute in the sandbox
    struct difference_side before, after;
    bool is_binary; // patches were asked for, and the content is not text
    const char *
        patch; // "--- a/…\n+++ b/…\n@@ …", NULL: not asked for, not text, no plain file, the same content, or too large
    size_t patch_length;
};

struct difference_request {
    const char *from; // a checkpoint's id or name, or one of the words above
    const char *to;
    bool has_patches;
    size_t max_entries; // more are counted and left out
    size_t
        max_patch_bytes; // of all patches together; what goes beyond has none, nor what comes after 64 MiB of texts
};

struct difference {
    struct difference_entry *entries; // sorted by path
    size_t count;
    uint64_t totals[DIFFERENCE_KINDS]; // of all, also of those that were left out
};
void difference_clear(struct difference *difference);
#define autodifference __attribute__((cleanup(difference_clear))) struct difference

/*
 * A file that was written with what it had before is not CHANGED, as far as sizes and contents up to 1 MiB can tell. Works on a paused sandbox. "now" is
 * as consistent as after a power cut where layers are cheap (engine/layer.h), and else each file as it was when it was looked at. ERROR_NOT_FOUND, noun "sandbox" or "checkpoint"; ERROR_GONE, noun "sandbox", reason
 * "ended". Any two moments will do, in either order.
 */
int difference_get(struct snapshots *snapshots, const struct actor *actor, const char *sandbox_id,
                   const struct difference_request *request, struct difference *out,
                   struct error *err);
