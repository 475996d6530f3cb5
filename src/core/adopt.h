/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking over what an earlier server left: living boxes, running commands, and traces of what did not get finished. Private to the
 * core.
 * Threads: one thread; before anything else runs.
 */
#pragma once
#include "core/core.h"

/* Called once, before anybody asks anything; the monitor runs. */
int adopt_all(struct core *core, struct error *err);
