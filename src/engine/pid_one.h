/* SPDX-License-Identifier: Apache-2.0 */
/*
 * PID 1 of a box, by the number it has on the host. Of a box that was adopted it has to be looked for, and is remembered. Private to the engine.
 * Threads: any; the caller holds the box.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <sys/types.h>

struct box;

/* Whether this is the /proc/PID/status of one: the innermost of its numbers is 1. */
bool pid_one_is(const char *status);

/* Without looking for it; 0: an adopted one that nobody has looked for. */
pid_t pid_one_known(const struct box *box);

/* *out is 0 where there is none. */
int pid_one_find(struct box *box, pid_t *out, struct error *err);

/* As long as it lives the number is its own: what was opened by the number before this is asked is of PID 1. */
bool pid_one_lives(const struct box *box);
