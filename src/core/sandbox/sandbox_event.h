/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The events of a sandbox: read by those who see it, written by the core.
 * Threads: any but loops.
 */
#pragma once
#include "core/account/actor.h"
#include "core/event/event.h"
#include "core/event/event_info.h"

struct sandboxes;
struct sandbox;

/* ERROR_NOT_FOUND, noun "sandbox", for one the actor does not see. */
int event_list(struct sandboxes *sandboxes, const struct actor *actor,
               const struct event_filter *filter, struct event_infos *out, struct error *err);

/* What was shown of the sandbox, such as the end of a command, is recorded with its event when this returns. */
void event_settle(struct sandboxes *sandboxes, const char *sandbox_id);

/* Writes one of a sandbox in memory, in the caller's transaction. */
int event_put(struct sandbox *sandbox, const struct event *event, struct error *err);
