/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sandboxes that the monitor looks at several times a second: those where something happens. All others cost it nothing: it meets
 * them again when somebody uses them or changes their state, or when their next deadline has come. Private to the core.
 * Threads: any; but for watchlist_notice, one at a time, which is the monitor's.
 */
#pragma once
#include "core/sandbox/sandbox_object.h"
#include "loop/loop.h"

struct watchlist;

struct watchlist *watchlist_new(struct loop *loop);
/* Gives up everything it holds. The monitor's thread has ended, or is the caller. */
void watchlist_empty(struct watchlist *list, struct registry *registry);
void watchlist_free(struct watchlist *list);

/* Something has happened to the sandbox, or is about to. Never blocks; whatever locks the caller has. */
void watchlist_notice(struct sandbox *sandbox);

/*
 * Calls `look` for each sandbox of the list that is not over. `deadline` tells afterwards when it has to be looked at again, on the monotonic clock
 * (INT64_MAX: never), or a time that has passed: it stays in the list.
 */
void watchlist_look(struct watchlist *list, int64_t now,
                    void (*look)(struct sandbox *sandbox, int64_t now),
                    int64_t (*deadline)(struct sandbox *sandbox));
