/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether packages can be found that a sandbox wants over the default runtime.
 * Threads: any but loops; blocks while a mirror is asked.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>

struct core;

/* is_there[i] for each name. Where it cannot be told, all that could be names are. ERROR_INVALID for too many. */
int runtime_packages_find(struct core *core, const char *const *names, bool *is_there,
                          struct error *err);
/* Whether it could be a name at all. */
bool runtime_package_is_name(const char *name);
