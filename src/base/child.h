/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that are started beside us. One has the files and the environment that are named and no others, and signals as they are by default.
 * Threads: any.
 */
#pragma once
#include <sys/types.h>

#define CHILD_NOTHING (-1) // as a file: /dev/null

struct child {
    const char *program; // its path
    char *const *argv;
    char *const *env; // NULL: empty
    int files[3];     // its standard input, output and errors; borrowed
};

/* 0 or an error number. Whoever starts it waits for it. */
int child_start(const struct child *child, pid_t *pid);
