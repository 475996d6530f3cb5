/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Handlers of this front that have a file of their own (space_routes.c).
 * Threads: any but loops.
 */
#pragma once
#include "web/route.h"

int ops_get_space(struct call *call, struct error *err); // GET /system/df
int ops_prune(struct call *call, struct error *err);     // POST /system/prune
extern const struct field ops_prune_fields[];
