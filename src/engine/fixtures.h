/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every box gets and none can change, made once per data directory:
 *   dev/    device nodes
 *   views/  for each set of limits: root/, the topmost read-only layer, with the mount points as plain directories,
 *           whatever an image says they are, and a /sys that tells a program its own limits; and meminfo, which does
 *           the same for memory
 * and mounts/, where mounts are attached while a box is put together.
 * Threads: any.
 */
#pragma once
#include "base/auto.h"
#include "base/error.h"
#include "base/limits.h"

#include <stdint.h>

struct fixtures {
    int dir_fd, dev_fd, views_fd, mounts_fd;
};

/* Below `own_fd`, a directory whose path tells nothing of the host (-1: below `data_fd` too). */
int fixtures_open(int data_fd, int own_fd, struct fixtures **out, struct error *err);
void fixtures_free(struct fixtures *fixtures);

/* How many processors programs with this limit are shown, on a machine with `have`. */
unsigned fixtures_cpus(const struct limits *limits, unsigned have);

/*
 * The directory of the view for these limits on a machine with so many processors; it holds `root/` and, with a limit of memory, `meminfo`. Whoever asks
 * chooses the limits, so only so many views are kept for everybody; past that it is one for `slot` alone, made anew.
 */
int fixtures_view(struct fixtures *fixtures, const struct limits *limits, unsigned have_cpus,
                  unsigned slot, int *out_fd, struct error *err);
/* The same where the view is, or may be, kept for everybody; else ERROR_LIMIT. */
int fixtures_shared_view(struct fixtures *fixtures, const struct limits *limits, unsigned have_cpus,
                         int *out_fd, struct error *err);

/* A layer with an /etc/resolv.conf that names this address (in the machine's order), and nothing else. */
int fixtures_resolver(struct fixtures *fixtures, uint32_t address, int *out_fd, struct error *err);

/* The view's /sys alone, in memory, attached nowhere, with its meminfo as '.meminfo'; for where fixtures_make_dev is needed. */
int fixtures_make_sys(const struct limits *limits, unsigned have_cpus, int *out_fd,
                      struct error *err);

/*
 * A /dev for one box whose root is `owner`, in memory, attached nowhere; with the view's meminfo as '.meminfo'. For where
 * the fixtures share a file system with the host: a mount of those would tell their path there.
 */
int fixtures_make_dev(int view_fd, uint32_t owner, int *out_fd, struct error *err);

DEFINE_AUTOPTR(fixtures)
