/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every box gets and none can change, made once per data directory:
 *   dev/    device nodes
 *   views/  for each pair of memory and CPU limit: root/, the topmost read-only layer, with the mount points as
 *           plain directories, whatever an image says they are, and a /sys that tells a program its own limits;
 *           and meminfo, which does the same for memory
 * and mounts/, where mounts are attached while a box is put together.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdint.h>

struct fixtures {
    int dev_fd, views_fd, mounts_fd;
};

/* Below `own_fd`, a directory whose path tells nothing of the host (-1: below `data_fd` too). */
int fixtures_open(int data_fd, int own_fd, struct fixtures **out, struct error *err);
void fixtures_free(struct fixtures *fixtures);

/* The directory of the view for these limits (0: no limit); it holds `root/` and, with a limit, `meminfo`. */
int fixtures_view(struct fixtures *fixtures, uint64_t memory_bytes, unsigned n_cpus, int *out_fd,
                  struct error *err);

/*
 * A /dev for one box whose root is `owner`, in memory, attached nowhere; with the view's meminfo as '.meminfo'. For where
 * the fixtures share a file system with the host: a mount of those would tell their path there.
 */
int fixtures_make_dev(int view_fd, uint32_t owner, int *out_fd, struct error *err);

DEFINE_AUTOPTR(fixtures)
