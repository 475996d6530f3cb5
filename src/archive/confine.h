/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving up every right a process can give up, for good: ids, groups, capabilities, namespaces, the file system, new
 * files and programs, all system calls but a few on its two open files. Needs root.
 * Threads: one thread; the whole program.
 */
#pragma once
#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/*
 * Afterwards fd 0 is only spoken with and fd 1 only read and sought in (is_reading) or written to, up to max_bytes. What else is
 * tried ends the process. On failure some rights may be gone and others not: exit.
 */
int confine(bool is_reading, uint64_t max_bytes, struct error *err);
