/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a program of the machine to its end, with a clean environment and in process and mount
 * namespaces of its own: when it ends, is cancelled, or we die, all it started and mounted is gone.
 * It forks; what it does before it executes is safe in a process with threads. The calling thread must stay: the
 * program ends with it.
 * Threads: any but loops.
 */
#pragma once
#include "base/error.h"

#include <stddef.h>

struct tool_root;

struct tool_spec {
    const char *const *argv; // argv[0] is an absolute path
    const char *input;       // its standard input; NULL: empty
    const char *bind_from;   // seen at bind_to while it runs; NULL: nothing
    const char *bind_to;
    const struct tool_root *root; // where it runs, see tool_root.h; NULL: the machine's own
    int log_fd;                   // gets all its output; -1: none
    int cancel_fd;                // readable: kill it and fail with ERROR_GONE; -1: never
    void (*on_line)(void *data, const char *line); // each line of output, without its end
    int (*on_tick)(void *data); // some times a second; not 0: kill it, and fail. NULL: nobody looks
    void *data;
};

/* 0 when the program exited with 0; else an error that names it and how it ended. */
int tool_run(const struct tool_spec *spec, struct error *err);

/* The absolute path of a program of the machine, in `path`; -1 when there is none. */
int tool_find(const char *name, char *path, size_t size);
