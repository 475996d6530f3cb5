/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files carried inside the program; tools/embed makes the tables, a row without name ends one.
 * Threads: plain values.
 */
#pragma once
#include <stddef.h>

struct embedded_file {
    const char *name; // without directory
    const char *data; // a NUL follows
    size_t length;
};
