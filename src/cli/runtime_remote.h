/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `burrow runtime list` and `show` of a server that is configured: by --url, --context, BURROW_URL or the context in use; `remove` of the
 * local one.
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

/* Has the server of this data directory remove it, which ends boxes made ahead of it. 1: *code says how that ended, a refusal was told; 0: none runs. */
int runtime_remote_remove(const char *data_dir, const char *name, bool is_json, int *code);
