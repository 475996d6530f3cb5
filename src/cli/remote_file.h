/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a sandbox in a temporary one of this machine, which nobody else sees: as much of it as may come, whatever the server says it has.
 * Threads: any.
 */
#pragma once
#include "burrow.h"

#include <stdbool.h>
#include <stdint.h>

/* *out stands at its beginning. BURROW_LIMIT, which names --limit, where it has more than `most` bytes. */
int remote_file_take(struct burrow_client *client, const char *sandbox, const char *path,
                     uint64_t most, int *out, struct burrow_error *err);
/* Whether it failed since the sandbox changed the file while it went in parts: it may be calm a moment later. */
bool remote_file_is_changing(const struct burrow_error *err);
