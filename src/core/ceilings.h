/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What sandboxes can have on this machine: settings that were left to it are worked out, and all boxes together are limited. Private to the core.
 * Threads: one thread; the one that opens the core.
 */
#pragma once
#include "base/error.h"

struct core;

/* Needs the engine. Default limits above a ceiling come down to it. Says in the log what has come out. */
int ceilings_settle(struct core *core, struct error *err);
