/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of burrow-archive once it is confined: those that touch its memory and its two files. All others kill it.
 * Threads: one thread; the whole program.
 */
#pragma once
#include <stdbool.h>

/* For good; no_new_privs must be set. 0, or -1 with errno. */
int filter_load(bool is_reading);
