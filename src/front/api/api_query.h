/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parameters that several lists of this front have.
 * Threads: any.
 */
#pragma once
#include "web/call.h"

/* A point in time; absent: `out` is left alone. ERROR_INVALID names the parameter. */
int api_query_time(struct call *call, const char *name, int64_t *out, struct error *err);
/* An id without its prefix; else as it was given. NULL: absent. */
const char *api_query_id(struct call *call, const char *name, const char *prefix);
