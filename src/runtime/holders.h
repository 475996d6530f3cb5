/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes hold a file open: for telling people what stands in the way, by names they can look up. Reads /proc, of which
 * it sees what its user may.
 * Threads: any.
 */
#pragma once
#include <stddef.h>

/* "process 70 ('burrow'), process 71 ('burrow-server')", the first three of them and how many more; returns how many there are. PID 1 of a box is
 * named only where nobody else is found. `fd` is a descriptor of the file, and not counted. */
unsigned holders_describe(int fd, char *text, size_t size);
