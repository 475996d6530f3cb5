/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's own thread and loop: hears what the inits of all boxes have to say, and looks at deadlines, several times a
 * second while anything is alive. Private to the core.
 */
#pragma once
#include "core/sandbox/live.h"
#include "loop/loop.h"

struct keeper;

/* Boxes can be watched from here on; nobody listens yet. */
int keeper_new(struct core *core, struct keeper **out, struct error *err);
/* Starts the thread: once everything that an earlier server left is in its place. */
int keeper_start(struct keeper *keeper, struct error *err);
/* Ends the thread and lets go of all boxes, which are not touched. Its loop still takes posts. */
void keeper_stop(struct keeper *keeper);
/* Once it was stopped and nobody posts any more: after the last command, whose feed does. */
void keeper_free(struct keeper *keeper);

/* For feeds. */
struct loop *keeper_loop(struct keeper *keeper);

/* Listens to the sandbox's box from now on. The caller has its box_lock. */
int keeper_watch(struct keeper *keeper, struct live *live, struct error *err);
/* No longer; before the box is ended. The caller has its box_lock. */
void keeper_unwatch(struct keeper *keeper, struct live *live);
/* The box is free again, and the keeper has left news in it. */
void keeper_arm(struct keeper *keeper, struct live *live);
