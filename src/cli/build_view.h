/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a runtime while somebody watches: a bar on a terminal, a line a phase elsewhere. Ctrl-C ends the build cleanly.
 * Threads: one thread.
 */
#pragma once
#include "runtime/build.h"

#include <stdbool.h>

struct build_view {
    const char *data_dir;
    const char *registry;
    const char *mirror; // or NULL
    uint64_t image_timeout_ms;
    bool is_forced;
    bool is_json;          // the result is one JSON value
    bool is_result_hidden; // it is not said that it is ready
    bool is_quiet;         // no progress, no result
};

/*
 * Progress and the last words of a failed tool go to stderr, the result to stdout. 0; or -1 with an
 * error to tell, and in *out_signal the signal that cancelled it, or 0.
 */
int build_view_run(const struct build_view *view, const struct runtime_definition *definition,
                   int *out_signal, struct error *err);
