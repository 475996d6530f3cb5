/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What programs of a living box take for the machine, changed to its limits of memory, CPU and processes: /sys, /proc/meminfo, the size
 * of /dev/shm, and the processors it runs on. Private to the engine.
 * Threads: one per object.
 */
#pragma once
#include "engine/box.h"

/*
 * Does nothing where the box shows these limits already. ERROR_STATE about "memory" when files in /dev/shm would not fit. A /sys that the guest
 * has put something else in the place of is left alone.
 */
int box_view_set(struct box *box, const struct limits *limits, struct error *err);
