/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for changes of what: sandboxes, executions and streams, all by id. Watching costs memory and no thread.
 *
 * To wait for a condition: watch first, look at the thing, and if the condition does not hold yet, wait for fn.
 * Threads: any; does not block.
 */
#pragma once
#include "base/auto.h"

struct hub;
struct watch;

struct hub *hub_new(void);
void hub_free(struct hub *hub); // all watches must be gone
DEFINE_AUTOPTR(hub)

/*
 * Calls fn(data) every time `id` (which need not exist) is announced. fn runs on whatever thread announces it,
 * must be quick (post to a loop), and must call neither hub nor core.
 */
struct watch *hub_watch(struct hub *hub, const char *id, void (*fn)(void *data), void *data);

/* When it returns, fn is not running and will not be called again. */
void watch_free(struct watch *watch);
DEFINE_AUTOPTR(watch)

/* It has changed: calls all who watch it. */
void hub_announce(struct hub *hub, const char *id);
/* Calls everybody, whatever they watch. */
void hub_announce_all(struct hub *hub);
