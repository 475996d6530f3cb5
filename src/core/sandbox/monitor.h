/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core's own thread and loop: hears what PID 1 of every box has to say, and looks at deadlines, several times a second while
 * anything is alive. It waits for nothing: locks that are held for long it only tries, and what takes time it hands to the mailbox
 * of the sandbox, to the reaper or to the remover. Private to the core.
 * Threads: any; monitor_start, monitor_stop and monitor_free: one thread.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"
#include "loop/loop.h"

struct monitor;

/* Boxes can be watched from here on; nobody listens yet. */
int monitor_new(struct sandboxes *sandboxes, struct monitor **out, struct error *err);
/* Starts the thread: once everything that an earlier server left is in its place. */
int monitor_start(struct monitor *monitor, struct error *err);
/* Ends the thread and lets go of all boxes, which are not touched. Its loop still takes posts. */
void monitor_stop(struct monitor *monitor);
/* Finishes what is being purged. After everybody who could give it work has stopped. */
void monitor_end_work(struct monitor *monitor);
/* Once it was stopped and nobody posts any more: after the last command, whose feed does. */
void monitor_free(struct monitor *monitor);

/* For feeds. */
struct loop *monitor_loop(struct monitor *monitor);

/* Listens to the sandbox's box from now on. The caller has its box_lock. */
int monitor_watch(struct monitor *monitor, struct sandbox *sandbox, struct error *err);
/* No longer; before the box is ended. The caller has its box_lock. */
void monitor_unwatch(struct monitor *monitor, struct sandbox *sandbox);
/* The box is free again, and the monitor has left events unread in it. */
void monitor_arm(struct monitor *monitor, struct sandbox *sandbox);
