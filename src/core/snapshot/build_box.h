/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A box of its own over a runtime, in which an archive is unpacked; no sandbox has it. It has no record, so a restart of the server
 * ends it and removes its files.
 * Threads: any but loops.
 */
#pragma once
#include "core/sandbox/pool.h"
#include "core/snapshot/snapshots.h"

struct build_box {
    struct snapshots *snapshots;
    struct pooled pooled;
};

/* At most `disk_bytes` can be written in it. */
int build_box_open(struct build_box *build_box, const char *runtime, const char *dependencies,
                   const char *packages, int64_t disk_bytes, struct error *err);
/* A conversation about its files, as root; relative paths start at "/". */
int build_box_files(struct build_box *build_box, int *conversation, struct error *err);
/* Ends the box and keeps what was written in it as a new layer. */
int build_box_save(struct build_box *build_box, const char *layer, uint64_t *bytes,
                   struct error *err);
/* Ends the box, if it still runs, and removes its files; one that was never opened is fine. */
void build_box_close(struct build_box *build_box);
#define autobuildbox __attribute__((cleanup(build_box_close))) struct build_box
