/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this machine can do for boxes, found out by trying. Each probe answers on its own and leaves
 * nothing behind: what it makes lives in children and namespaces that end with it. Calls block for
 * milliseconds; none logs. Works without root, where most answers are PROBE_UNCHECKED.
 * Threads: one thread; the calls fork.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum probe_state {
    PROBE_FINE,
    PROBE_DEGRADED,  // burrow runs, with something less: `cost` says what
    PROBE_MISSING,   // burrow cannot run here
    PROBE_UNCHECKED, // cannot be found out as this user
};

struct probe_context {
    const char *data_dir; // need not exist
};

struct probe_result {
    enum probe_state state;
    char detail[400]; // what was found
    const char *cost; // what it costs you; a literal, NULL when fine
    const char *fix;  // what to do about it; a literal, NULL when fine
};

struct probe {
    const char *name;
    const char *purpose; // what burrow uses it for
    void (*run)(const struct probe *probe, const struct probe_context *context,
                struct probe_result *result);
    bool needs_root;
    uint64_t flags;      // for probes that share a function: which namespace
    const char *subject; // likewise: which file system, which setting
};

/* All of them, in the order they are best read; a NULL name ends the table. */
extern const struct probe probe_table[];

void probe_run(const struct probe *probe, const struct probe_context *context,
               struct probe_result *result);

const char *probe_state_name(enum probe_state state); /* "fine" … */
