/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which processes the living boxes of a data directory have: for telling people what stands in the way, by names they can look up.
 * Reads /proc.
 * Threads: any.
 */
#pragma once
#include <stddef.h>

/*
 * "process 71 ('bash') of process 70 ('burrow')", one for each box with commas between, the first three of them; returns how
 * many boxes there are. `group` is the name of the data directory's control groups.
 */
unsigned occupants_describe(const char *group, char *text, size_t size);
