/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The system calls of burrow-archive once it is confined: those that touch its memory and its two files. All others kill it.
 * Threads: one thread; the whole program.
 */
#pragma once
#include "base/filter.h"

#include <stdbool.h>
#include <stddef.h>

const struct filter_rule *archive_filter(bool is_reading, size_t *count);
