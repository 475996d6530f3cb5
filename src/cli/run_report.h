/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `burrow run` was asked and what it says at the end: a sentence, or one JSON object, and the
 * exit code.
 * Threads: one thread.
 */
#pragma once
#include "base/id.h"
#include "base/options.h"
#include "cli/relay.h"
#include "engine/box.h"

struct run_options {
    struct limits limits;
    struct limits asked; // of these; -1: nothing was said
    uint64_t timeout_ms, output_cap_bytes;
    const char *runtime, *directory, *user, *data_dir;
    struct option_list env, files, dependencies, packages, mounts;
    bool has_tty, is_quiet, is_json, has_timestamps;
    bool has_network;
    struct option_list allow, deny; // rules of the network
    const char *network_dns;        // or NULL
    uint64_t network_rate;          // bytes a second; 0: no limit
};

struct run_result {
    char id[ID_TEXT];
    uint64_t started_us, duration_us;
    bool has_exit;
    struct process_exit exit;
    bool has_usage;
    struct cgroup_usage usage;
    uint64_t disk_bytes;
};

/* Reads what the box has used, while it exists; only where it will be told. */
void run_measure(const struct run_options *options, struct box *box, struct run_result *result);

/* Tells how it ended and gives the exit code. `failure`: burrow itself failed; else NULL. */
int run_report(const struct run_options *options, const struct run_result *result,
               const struct relay *relay, const struct error *failure);
