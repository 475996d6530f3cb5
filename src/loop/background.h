/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work that can wait: done one piece after the other on a thread of the lowest priority, so that no caller waits for it. Nothing is
 * remembered over a restart.
 * Threads: any; the work runs on a thread of its own.
 */
#pragma once
#include "base/error.h"
#include "base/id.h"

#include <stdatomic.h>

struct background;
typedef void (*background_fn)(void *owner, const char *id);

int background_new(struct background **out, struct error *err);

/* Calls fn(owner, id) later; does not block. Forgotten where thousands wait already. */
void background_run(struct background *background, background_fn fn, void *owner, const char *id);

/* Becomes true at background_stop: long work looks at it between two steps, and ends early. */
const atomic_bool *background_is_stopping(const struct background *background);

/* Ends what is under way, without finishing it. */
void background_stop(struct background *background);
void background_free(struct background *background);
