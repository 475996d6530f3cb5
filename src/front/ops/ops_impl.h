/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this front share, and the handlers that have a file of their own (welcome_routes.c, ceiling_routes.c, space_routes.c).
 * Threads: any; handlers run in their lane.
 */
#pragma once
#include "web/route.h"

/* {"success":true,"data":…}; returns 0. */
extern const struct answer_wrap ops_wrap;
int ops_answer(struct call *call, const struct answer_field *fields, const void *from);

int ops_get_welcome(struct call *call, struct error *err);  // GET /
int ops_get_ceilings(struct call *call, struct error *err); // GET /system/limits
int ops_get_space(struct call *call, struct error *err);    // GET /system/df
int ops_prune(struct call *call, struct error *err);        // POST /system/prune
extern const struct field ops_prune_fields[];
extern const struct route_answer ops_welcome_answers[], ops_ceiling_answers[], ops_space_answers[],
    ops_prune_answers[];
