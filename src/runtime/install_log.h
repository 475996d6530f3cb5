/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what mmdebstrap, apt and npm print: how far they are, and why they failed.
 * Threads: one per object.
 */
#pragma once
#include "runtime/make.h"
#include "runtime/progress.h"

struct complaint;

struct install_log {
    const struct making *making;
    struct progress_reader progress;
    const struct complaint *complaint; // the first one met
    char line[200];                    // that brought it
};

/* For tool_spec.on_line; `data` is the log. */
void install_log_line(void *data, const char *line);

/* Puts the reason that was met into the error of a program that failed. Returns -1. */
int install_log_explain(const struct install_log *log, struct error *err);
