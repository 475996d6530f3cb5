/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `burrow run` through a server: where BURROW_URL, a context or a local server's socket is there. It never starts one.
 * Threads: one thread.
 */
#pragma once
#include "cli/run_report.h"

/* Options that only a run through a server has. */
struct run_remote {
    bool is_local; // not through one, whatever is there
    const char *url, *context, *api_key, *snapshot, *runtime_id, *project_id, *org_id;
    struct option_list scopes;
    struct limits given; // -1: not said
    bool has_runtime;
};

/* 1: it ran there, and *code is how it ended; 0: it is to be run here; -1: it cannot be run as asked. `words` may be empty. */
int run_remote(const struct run_options *options, const struct run_remote *remote, char **words,
               int *code, struct error *err);
