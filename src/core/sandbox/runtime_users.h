/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which sandboxes have a runtime.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

struct sandboxes;

/* Says in an ERROR_BUSY that is about this runtime ("name:tag") which sandboxes have it, where any does. Returns -1. */
int runtime_name_users(struct sandboxes *sandboxes, const char *runtime, struct error *err);
