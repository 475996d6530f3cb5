/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every box gets and none can change, made once in the data directory:
 *   root/    the topmost read-only layer: the mount points as plain directories, whatever an image says they are
 *   dev/     device nodes
 *   mounts/  where mounts are attached while a box is put together
 *   views/   /sys and /proc/meminfo for each pair of memory and CPU limit, so that programs see their own
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"

#include <stdint.h>

struct fixtures {
    int root_fd, dev_fd, mounts_fd, views_fd;
};

int fixtures_open(int data_fd, struct fixtures **out, struct error *err);
void fixtures_free(struct fixtures *fixtures);

/* The directory of the view for these limits (0: none); it holds `sys/` and, with a memory limit, `meminfo`. */
int fixtures_view(struct fixtures *fixtures, uint64_t memory_bytes, unsigned n_cpus, int *out_fd,
                  struct error *err);

DEFINE_AUTOPTR(fixtures)
