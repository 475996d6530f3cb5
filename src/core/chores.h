/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What can wait: done one after the other on a thread of the lowest priority, so that no caller waits for it. Nothing of it is remembered
 * over a restart; whoever has chores looks for what is left to do in chores_start. Private to the core.
 */
#pragma once
#include "core/core_impl.h"

#include <stdatomic.h>

struct chores;
typedef void (*chore)(struct core *core, const char *id);

int chores_new(struct core *core, struct chores **out, struct error *err);
/* Begins with what an earlier server left undone. */
void chores_start(struct chores *chores);

/* Does fn(core, id) later; does not block. Forgotten where thousands wait already. */
void chores_ask(struct chores *chores, chore fn, const char *id);

/* Becomes true when the core closes: what takes long asks, and ends. */
const atomic_bool *chores_are_over(const struct chores *chores);

/* Ends what is under way, without finishing it. */
void chores_stop(struct chores *chores);
void chores_free(struct chores *chores);
