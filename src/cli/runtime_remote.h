/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `burrow runtime list` and `show` of a server that is configured: by --url, --context, BURROW_URL or the context in use.
 * Threads: one thread.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

struct runtime_where {
    const char *url, *context, *api_key;
    const char *sort, *direction;
    int64_t limit, offset;
};
/* ERROR_INVALID where the order is none. */
int runtime_where_check(const struct runtime_where *where, struct error *err);

/* 1: it was asked, and *code is how that ended; 0: none is configured. `name` NULL: the list. */
int runtime_remote(const struct runtime_where *where, const char *name, bool is_json, int *code);
