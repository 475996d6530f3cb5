/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why a command ended, in a sentence with the figure of the limit it met: the same for `burrow run` and for the server.
 * Threads: plain values.
 */
#pragma once
#include "base/limits.h"
#include "engine/box.h"

/* What a box used, where it was measured. */
struct exit_use {
    uint64_t processes_refused, disk_bytes;
};

/* Whether its files take all they may. */
bool exit_is_disk_full(const struct limits *limits, uint64_t disk_bytes);

/*
 * Into `out`: limits that ended it, why it could not run, or, of a command that failed by itself, limits that stood in its way (`use`; NULL: not
 * measured); "" where there is nothing to be said. timeout_ms 0: none is known.
 */
void exit_explain(const struct process_exit *exit, const struct limits *limits, uint64_t timeout_ms,
                  const struct exit_use *use, char *out, size_t size);
