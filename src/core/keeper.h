/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's own thread and loop: hears what the inits of all boxes have to say, and looks at deadlines, several times a
 * second while anything is alive. Private to the core.
 */
#pragma once
#include "core/live.h"
#include "loop/loop.h"

struct keeper;

int keeper_start(struct core *core, struct keeper **out, struct error *err);
/* Ends the thread; boxes are not touched. */
void keeper_stop(struct keeper *keeper);

/* For feeds. */
struct loop *keeper_loop(struct keeper *keeper);

/* Listens to the sandbox's box from now on. The caller has its box_lock. */
int keeper_watch(struct keeper *keeper, struct live *live, struct error *err);
/* No longer; before the box is ended. The caller has its box_lock. */
void keeper_unwatch(struct keeper *keeper, struct live *live);
/* The box is free again, and the keeper has left news in it. */
void keeper_arm(struct keeper *keeper, struct live *live);
