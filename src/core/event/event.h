/* SPDX-License-Identifier: Apache-2.0 */
/* What happened to a sandbox, in order, readable for as long as the sandbox is remembered. */
#pragma once
#include "core/account/actor.h"
#include "core/event/event_info.h"

struct core;

/* ERROR_NOT_FOUND, noun "sandbox", for one the actor does not see. */
int event_list(struct core *core, const struct actor *actor, const struct event_filter *filter,
               struct event_infos *out, struct error *err);

/*
 * The types and when they happen; `reason` and `facts` tell the rest:
 *   create, started, completed (an execution ended; facts exit_code, cause), failed (could not be made), terminated
 *   (reason: idle, expired, one_shot, box_ended, restart, undelivered), destroy, pause, resume
 */
#define EVENT_CREATE "create"
#define EVENT_STARTED "started"
#define EVENT_COMPLETED "completed"
#define EVENT_FAILED "failed"
#define EVENT_TERMINATED "terminated"
#define EVENT_DESTROY "destroy"
#define EVENT_PAUSE "pause"
#define EVENT_RESUME "resume"
#define EVENT_CHECKPOINT "checkpoint" // reason: created, restored
#define EVENT_SNAPSHOT "snapshot"
#define EVENT_PROCESSES_LOST "processes_lost" // the files are still there
