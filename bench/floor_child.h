/* SPDX-License-Identifier: Apache-2.0 */
/* The floor's half that runs in the new process, on the caller's memory: async-signal-safe
 * throughout. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#define FLOOR_GROUPS 3
#define FLOOR_FAILED 200 // exit code when a step failed before the program

struct floor_child {
    const char *const *argv;
    int user_namespace;
    int root; // detached overlay
    int usr;  // detached /usr, or -1
    int tasks[FLOOR_GROUPS];
    const char *volatile failed_step; // set by the child
    volatile int failed_errno;
};

/* A child that only sleeps, in new namespaces, one at a time; -1 with errno. Kill it, reap it with
 * __WALL. */
pid_t floor_clone_sleeper(int flags);

/* The child of a run, returns once it executes its program. -1 with errno. */
pid_t floor_clone_child(struct floor_child *child, uint64_t extra_flags, int *pidfd);
